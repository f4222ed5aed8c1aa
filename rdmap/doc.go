// Package rdmap is one stream of RDMA messages: RFC 5040, with the atomics and the immediate
// data of RFC 7306 and Flush, Verify and Atomic Write of draft-talpey-rdma-commit-01.
//
// A [Stream] is a passive machine: it reads no clock, starts no goroutine, has no lock, and touches
// no socket. Three drive it, one after the other:
//
//   - the program posts work requests ([Stream.Post]) and receives ([Stream.PostReceive]);
//   - the carrier below (package rdmap/ddp says what it is) asks for the next message and tells
//     what it has sent ([Stream.Next], [Stream.Sent]), asks where a segment goes and tells which
//     messages are complete ([Stream.Place], [Stream.Deliver]);
//   - whoever has time for it carries out what takes long ([Stream.Job], [Stream.JobDone]).
//
// What is done goes to [Completions], each request once, in the order in which requests were
// posted. Where the bytes of this side are, [Memory] says, which several streams share.
//
// # Halves
//
// The requester has the send queue and what the peer has not answered; the responder the
// requests of the peer, at most IRD, and carries them out one by one in the order in which
// they came. Their messages take turns. The third part are the receives.
//
// # The end
//
// A stream ends by a fault that this side found, for which a Terminate goes to the peer as its
// last message; by a Terminate of the peer; or because its connection ends. From then on nothing
// is placed or delivered. Requests that are not done complete with [ErrFlushed] and the reason when
// the carrier has let go of their buffers, and says so by [Stream.End].
//
// # What the texts leave open
//
// The sink of a Read has an STag that names no registered memory: answers are found by the order of
// requests, and STag, offset and length must be those that were asked for (RDMAP-044). A Read of nothing
// is never outstanding with others, because siw answers it wrongly then. A request of another length than its
// header, or an unknown atomic operation, ends the stream with 0/2/07, as no text names a
// code. Of a Terminate both bit orders are understood, that of RFC 5040 and that of siw.
package rdmap
