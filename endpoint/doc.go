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
// State is kept in three groups, named in [Conn]: what who receives owns, what the
// connection's mutex guards, and what never changes. Locks are taken in the order
// Endpoint.mu, Conn.mu, then the leaves: those of the scheduler's lists, of the table of
// peers, of cookies and of answers; the turns to receive and to send come before all of
// them. These callbacks run under locks: Trace.FrameSent and FrameLost,
// Transaction.Copied, PerConn.For, Service.Meet, NewController with its controllers, and Entropy.
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
//	alone        of an acknowledgement: in a frame without messages (ACK-only)
//	carried      of an acknowledgement: in a frame with messages (piggybacked)
//	company      other transactions for the same frame, which Coalesce waits for
//	open         of an incoming transaction: begun and not complete; over: complete, or lost
//	missed       of a frame: it never came, and its sender never sends again
//	given up     of a peer: down, as it acknowledged nothing for GiveUp
//	dismissed    of a learned peer: forgotten, to make room for another one
package endpoint
