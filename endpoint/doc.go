// Package endpoint is the engine of DG/RDMA: connections, transactions, and the
// two goroutines between a transport and a block of memory.
//
// Programs use it through package dgrdma. This package promises no compatibility: what it
// exports may change at any time. Package dgrdma shows its types to programs; whoever
// changes what they show writes that anew: go test ./dgrdma -run TestFaceIsWritten -write.
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
// Package sched says which goroutine receives and sends, and when. Who receives takes a
// batch of datagrams, checks each frame whole, and places it at once: nothing that was
// received is queued or handed on. At the end of a batch it takes the lock of each
// connection that was heard, once, to apply acknowledgements and to publish what is to
// be acknowledged. Who sends packs frames of all connections with work and gives them
// to the transport: the receiving goroutine after a batch, a caller of Post when nothing
// else is under way, a goroutine of its own otherwise.
//
// State is kept in three groups, named in [Conn]: what who receives owns, what the
// connection's mutex guards, and what never changes. Locks are taken in the order
// Endpoint.mu, Conn.mu, then the leaves: those of the scheduler's lists, of the table of
// peers, of cookies and of answers; the turns to receive and to send come before all of
// them. These callbacks run under locks: Trace.FrameSent and FrameLost,
// Transaction.Copied, PerConn.For, NewController with its controllers, and Entropy.
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
package endpoint
