package tests

import "github.com/dgrdma/dgrdma/settings"

// limit is a bound of something that grows by what comes from the network, or by what a program does.
type limit struct {
	of      string // what
	set     string // a constant, as room.name, or a field of dgrdma.Config, which is a setting
	bytes   bool
	more    string // behind the number
	reached string // what happens then
	counter string // by which it is told: metrics, in backquotes, or in words
	test    string
}

// limits are all of them, by who makes them grow.
var limits = []struct {
	title string
	rows  []limit
}{
	{"Strangers", []limit{
		{"unknown sources answered after a batch of datagrams, in the clear and in handshakes each", "endpoint/admission.MostAnswers", false, "",
			"the others are not answered, and ask again", "`dgrdma_endpoint_strangers_unanswered_total`", "TestUnknownSourcesAtOnce, TestSealedUnknownSourcesAtOnce, TestAnswersAreFew"},
		{"challenges that a peer with the key answered within 30 s, remembered against their copies", "seal.mostUsed", false, "", "the challenges that are not answered yet count no more, and peers ask again", "`dgrdma_endpoint_challenges_full_total`", "TestUsedChallengesAreBounded"},
		{"learned peers of a kind that has nothing to prove itself with", "endpoint/admission.MostUnproven", false, ", or `MaxPeers` if that is set",
			"as of `MaxPeers`", "`dgrdma_endpoint_refused_total{reason=\"no_room\"}`", "TestUnprovenPeersMemory, TestCrowdOfAnotherKind"},
		{"connections over TCP that have sent no whole request, of a listener", "verbs.lobbyPlaces", false, "", "the one there longest is closed for a newcomer",
			"`dgrdma_rdma_crowded_out_total`", "TestConnectionsThatSayNothing"},
		{"requests that wait to be accepted, of a listener", "verbs.Backlog", false, "", "the next are closed", "`dgrdma_rdma_requests_dropped_total`", "TestBacklog"},
		{"connections that were turned away and are waited for, of a listener, and of `Host.Await` in a host", "verbs.MostTurnedAway", false, "", "the next are closed behind the answer",
			"`dgrdma_rdma_rejections_cut_short_total`", "TestCutShortIsCounted, TestTurnAway"},
		{"a request or reply of MPA", "rdmap/mpa.maxSetup", true, "", "the connection is closed", "`dgrdma_rdma_set_up_failures_total`", "TestRequests"},
		{"connections of who reads metrics over HTTP", "metrics.MostReaders", false, "", "the one there longest is closed for a newcomer", "`dgrdma_metrics_turned_away_total`", "TestPlaces"},
		{"answers with metrics that are being written, of a kind, which their readers share", "metrics.mostAnswers", false, "", "the readers of the oldest are cut short", "`dgrdma_metrics_cut_short_total`", "TestAnswersAreShared"},
	}},
	{"Peers of an endpoint", []limit{
		{"peers, connected and learned", "MaxPeers", false, "", "a learned one that is gone gives its place, or else a newcomer is refused; `Connect` fails with `ErrTooManyPeers`",
			"`dgrdma_endpoint_peers_dismissed_total`, `dgrdma_endpoint_refused_total{reason=\"no_room\"}`", "TestFullTableMakesRoomForProof"},
		{"learned peers of one host", "PeersPerHost", false, "", "the same, of that host", "the same", "TestPeersPerHost, TestHostWhosePeersAreGone"},
		{"peers without a connection that share keys with this one: without a session so far, or gone", "transport/sealed.mostPassing", false, ", or `MaxPeers` if that is less; of one host `PeersPerHost`",
			"the keys of the oldest are forgotten, of the host that is full or else of the one that has most; it agrees on a key again", "`dgrdma_endpoint_keys_evicted_total`",
			"TestKeysByHost, TestKeysOfPeersThatGo"},
		{"keys under which a peer may seal", "transport/sealed.mostKeys", false, "", "the one agreed on first is forgotten", "none: a peer uses the newest", "TestMemoryOfKeys"},
		{"memory for the keys of a peer", "transport/sealed.PerPeer", true, "", "the same", "the same", "TestMemoryOfKeys"},
		{"incomplete transactions of a peer", "OpenIncoming", false, "",
			"what would begin another one is refused, and sent again later; of peers that never send again the oldest is given up",
			"`dgrdma_peer_refused_total{reason=\"too_many_open\"}`, `dgrdma_peer_open_evicted_total`", "TestCrowd"},
		{"memory for those, of each connected peer, and of all learned ones together", "OpenMemory", true, "", "what would need more is refused, and sent again later",
			"`dgrdma_peer_refused_total{reason=\"open_memory\"}`", "TestCrowd, TestLearnedPeersShareMemory"},
		{"what each learned peer may hold whatever the others do", "endpoint/reassembly.Reserve", true, "", "it shares the memory of the others", "the same", "TestLearnedPeersShareMemory"},
		{"how far a frame of a session may be ahead of the first one that did not come", "ack.MostAhead", false, "", "it is refused", "`dgrdma_peer_refused_total{reason=\"foreign\"}`", "TestReceivedIDs, TestReceivedIDsMemory"},
		{"runs of ids that an acknowledgement in a session names", "frame.MostRanges", false, "", "the others are named by a later one", "none: nothing is lost", "TestReceivedIDsOfManyRuns"},
		{"counts of sessions that ended, which all peers share", "endpoint/session.buckets", false, "", "a session that ends makes handshakes with other peers of its count take another round trip", "none: nothing is lost", "TestGenerations"},
		{"epochs of a peer that rejected ours, remembered", "endpoint/session.mostRejected", false, "", "ours is replaced", "none: nothing is lost", "TestManyRejections"},
		{"ids of frames that came from a peer of another kind, remembered", "ack.MaxHistory", false, "", "an older frame is taken for a copy", "`dgrdma_peer_duplicates_total`",
			"TestReceiverVerdicts"},
		{"runs of its frames to be acknowledged", "ack.mostPendingAcks", false, "", "the oldest is forgotten: its frames come again", "`dgrdma_peer_duplicates_total`", "TestDueBound"},
		{"letters of a channel that came before one that did not; another 520 bytes say which", "dgrdma.mailLength", true, "", "what lies elsewhere is discarded", "`dgrdma_peer_messages_swallowed_total`", "TestLettersAheadAreBounded"},
		{"lines in the log, each second", "dgrdma.loggedEach", false, "", "more are left out", "a line says how many", "TestLogIsNotFlooded"},
	}},
	{"What a program posts", []limit{
		{"transactions to the memory of a peer", "Queue", false, "", "`Post` fails with `ErrQueueFull`, `Write` waits", "`dgrdma_peer_queue_full_total`", "TestQueueIsOfMemory, TestFlowsAndLettersAreBounded"},
		{"transactions of a flow to a service", "dgrdma.mostOfService", false, "", "`Post` fails with `ErrQueueFull`", "`dgrdma_peer_queue_full_total`", "TestFlowsAndLettersAreBounded"},
		{"letters of a channel", "dgrdma.mostLetters", false, "", "a letter is settled with `ErrQueueFull`", "`dgrdma_peer_queue_full_total`", "TestFlowsAndLettersAreBounded"},
		{"letters of a channel that are under way, in units of `dgrdma.mailUnit` bytes", "dgrdma.mailUnits", false, "", "the next ones wait", "none: nothing is lost", "TestLettersAreUnderWayTogether"},
		{"a letter", "dgrdma.MaxLetter", true, "", "it is settled with `ErrTooLarge`; of one that comes nothing is read", "`dgrdma_peer_messages_swallowed_total`", "TestLettersOfAnyLength"},
		{"a transaction of several frames that begins before it is known how long frames arrive", "dgrdma.mostCutShort", true, "", "it waits a round trip", "none: it is later", "TestCutShort"},
		{"frames that wait for acknowledgement", "ack.MaxWindow", false, ", or `Window`, or the profile's", "frames wait", "`dgrdma_peer_window_full_total`, `dgrdma_peer_congested_total`", "TestSenderWindow"},
		{"the same on a far path, where no window is chosen", "dgrdma.mostFar", false, "", "frames wait", "`dgrdma_peer_window_full_total`, `dgrdma_peer_congested_total`", "TestFarWindow"},
		{"transactions of a connection that began and are not acknowledged", "endpoint/foreign.MostBegun", false, ", or the profile's", "the next ones wait", "none: nothing is lost", "TestNext"},
		{"frames, and bytes that stay with the program, of a call of the system", "endpoint/outgoing.MaxBatch", false, "", "the others go with the next", "none: nothing waits for long", "TestBatchIsBounded"},
		{"services of an endpoint", "frame.MostServices", false, "", "`Serve` fails", "the error", "TestServicesAreFull"},
	}},
	{"Links", []limit{
		{"memory of a host, for all links", "link.defaultMemory", true, ", or `Config.Memory`", "a link is not made, or refused: `ErrNoMemory`", "`dgrdma_host_full_total{bound=\"memory\"}`", "TestNoRoom"},
		{"links that wait at a port; of one peer as many as are left for others", "link.backlog", false, "", "the next are refused", "`dgrdma_host_full_total{bound=\"backlog\"}`", "TestOpenFlood"},
		{"links of a peer, and letters that wait for it when it dials", "link.mostLinks", false, "", "the next are refused", "`dgrdma_host_full_total{bound=\"links\"}`", "TestMostLinks"},
		{"links that ended here, and whose ends peers have not answered, of all peers; of one host's as many as are left for others", "link.mostEnded", false, "", "links that host dials are refused",
			"`dgrdma_host_full_total{bound=\"ended\"}`", "TestManyEndedLinks"},
		{"answers that wait for all peers", "link.mostReplies", false, "", "what comes then is not answered", "`dgrdma_host_full_total{bound=\"letters\"}`", "TestRepliesAreBounded"},
		{"messages of a link that are not acknowledged", "link.mostUnderWay", false, ", and no more than the peer has buffers", "`Acquire` waits", "`dgrdma_link_unacknowledged_messages`", "TestSenderIsBounded"},
		{"memory of messages that all links of a host send, until they are acknowledged; of one peer's no more than it leaves for others", "link.leastBudget", true, ", or `Config.Memory` if that is more",
			"a producer waits", "`dgrdma_host_full_total{bound=\"sending\"}`", "TestSendingIsShared, TestShortMessagesTakeLittle"},
		{"memory of the buffers of a link that grew, and no more than a quarter of what the host has free then", "link.mostGrown", true, "", "they stay as many as they are", "none: the link is slower", "TestGrowthIsBounded"},
		{"words of a link under way that give buffers back", "link.mostWords", false, "", "the next one tells of more", "none: nothing is lost", "TestCreditsOnAFarPath"},
		{"buffers of a link", "link.mostBuffers", false, "", "the link is refused", "the error", "TestBoundsOfOptions"},
	}},
	{"RDMA over TCP", []limit{
		{"requests of a queue pair, and receives the same", "verbs.defaultDepth", false, ", or `Options.Sends` and `Receives`", "`Post` fails with `ErrFull`", "`dgrdma_rdma_queue_full_total`", "TestPostErrors"},
		{"requests of a peer that wait for their answer", "verbs.defaultReads", false, ", or `Options.IRD`", "one more ends the connection", "`dgrdma_rdma_terminates_sent_total`", "TestTooManyReads"},
		{"bytes of a connection that wait for the rest of a frame; none between frames", "rdmap/mpa.inputSize", true, "", "the system has no room for more, and the peer waits", "none: nothing is lost", "TestAttackIdle"},
		{"frames of a connection that the system does not take yet, for the same time; another 50 KiB say where they are", "rdmap/mpa.slabSize", true, "", "answers wait, and then the requests of the peer", "`dgrdma_rdma_silent_peers_total`, if it takes nothing for `Options.GiveUp`", "TestAttackUntaken"},
		{"a frame", "rdmap/mpa.maxFrame", true, "", "a longer one cannot be said", "none", "TestAttackIdle"},
		{"regions and windows of a host, in each of its parts", "rdmap/memory.maxLive", false, "", "`Register` fails", "the error", "TestTableIsFull"},
		{"clients of `rping --serve` and `ping --serve`", "verbs/latency.MostClients", false, "", "one silent for 10 s gives way, or one of the host with the most; else the next are rejected", "`dgrdma_rdma_connections_rejected_total`", "TestManyClients, TestSilentClientsGiveWay, TestRpingTooMany"},
		{"memory of all clients of `ping --serve`", "verbs/latency.memory", true, "", "the same", "`dgrdma_rdma_connections_rejected_total`", "TestManyClients"},
	}},
	{"ONC RPC", []limit{
		{"calls of a connection that are in work, or whose replies were not sent", "rpc.usualCredits", false, ", or `ServerOptions.Credits`", "the server reads no more of the connection", "none: nothing is lost", "TestBackPressureOfOne"},
		{"calls of all connections that are with handlers", "rpc.usualCalls", false, ", or `ServerOptions.Calls`", "the server reads no more of any connection", "none: nothing is lost", "TestBackPressure"},
		{"connections of a server", "rpc.usualConnections", false, ", or `ServerOptions.Connections`", "the one that is idle for longest is closed for one more; one more is closed if none is idle",
			"`ServerStats.Evicted`, `Refused`", "TestConnections"},
		{"those of one host", "rpc.usualPerHost", false, ", or `ServerOptions.PerHost`", "the same among them. A host has 516 KiB of receives for each over RDMA, or 32 KiB over TCP, a call of its own for each credit with what else its reply has, and of the next rows what it can take",
			"the same", "TestConnectionsOfHost"},
		{"a call, or a reply", "rpc.usualMessage", true, ", or `ServerOptions.MaxCall`, `ClientOptions.MaxReply`", "the call is answered by SYSTEM_ERR, or fails with `ErrTooLong`; no memory is taken for the rest", "`ServerStats.TooLong`", "TestTooLongCall, TestRecordsTooLong"},
		{"items of calls over RDMA, from when they are fetched until the calls are answered", "rpc.usualBudget", true, ", or four times `ServerOptions.MaxCall`; of a host no more than is left for others", "the next one waits", "none: nothing is lost", "TestBudget, TestBudgetIsShared, TestAttackWholeBudget"},
		{"items of replies of procedures that have some by reference, from when a handler is called until the reply has been sent: 1088 KiB of each call, and what they are once the handler has returned", "rpc.usualReplies", true, "; of a host no more than is left for others", "the next call waits: over TCP its connection is not read", "none: nothing is lost", "TestAttackRepliesNotTaken"},
		{"what has come of a long record before memory for all of it is taken", "rpc.longFrom", true, "", "memory is taken", "none", "TestLengthTakesNoMemory"},
		{"calls of the server that a client has in work over TCP, or whose replies were not sent", "rpc.usualCredits", false, ", or `ServerOptions.Credits` of `ClientOptions.Callbacks`",
			"the next one is answered by SYSTEM_ERR; as many again end the connection", "`ServerStats.Failed` of `Callbacks`", "TestCallbacksAreBounded"},
		{"programs that a port mapper tells", "rpc/portmap.MaxMappings", false, "", "the list is invalid", "the error", "TestHostilePortMapper"},
		{"messages of a connection within a minute that are no calls", "rpc.mostMalformed", false, "", "the connection is closed", "`ServerStats.Malformed`", "TestNoCalls"},
		{"replies that are kept for calls that come again", "rpc.usualDuplicates", false, ", or `ServerOptions.Duplicates`", "the oldest is forgotten: its call is carried out again", "none", "TestDuplicatesAreBounded"},
		{"those together", "rpc.maxDuplicateBytes", true, "", "the same", "none", "TestDuplicatesAreBounded"},
		{"one of those", "rpc.maxDuplicateReply", true, "", "it is not kept", "none", "TestDuplicatesAreBounded"},
	}},
	{"RPC over RDMA", []limit{
		{"segments of a message", "rpcrdma.MaxSegments", false, ", or `Limits.Segments`", "the message is refused: SEGMENTS, or ERR_CHUNK in version 1", "the error: a `Fault`", "TestLimits"},
		{"Read chunks of a message", "rpcrdma.MaxReadChunks", false, ", or `Limits.ReadChunks`", "the same: READ_CHUNKS, or ERR_CHUNK", "the same", "TestLimits"},
		{"Write chunks of a message", "rpcrdma.MaxWriteChunks", false, ", or `Limits.WriteChunks`", "the same: WRITE_CHUNKS, or ERR_CHUNK", "the same", "TestLimits"},
		{"properties that a peer of version 2 tells", "rpcrdma.MaxProperties", false, "", "the message is refused: BAD_PROPVAL", "the same", "TestMostProperties"},
		{"one of them", "rpcrdma.MaxPropertySize", true, "", "the same", "the same", "TestMostProperties"},
		{"bytes of all of them", "rpcrdma.MaxPropertiesSize", true, "", "the same", "`Properties.Apply` says so", "TestMostProperties"},
		{"messages of a peer on their way, and its Calls in work", "rpcrdma.MaxWindow", false, ", or `Config.Window`", "the connection ends", "`ErrProtocol`", "TestCredits2, TestWindow"},
		{"Calls that wait for the peer, for each that may be out", "rpcrdma.mostQueued", false, "", "`Machine.Call` fails", "`ErrQueue`", "TestQueue"},
		{"messages of a peer that cannot be used, in a minute", "rpcrdma.maxMalformed", false, "", "the connection ends", "`ErrProtocol`", "TestMalformed"},
	}},
	{"NFS", []limit{
		{"objects of which a `localfs.Directory` knows where they are", "nfs3/localfs.maxPlaces", false, "", "the one not used for longest is forgotten, and searched for when its handle comes", "none", "TestPlacesAreBounded"},
		{"entries of directories that a `localfs.Directory` looks at for a handle whose object is not where it was last seen", "nfs3/localfs.mostSearched", false, "", "the handle is stale; one search at a time", "none", "TestStaleHandlesAfterRestart"},
		{"such searches that wait, and the one that goes on", "nfs3/localfs.mostSearches", false, "", "the client is told to ask again: NFS3ERR_JUKEBOX", "the error", "TestSearchesDelayNoOthers"},
		{"directories above an object of a `localfs.Directory`", "nfs3/localfs.mostAbove", false, "", "what is deeper is refused: NFS3ERR_NAMETOOLONG", "the error", "TestDeepDirectories"},
		{"entries of a reply of READDIR or READDIRPLUS, encoded", "nfs3.mostListed", true, "", "the client asks for the others by another call", "none: nothing is lost", "TestLongListings"},
		{"data of a `localfs.Memory`", "nfs3/localfs.mostBytes", true, ", or `MemoryOptions.MaxBytes`", "writes fail with `ErrNoSpc`", "the error", "TestMemoryIsBounded"},
		{"entries of its directories", "nfs3/localfs.mostFiles", false, ", or `MemoryOptions.MaxFiles`", "the same", "the error", "TestMemoryIsBounded"},
		{"entries of a directory that an `nfs3.Volume` lists", "nfs3.mostEntries", false, "", "listing fails with `ErrTooMany`", "the error", "TestVolumeOfHostileServer"},
		{"a file that `Volume.ReadFile` returns", "nfs3.maxReadFile", true, "", "it fails with `ErrFBig`", "the error", "TestVolumeOfHostileServer"},
		{"memory for it before any of it came", "nfs3.maxClaim", true, "", "as much as came is taken again", "none", "TestVolumeOfHostileServer"},
		{"data that an `nfs3.File` keeps until the server has it on stable storage", "nfs3.maxUncommitted", true, "", "it is committed first", "none", "TestFileWritesAgain"},
	}},
	{"Wires", []limit{
		{"the Ethernet ring, of what nobody asked for; the socket's buffer is as large as the system allows", "transport/ether.mostUnasked", true, ", or `sockbuf=`",
			"frames are dropped, and sent again", "`dgrdma_transport_kernel_drops_total`", "TestKernelDrops"},
		{"frames, or parts of 4 KiB of long ones, that an AF_XDP socket has and the device has not sent; locked memory has room for them", "transport/ether.enoughChunks", false, "",
			"sending waits, and then they are dropped, and sent again", "`dgrdma_transport_send_drops_total`", "TestDeviceTakesNothing"},
		{"frames to be sent that the system has no room for", "endpoint/outgoing.MaxBatch", false, "", "they are dropped, and sent again", "`dgrdma_transport_send_drops_total`", "TestSendDrops"},
		{"hosts of which it is known whether somebody answers for their address", "transport/udp.mostKnown", false, "", "they are looked up again", "none: nothing is lost", "TestNobodyHasTheAddress"},
	}},
	{"Captures", []limit{
		{"frames of a flow that `report` follows until they are acknowledged", "inspect.mostSlots", false, "", "older ones are counted as missing or late", "none: the report counts all", "TestConstantMemory"},
		{"transactions of a flow that are followed at once", "inspect.mostOpen", false, "", "the one that began first is told of as it is", "the report says how many are unfinished", "TestConstantMemory"},
		{"transactions of a flow that are whole and not acknowledged", "inspect.mostWaiting", false, "", "the same", "the same", "TestConstantMemory"},
		{"requests of a direction of iWARP that wait for their answer", "inspect/iwarp.MostRequests", false, "", "further answers belong to the request that they name", "none: nothing is lost", "TestAnswersBehindManyRequests"},
		{"segments of a connection that `decode -w` keeps until it is known to be iWARP", "inspect/iwarp.MostEarly", false, "", "the first ones are not written", "none", "TestPassed, TestEarlyIsBounded"},
		{"bytes of those", "inspect/iwarp.MostEarlyBytes", true, "", "the same", "none", "TestPassed, TestEarlyIsBounded"},
		{"places of a direction where a frame of iWARP may begin", "inspect/iwarp.mostCandidates", false, "", "later ones are not looked at", "none: the next frame is found", "TestCandidatesWait"},
		{"bytes of a direction that wait for the set-up of the other one", "inspect/iwarp.mostUnsettled", true, "", "frames are looked for without it", "`decode` says so", "TestMemoryIsBounded"},
		{"connections of iWARP that `report` tells of", "inspect.mostConnections", false, "", "others are left out", "the report says how many", "TestManyConnections"},
		{"Calls of RPC-over-RDMA that wait for their Reply, of all connections", "inspect/rpcrdma.mostCalls", false, "", "further ones are not followed", "none: nothing is said of them", "TestCallsAreBounded"},
		{"segments of those", "inspect/rpcrdma.mostSegments", false, "", "the same", "the same", "TestCallsAreBounded"},
		{"bytes that chunks moved for whole Calls and Replies of those", "inspect/rpcrdma.mostMoved", true, "", "1 KiB is kept of each further one", "`decode -v` says that the rest is not known", "TestMovedIsBounded"},
		{"Replies of a connection without their Call", "inspect/rpcrdma.mostUnasked", false, "", "further ones are not told of", "none", "TestCallsAreBounded"},
		{"clients and servers of which it is known what they left unanswered", "inspect/rpcrdma.mostPairs", false, "", "of others it is not", "none", "TestPairsAreBounded"},
		{"Calls that they left", "inspect/rpcrdma.mostLeft", false, "", "the same", "none", "TestPairsAreBounded"},
		{"procedures of a connection that `report` tells apart", "inspect.mostProcedures", false, "", "others are counted together", "the report says so", "TestManyProcedures"},
		{"flows that `report` follows, the same directions with keys, and who is asked who is there", "inspect.mostFlows", false, "", "others are left out", "the report says how many", "TestMoreFlowsThanFollowed"},
		{"pairs of who failed to reach whom, that `report` tells apart", "inspect.mostFailures", false, " by TCP, and as many by ICMP and ARP", "others are left out", "the report says how many", "TestFailuresAreBounded, TestNoticesAreBounded"},
		{"connections of TCP that are of interest", "capture/tcp.MostKept", false, "", "the one silent for longest is given up", "`decode` says so", "TestBounds"},
		{"other connections of TCP", "capture/tcp.MostOthers", false, "", "the same", "the same", "TestBounds"},
		{"pieces that wait for bytes before them, of a direction", "capture/tcp.MostPieces", false, "", "those before them are taken for lost", "the same", "TestBounds"},
		{"bytes of those", "capture/tcp.MostWaiting", true, "", "the same", "the same", "TestBounds"},
		{"bytes that wait for those before them, of all connections", "capture/tcp.MostInAll", true, "", "those before them are taken for lost", "the same", "TestBounds"},
		{"bytes of frames that are not whole, of all connections", "inspect/iwarp.MostHeld", true, "", "the one silent for longest is given up", "the same", "TestMemoryIsBounded"},
		{"interfaces that a file describes, or a live capture has seen", "capture.maxInterfaces", false, "", "the file is refused; those of a live capture are told anew", "the error", "TestInterfacesAreForgotten, TestWriterOfManyInterfaces"},
		{"a record of a file", "capture.maxRecord", true, "", "the file is refused", "the error", "TestDamagedFile"},
	}},
	{"Commands", []limit{
		{"a ping of `rping --serve`, of which each client has two", "verbs/rping.MaxSize", true, ", or `--size`", "the connection is ended", "a line says so", "TestRpingServerLimits"},
		{"words that `serve` watches, each with its last change that found no room, of 168 bytes", "cmd/dgrdmacat.watchedWords", false, "", "`--watch` fails", "the error", "TestServeUsage"},
		{"an answer that `top` reads", "cmd/dgrdmacat.largestView", true, "", "it is refused", "the error", "TestTopBoundsWhatItReads"},
		{"objects, and elements of lists, of such an answer", "cmd/dgrdmacat.mostParts", false, "", "it is refused", "the error", "TestTopBoundsWhatItReads"},
		{"what `serve` has to print", "cmd/dgrdmacat.journalRoom", false, "", "more is left out", "a line says how many", "TestJournalIsBounded"},
		{"kinds of refusals that `serve` tells apart", "cmd/dgrdmacat.refusedKinds", false, "", "the same", "the same", "TestJournalIsBounded"},
		{"paths of objects that `nfs serve -v` knows by their handles, each of 1.3 KB at most", "cmd/dgrdmacat.mostNFSNames", false, "", "all are forgotten; it prints handles until clients look the names up again", "none", "TestNFSNamesAreBounded"},
		{"answers that `ping --serve --link` keeps until its clients have a free buffer; of a link as many as it has buffers", "cmd/dgrdmacat.pingLinkMemory", true, "",
			"an answer is not sent", "the client misses it", "TestAnswersThatAreNotTaken, TestWireSlowForAnswers"},
		{"slots of a run at `bench --serve`, each of 512 bytes in addition to the memory that is written to", "bench.mostSlots", false, "", "the run is refused", "the error", "TestSlotsAreBounded"},
		{"work requests and receives of a run of verbs, each of a kilobyte", "bench.MostQueued", false, "", "the run is refused", "the error", "TestPlansAreBounded"},
		{"senders that `listen` serves at once", "cmd/dgrdmacat.mostSenders", false, "", "one that sent nothing for 10 s gives way, or the next are refused; a peer gets no more places than it leaves for others", "the sender is told", "TestListenBusyWithMany, TestPlaces"},
		{"watchers of the example `dgrdma-notices`", "examples/dgrdma-notices.mostWatchers", false, "", "the next are refused", "the client is told", "TestNotices"},
		{"clients of the example `dgrdma-kv`, and of `dgrdma-counter`", "examples/dgrdma-kv.mostClients", false, "", "the next are rejected", "the client is told", "TestTooManyClients"},
		{"writers that wait for the example `dgrdma-log`", "examples/dgrdma-log.mostWaiting", false, "", "the next are rejected", "the writer is told", "TestTooManyWait"},
		{"lines at once that a server prints of what peers do; then it prints one a second, but all words that `serve` watches", "cmd/dgrdmacat.mostLines", false, "", "more are left out", "a line says how many, once a minute and at the end", "TestPeerLogIsBounded, TestJournalIsBounded"},
	}},
}

// settingOf returns the setting of a field of the configuration.
func settingOf(field string) *settings.Setting {
	for _, s := range settings.All {
		if s.Field == field {
			return s
		}
	}
	return nil
}
