// Package simnet is a datagram network in memory, for tests: links with
// latency, a rate, a queue and faults on demand, repeatable from a seed, in
// real or in virtual time (testing/synctest).
//
// # Model
//
// A [Network] joins [Conn] endpoints, each attached at an address of any kind.
// Between two addresses there is one link per direction. It is perfect, that
// is immediate and without loss, until [Network.Link] says otherwise:
//
//	net := simnet.New(1)
//	defer net.Close()
//	a := net.Attach(Addr(1), simnet.Config{})
//	b := net.Attach(Addr(2), simnet.Config{})
//	net.Link(a.LocalAddr(), b.LocalAddr(), simnet.Link{
//		Latency: 5 * time.Millisecond,
//		Loss:    0.01,
//	})
//	a.Send([]transport.Outgoing{{To: new(b.LocalAddr()), Buf: buf}})
//	n, err := b.Recv(datagrams, transport.Forever) // 5 ms later
//
// A datagram passes the stages of its link in this order: Down, Script, Rate
// and Queue or Through, HoldBack, Loss, Corrupt, Damage, Latency with Jitter, Reorder, Duplicate.
// At the end it is put into the receive queue of whoever is attached at the
// destination then, which may be a later endpoint than at the time of sending:
// a process that was restarted gets the datagrams meant for its predecessor.
// Every datagram that does not arrive is counted, by reason, in [LinkStats].
//
// # Bottlenecks
//
// Links that name the same [Bottleneck] share its queue and its rate, and have
// each its own way after it:
//
//	slow := net.NewBottleneck(bottleneck.Config{Rate: 20_000_000, Queue: 100_000})
//	net.Link(a, server, simnet.Link{Through: slow, Latency: 20 * time.Millisecond})
//	net.Link(b, server, simnet.Link{Through: slow, Latency: 100 * time.Millisecond})
//
// Package bottleneck says what a queue can be, and how its rate changes.
// [Bottleneck.Stats] has what came of each link, what was dropped, and how long
// the rest waited. What can carry a mark (ECN) is marked where others are dropped by
// CoDel; [Link.Remark] changes marks as a router may.
//
// # Repeatability
//
// Chance is drawn from one generator per direction and fault, derived from the
// seed and the two addresses. So the n-th datagram of a direction meets the
// same fate in every run, whatever other directions do at the same time, and
// turning one fault on does not move the others. Deliveries are ordered by
// (time, link, count). What no network can order is two goroutines of the test
// that act in the same instant: give directions into one receiver different
// latencies if the order of their datagrams matters.
//
// # Virtual time
//
// Inside a synctest bubble create the Network in the bubble. Endpoints block on
// channels only; the network has no goroutines of its own, just one timer that
// is started when the first datagram has to wait. A datagram over a link
// without delay is in the receiver's queue when Send returns.
//
// # Rules
//
// Buffers: as in package transport. Send copies, and overwrites the headroom as
// a real wire may; Config.Poison overwrites what Recv returned as soon as it
// dies. Concurrency: everything may be called at any time from any goroutine,
// but per Conn only one Recv and one Send at once; a Script runs inside Send
// and must not call the Network or its Conns. Errors: after Close, Recv and
// Send fail with net.ErrClosed to errors.Is; a frame beyond the MTU fails with
// [ErrFrameSize]; impossible configurations panic.
//
// # Limits
//
// One mutex guards the network, which suits tests with a handful of endpoints.
// Rate counts the bytes of frames only, not the headers of a real wire. What
// is under way is bounded only where Rate or Through is set. There is no
// multicast.
package simnet
