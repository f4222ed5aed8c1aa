// Package endpoint is the engine of DG/RDMA: connections, transactions, and the
// two goroutines between a transport and a block of memory.
//
// Programs use it through package dgrdma. This package promises no compatibility: what it
// exports may change at any time. Package dgrdma shows its types to programs; whoever
// changes what they show writes that anew: go test ./tests/face -write.
//
//	e, err := endpoint.New(wire, &endpoint.Config{ID: 1, Memory: region, OnEvent: log})
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	c, err := e.Connect(endpoint.Peer{ID: 2, Addr: addr, Size: 1 << 20})
//	if err != nil {
//		return err
//	}
//	err = c.Post(&endpoint.Transaction{Segments: segments, Completion: endpoint.Word(0, 1), Done: done})
//
// Rules about buffers, concurrency, ordering and errors, and the limits, are in
// the documentation of package dgrdma.
//
// # What runs where
//
// Package sched gives two turns to goroutines. The receiver is the goroutine that has the
// turn to receive, the sender the one that has the turn to send. The receiver takes a batch
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
// frame, and at the others only for that, see receiving.follow; what comes of them is what
// would come of them one by one. The sender makes them in a row, see sending.packRun, keeps
// nothing of them but which part each holds, and makes those that are lost again: the bytes
// are the library's until Done. Frames with several messages, with the end of a transaction,
// or of a transaction with Copied are kept until they are acknowledged.
//
// Of large frames the sender gives the transport headers, and the data where the transaction
// has it, see batch.frame. So whatever ends a transaction, Done waits until nothing of it is
// being sent.
//
// The receiver copies. The system could put data where it probably goes, and what came of that
// was measured in this engine, over UDP with a MTU of 9000 and of 65535: with transactions of
// 1 and 16 MiB it carries as much as with a copy, with 4 MiB 1.1 to 1.17 times as much. But no
// message says how far its transaction reaches. What comes behind the end of a segment would be
// written over memory that is none of the transaction's, before anyone can look.
//
// # The rules of locking
//
// A type says which of them a method needs: receiving, sending, or Conn, which has both.
//
//  1. The receiver owns the datagrams, the desk and the receiving half of every connection,
//     without a lock.
//  2. The sender owns the batch of frames and the list of those to settle, and alone gives
//     frames to the transport.
//  3. The mutex of a connection guards its sending half; Conn takes it, methods of sending
//     run under it, and the receiver passes on what it learnt in Conn.endBatch, and in the
//     midst of a batch only what introduces another life (native.hello).
//  4. Every goroutine takes the turn to receive, the turn to send, Endpoint.mu, one Conn.mu
//     and one leaf in this order; the leaves are the locks of the scheduler's lists, of the
//     table of peers, of cookies, of answers and of the log.
//  5. Who gives a connection something to send queues it under its mutex and calls
//     Scheduler.Work without locks; sending.next alone says whether there is something, and
//     who ends a turn or a batch asks it again.
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
// events come from who acts on deadlines. A stranger's answer is traced on the sender.
//
// Done runs without a lock, where a transaction is found done: on the receiver, for what a
// batch acknowledged or a new life of the peer gave up; for all else on who delivers
// answers, which is the endpoint's sending goroutine, or who drives the endpoint in its
// place. What is left in the end Close answers itself. Whose goroutines those are is in the
// documentation of package dgrdma, under Callbacks.
//
// A callback that ends its goroutine, or panics on one of the application's, fails the
// endpoint: what is pending is answered with [ErrCallback], and Close still ends
// everything. So does one that Reset calls; if Connect calls it, there is no connection,
// and nothing else happened. A panic on a goroutine of the endpoint's ends the process.
// A callback that closes its endpoint does not wait: see [Endpoint.Close].
//
// # Strangers
//
// With AcceptAny, nothing is kept of a stranger before it has shown that it gets what
// is sent to its address: see cookies. Work for a frame is bounded by its length, and
// what is kept for peers by [Config.OpenMemory], MaxPeers and PeersPerHost.
// SECURITY.md has the table of attacks, and the tests.
//
// # Services and flows
//
// Windows of the address space belong to services; a message is the one's in whose window
// it completes, or else its data goes, and each asks its own service alone. Introductions
// say which services there are and where they begin, and nothing is posted to one that is
// not there. Transactions wait in flows, see lanes: those of a connection take turns, so
// that little waits for one turn of each of the others.
//
// # Whether something was applied
//
// Between peers of our own kind this is decided by transaction id and message
// index, not by frame id: frame ids wrap within milliseconds on a fast link,
// and a copy that the network held back may look new. A frame is acknowledged
// only if this very frame was applied in the peer's present life; everything
// doubtful is dropped without acknowledgement, so that its sender notices: see doubt.
//
// # Words
//
// Most words are those of the specification and of the field. These are ours:
//
//	life         an incarnation of an endpoint towards a peer: from its start, or a Reset,
//	             to the next; [Conn.Life] counts those of a connection
//	hello        the handshake between peers of our own kind: each introduces its life, and
//	             believes the other's when that names its own
//	native       a peer of our own kind, which introduces its lives; foreign: any other
//	connected    a peer that the program named; learned: one that only its frames named
//	stranger     a source of frames that is neither
//	admit        to check a message and say where its data goes; place: to copy it there
//	copy         a frame that came before: a retransmission, or one that the network doubled
//	held back    delayed by the network for so long that its id may mean another frame
//	doubt        a frame that may be a copy held back: it is dropped, and not acknowledged
//	stamp        the life and the ids in 32 bits that a frame without messages carries, so
//	             that one that was held back is told from a present one
//	service      an owner of some of an endpoint's addresses, its window; channel: what it has
//	             of one connection; letter: what it sends to that of the same name there
//	flow         a queue of transactions of one connection; turn: what of it is packed before
//	             the next one's; urgent: passes all flows
//	alone        of an acknowledgement: in a frame without messages (ACK-only)
//	carried      of an acknowledgement: in a frame with messages (piggybacked)
//	company      other transactions for the same frame, which Coalesce waits for
//	part         a message that fills a frame, from the midst of a segment
//	run          frames in a row that hold the parts of a segment in order
//	open         of an incoming transaction: begun and not complete; over: complete, or lost
//	checksum     a CRC32C at the end of a frame, where both sides want it; checked: of a frame that has one
//	size probe   an introduction as long as frames might be, to find out whether they arrive
//	missed       of a frame: it never came, and its sender never sends again
//	goodbye      the end of a life, said to the one that it was introduced to
//	given up     of a peer: down, as it acknowledged nothing for GiveUp
//	dismissed    of a learned peer: forgotten, to make room for another one
package endpoint
