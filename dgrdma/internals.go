// The engine, for its developers: what runs on which goroutine, the rules of locking, and the words. What programs see is in
// doc.go.
//
// # What runs where
//
// Package run decides which goroutine receives and sends. The receiver is the holder of the
// receive lock, the sender the holder of the send lock. The receiver takes a batch
// of datagrams, checks each frame whole, and places its data at once: it queues nothing and
// hands nothing on. At the end of the batch the receiver takes the lock of each connection
// that was heard, once, to apply acknowledgements and to publish what is to be
// acknowledged. The sender packs frames of all connections with work and gives them to the
// transport. The receiver becomes the sender after a batch, a caller of Post when nothing
// else is under way, and a goroutine of the endpoint's own otherwise.
//
// # Runs
//
// Most frames of a long transaction go on where the one before ended: under the next id, with
// the next part of the same segment. The receiver looks at the first of such a run as at any
// frame, and at the others only for that, see foreignReceiving.follow; what comes of them is what
// would come of them one by one. The sender makes them in a row, see sending.buildRun, keeps
// nothing of them but which part each holds, and makes those that are lost again: the bytes
// are the library's until Done. Frames with several messages, with the end of a transaction,
// or of a transaction with Copied are kept until they are acknowledged.
//
// Of large frames the sender gives the transport headers, and the data where the transaction
// has it, see package outgoing. So whatever ends a transaction, Done waits until nothing of it is
// being sent.
//
// The receiver copies. The system could put data where it probably goes, and what came of that
// was measured in this engine, over UDP with a MTU of 9000 and of 65535: with transactions of
// 1 and 16 MiB it carries as much as with a copy, with 4 MiB 1.1 to 1.17 times as much. But no
// message says how far its transaction reaches. What comes after the end of a segment would be
// written over memory that is none of the transaction's, before anyone can look.
//
// # The rules of locking
//
// A type says which of them a method needs: receiving, sending, or Conn, which has both.
//
//  1. The receiver owns the datagrams, the scratch and the receiving half of every connection,
//     without a lock.
//  2. The sender owns the batch of frames and the list of those to settle, and alone gives
//     frames to the transport.
//  3. The mutex of a connection guards its sending half; Conn takes it, methods of sending
//     run under it, and the receiver passes on what it learnt in Conn.endBatch, and in the
//     middle of a batch only what begins or ends a session (sessionPeer.acts).
//  4. Every goroutine takes the receive lock, the send lock, Endpoint.mu, one Conn.mu
//     and one leaf in this order; the leaves are the locks of the scheduler's lists, of the
//     table of peers, of epochs, of answers and of the log.
//  5. A goroutine that gives a connection something to send queues it under its mutex and calls
//     Scheduler.Work without locks; sending.next alone says whether there is something, and
//     the goroutine that releases the send lock or ends a batch asks it again.
//
// What never changes, and the few atomic words that one half sets for the other, are in
// terms.
//
// # Callbacks
//
// These run under locks, and must not call the endpoint:
//
//	under Conn.mu      Transaction.Copied and Packed, Trace.FrameSent and FrameLost,
//	                   NewController and the methods of its controllers, Entropy
//	under Endpoint.mu  PerConn.For, Service.Meet
//
// These run on the receiver, without a lock: Memory.Admit and Complete, Placed,
// Handler.Letter, Trace.FrameReceived, the functions given to AfterBatch, and most events. The other
// events come from the goroutine that acts on deadlines. The answer to an unknown source is traced on the sender.
//
// Done runs without a lock, where a transaction is found done: on the receiver, for what a
// batch acknowledged or the end of a session failed; for all else on the goroutine that delivers
// answers, which is the endpoint's sending goroutine, or one that polls the endpoint in its
// place. What is left in the end Close answers itself. Whose goroutines those are is in doc.go, under Callbacks.
//
// A callback that panics ends the program. If the program recovers the panic, what was half
// done does not go on: the scheduler breaks, see package run. The locks are free, so that a
// deferred Close does not keep the panic from the program.
// A callback ends its endpoint by [Endpoint.Stop], which does not wait.
//
// # Unknown sources
//
// With AcceptAny, nothing is kept of an unknown source before it has shown that it gets what
// is sent to its address: the epoch that it is told is computed, see package session. Work for a frame is bounded by its length, and
// what is kept for peers by [Config.OpenMemory], MaxPeers and PeersPerHost.
// SECURITY.md has the table of attacks, and the tests.
//
// # Services and flows
//
// Windows of the address space belong to services; a message is the one's in whose window
// it completes, or else its data goes, and each asks its own service alone. HELLO, WELCOME and
// CONFIRM say which services there are and where they begin, and nothing is posted to one that is
// not there. Transactions wait in flows, see package queue: those of a connection take turns, so
// that little waits for one turn of each of the others.
//
// # Whether something was applied
//
// A frame of a session names it by a tag, and its id is never used again in that session: which ids
// arrived is exact over all 32 bits, see ack.ReceivedIDs. So each frame is applied once, whole or not at all,
// and receiving needs to count how many messages of a transaction came. A frame is
// acknowledged only if it was applied. What the network held
// back from an earlier session changes nothing: it has another tag.
//
// Ids of peers without sessions have 16 bits and wrap, so that a frame that was held back may look new: see package foreign.
//
// # Words
//
// Most words are those of the specification and of the field. These are ours:
//
//	life         what a connection is from its start, a Reset or a restart of the peer to the next; [Conn.Life] counts them
//	session      what two peers of our own kind have from their handshake on: a pair of epochs, see package session
//	native       a peer of our own kind, which has sessions; foreign: any other
//	connected    a peer that the program named; learned: one that only its frames named
//	unknown      of a source of frames: it is neither, see package admission
//	check        all messages of a frame, before anything of it is done; apply: to write their data and completion words
//	copy         a frame that came before: a retransmission, or one that the network doubled
//	held back    delayed by the network for so long that its id may mean another frame
//	service      an owner of some of an endpoint's addresses, its window; channel: what it has
//	             of one connection; letter: what it sends to that of the same name there
//	flow         a queue of transactions of one connection; urgent: passes all flows; see package queue
//	partial      of a transaction: it is in some frames, and not as a whole
//	alone        of an acknowledgement: in a frame without messages (ACK-only)
//	carried      of an acknowledgement: in a frame with messages (piggybacked)
//	company      other transactions for the same frame, which Coalesce waits for
//	part         a message that fills a frame, from the midst of a segment
//	run          frames in a row that hold the parts of a segment in order
//	open         of an incoming transaction: begun and not complete; over: complete, or lost
//	checksum     a CRC32C at the end of a frame, where both sides want it; checked: of a frame that has one
//	size probe   a PROBE as long as frames might be, to find out whether they arrive
//	bell         a frame of a session without messages, which is acknowledged: whether the peer has the session
//	missed       of a frame: it never came, and its sender never sends again
//	given up     of a peer: down, as it acknowledged nothing for GiveUp
//	evicted      of a learned peer: forgotten, to make room for another one

package dgrdma
