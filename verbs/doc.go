// Package verbs is RDMA for Go programs without an RDMA NIC: queue pairs, registered memory, Send and
// Receive, one-sided Write and Read, atomics, immediate data, Flush, Verify and Atomic Write. It speaks
// iWARP over TCP (RFC 5040, 5041, 5044, 6581, 7306), as iWARP NICs and Linux's siw do.
//
//	host, err := verbs.Open("tcp")
//	l, err := host.Listen("7471")
//	request, err := l.Accept(ctx)
//	region, err := host.Register(make([]byte, 1<<20), verbs.RemoteRead|verbs.RemoteWrite)
//	qp, err := request.Accept(ctx, &verbs.Options{Private: verbs.KeyOf(region).Bytes()})
//
// and at the other side
//
//	qp, err := host.Dial(ctx, "tcp:10.0.0.2:7471", nil)
//	key, err := verbs.ParseKey(qp.Private())
//	err = qp.Write(ctx, key, 4096, data) // into the peer's memory, of which its program hears nothing
//	err = qp.Read(ctx, data, key, 0)
//	err = qp.Close()
//
// # Memory
//
// What a peer may touch is registered: a [Region] is a run of bytes with [Rights], or a part of a
// file ([memory.Domain.RegisterFile]). Whoever has its [Key] can use it, if it is of the same [Domain].
// [memory.Region.Invalidate] withdraws it, synchronously: when it returns, nothing that is on its way
// changes the bytes. What this side sends needs no registration.
//
// # Requests
//
// A call such as [QueuePair.Write] carries out one request and returns when it is done. [QueuePair.Post] queues
// one and returns at once; the [CompletionQueue] tells when it is done, in the order of posting. That a
// Write or a Send is done says that its buffer is free, and no more; a Read, an atomic, a Flush, or what the
// peer's program says afterwards tell that it arrived. Posting allocates nothing.
//
// Each message that a peer sends takes a receive, in the order of posting. One for which there is
// none ends the connection, so programs agree on how many may be outstanding, and post the first
// ones with [Options.Posted].
//
// What waits for the peer's answer (Reads, atomics, Flush, Verify, Atomic Write) is limited by what the
// peer keeps, ORD; what is behind waits. [Work.Fence] holds a request back until all answers are
// there: without it, a Write may overtake the answer to a Read before it.
//
// # Extensions
//
// Nothing on the wire tells whether a peer knows the operations beyond RFC 5040, and one that does not ends the
// connection. So they are used only if [Options.Extensions] of both sides name them.
//
// # The end
//
// A fault in what a peer sends ends the connection with a Terminate message that names it: both sides get
// a [TerminateError]. There is no other kind of recovery: requests that are not done complete
// with [ErrFlushed], which wraps the reason, and the program dials anew. [QueuePair.Close] ends it when everything
// that is posted is done.
//
// # Checksums
//
// By default frames have a CRC: data is checked before it is placed. Without ([Options.NoCRC], of both
// sides) TCP's checksum is all there is, and data is received straight into its place.
//
// # Concurrency
//
// All methods of all types may be called by many goroutines. Memory that a peer writes to is
// written by a goroutine of its queue pair: the program may read it after a completion has told it to.
package verbs
