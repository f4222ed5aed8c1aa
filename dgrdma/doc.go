// Package dgrdma moves data between machines by one-sided writes over
// datagrams: the OpenCPI Datagram RDMA protocol (DG/RDMA v1.07), without an
// RDMA NIC.
//
// # Model
//
// An [Endpoint] owns a block of memory, usually a [Region]. A peer writes into
// it in transactions: bytes placed at addresses, then one 32-bit completion
// word, written after all of them. What verbs call an RDMA write with immediate
// is one [Transaction]. Lost frames are sent again, duplicates are filtered, and
// each completion is written exactly once, never before its data.
//
// At the receiving end:
//
//	memory, _ := dgrdma.NewRegion(1 << 20)
//	b, _ := dgrdma.Open("udp:7100", &dgrdma.Config{Memory: memory, AcceptAny: true})
//	memory.WaitFor(ctx, 0, 1) // the data is there; only ctx ends it otherwise, not b.Close
//
// and at the sending one:
//
//	a, _ := dgrdma.Open("udp", nil)
//	toB, _ := a.Dial("udp:10.0.0.2:7100") // b's, or the string that its URL returns
//	err := toB.Write(ctx, &dgrdma.Transaction{
//		Segments:   []dgrdma.Segment{{Addr: 4096, Bytes: data}},
//		Completion: dgrdma.Word(0, 1),
//	})
//
// # Buffers
//
//	memory                                owner                       until
//	Transaction and its Segments' bytes   the library, to be read     Done is called, also on errors and Close
//	Region.Bytes                          application and peers       a completion word read with Load32 orders
//	                                      together                    the data before it; nothing else does
//	slices returned by Memory.Admit       the library, to be written  the frame is placed
//
// What keeps a peer from overwriting data that was not used yet is flow control
// by transactions in the other direction; package link does it.
//
// # Concurrency
//
// All methods may be called from any goroutine. An endpoint has two goroutines, and none
// per connection. With Config.Manual it has none: Progress runs it, and so does a call that
// waits, until what it waits for is there: Write, Shutdown, Region.Wait,
// CompletionQueue.Wait, Await, and the calls of package link that block. Poll, and a read
// of Conn.Done, run nothing. Region.Wait runs the endpoints that have the Region as
// their memory, CompletionQueue.Wait those on which something was posted.
//
// # Callbacks
//
// Done, OnEvent, and the methods of a Memory and of a Handler must not block, and may
// post. They run on the endpoint's two goroutines, and on those of the application that
// drive it, by one of the calls above: always with Config.Manual, and else where they
// wait, without Config.NoHelp. Close calls Done for what is left. None of them runs
// in Post, or in another call that neither drives nor closes. Trace, Copied, Packed,
// NewController and its controllers, Entropy, PerConn.For and Service.Meet may run in any
// call, mostly under locks: they must not call the endpoint.
//
// A call that waits in a callback, such as Write, keeps the endpoint from receiving what it
// waits for. It returns when the peer is given up, with an error that says so. A callback
// must return: it must not end its goroutine, as t.FailNow does. One that panics ends the
// program. If the program recovers the panic, which it can on its own goroutines, and
// net/http does, the endpoint may have failed: [Endpoint.Err] tells, and Close returns.
//
// Close and Shutdown wait for callbacks that run, so a callback that called them would wait
// for itself: it calls [Endpoint.Stop].
//
// # Ordering
//
// None is promised, neither between transactions nor within one: only that a
// transaction's completion comes after its data. After an error the peer may
// hold any part of a transaction's data, and may even have completed it, if
// only the acknowledgement was lost.
//
// So a counter in one completion word, written by transactions that are under way at
// the same time, can go backwards, and stay there: of two that write 7 and 8 to it, the
// one with 7 may be lost, sent again, and complete last. A program that waits for "at least 8" then
// waits in vain. Give each transaction a word of its own, as links do; or wait until one
// is done before the next is posted; or set [Transaction].Fence, which does that for
// you: a fenced transaction leaves when all that were posted before it are done, by the
// same [Flow] or, for Conn.Post, on the connection, urgent ones aside.
//
// Transactions of a flow begin in the order in which they were posted, and flows of a
// connection take turns. One with Urgent set passes all that has not begun.
//
// # Errors
//
// Post fails at once for what can never work ([ErrBounds], [ErrTooLarge],
// [ErrAlignment]) or not now ([ErrQueueFull]). What fails later arrives in Done
// as a *[PeerError] that wraps [ErrPeerDown], [ErrPeerClosed], [ErrRefused] or [ErrFalseAck], which are ErrPeerDown too,
// [ErrPeerRestarted] or [ErrReset],
// or as [ErrClosed], which is net.ErrClosed too. Frames that are refused are
// counted by reason and reported to OnEvent, never returned.
//
// A failed call returns nil with its error, and a method of a nil or zero object panics, as
// elsewhere in Go, in packages link and verbs too. There are two exceptions: a zero Region
// has no memory, and the half that a link lacks is nil by design (link.ErrNoHalf).
//
// # Peers
//
// Peers differ: a [Profile] holds what is known of a kind. Native is this
// implementation; FPGA, OpenCPI, OpenCPI2 and Legacy are OpenCPI's. Peers of
// our own kind agree on a session before data flows, and each of their frames names it, so that
// neither mistakes a restarted peer for the one it knew. A peer that takes no session says why:
// the error is [ErrRefused].
//
// An endpoint string is complete with the size of the memory and the id: ocpi-udp-rdma:10.0.0.2;7100;1048576.9.65535.
// Of peers of our own kind that accept others udp:10.0.0.2:7100 is enough, as over UDP a port is one
// endpoint's: Dial asks it for the rest. One that has another id than the string says so
// at once: the connection fails with [ErrWrongID].
//
// # Peers that leave, die or restart
//
// Close and Shutdown of an endpoint, and Close of a connection, tell peers of our own
// kind: there the connection is down at once, with [ErrPeerClosed], until [Conn.Reset], or
// until the peer asks for another session. What was received is acknowledged before, and
// is done there, while all else that is pending fails. Both are sent once and may be lost; then it
// is as if the peer had died, and what waited for the acknowledgement fails though it arrived.
//
// A peer that acknowledges nothing for Config.GiveUp, though something was posted to it,
// is down: what is pending fails with [ErrPeerDown], and so does what is posted from then
// on, until [Conn.Reset], or until a peer of our own kind asks for another session. One that sends a frame of
// the old session, because it stood still or was away, is told that it is over: what is pending there fails with
// [ErrPeerRestarted], and it asks for another session at once.
//
// Where nothing is posted nothing is noticed, but with Config.KeepAlive: a peer of our own kind that
// is silent for so long, or that never came, is asked whether it is there. A program that waits for what one
// peer writes does so by [Conn.Wait] or [Conn.WaitFor], which end with the connection.
//
// A peer of our own kind that restarted is taken back at once, unless Config.KeepOldLife
// says otherwise: what was pending fails with [ErrPeerRestarted], and what is posted next
// goes to its new life. Dial of a peer that is connected fails with [ErrPeerExists]: to
// begin again call Reset, or close the connection first: the latter where this machine has another address by now.
//
// # Services
//
// Several owners can share the addresses of an endpoint. Its memory is the service
// [MemoryService], or what [Config.Service] calls it; [Endpoint.Serve] adds others, as
// package link does with link.On. Each [Service] has a window of the addresses, into which
// a peer writes only what the service admits; mail, by which the two sides agree on what
// that is; and hears of the peer's life in order with what it admits. Peers of our own
// kind tell each other in the handshake of a session which services they have. What is posted to
// one that is not there fails with [ErrNoService], a [*ServiceError] says which are, and
// nothing of it is sent: so a program that dials the wrong kind of endpoint learns that
// before it writes.
// Addresses are not checked against the service that was meant: what lies in the window of
// another one is that one's to admit or to refuse, and each sees only what lies in its own.
// Where a peer's window begins its service says by letter. Peers of other kinds say nothing; all they have is taken for
// memory.
//
// # Keys
//
// With [Config.Keys], which [ReadKeys] takes from a file, an endpoint seals all that it sends, and takes nothing that is
// not sealed: endpoints with the same keys understand each other, and no other program can read, forge or replay
// what they say. A peer that has none, or another one, is silent: what is posted to it fails after GiveUp, with [ErrNoKey], which
// is ErrPeerDown too. Endpoints that share a key can speak for each other.
//
// # Limits
//
// Endpoint memory up to 4 GiB, 65535 messages per transaction; [Open] has the bounds of
// what can be set. Without keys there is no encryption and no authentication: ids and addresses can be
// forged by anyone on the network, and payload integrity is the datagram layer's.
package dgrdma
