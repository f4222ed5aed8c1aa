// Package ack is the reliability of DG/RDMA as passive state machines: they are
// told what happened and when, and answer what is to be done. None of them reads
// a clock, starts a goroutine or sends anything.
//
// Package endpoint uses it. It promises no compatibility: what it exports may change at
// any time.
//
// A [Receiver] filters the duplicates of one peer's frames and collects what is
// to be acknowledged; [PendingAcks] holds that until frames take it along:
//
//	New --Accept--> Duplicate --(History newer ids)--> Old
//	                   |
//	                 Again: due once more
//
// A [Sender] gives ids to frames and knows what became of them:
//
//	          Track               AppendAcked
//	(no id) --------> sent ------------------------> free
//	                  ^  |                             ^
//	           Resend |  | EndBatch, Expire            | AppendAcked
//	                  |  v                             |
//	                  lost ----------------------------+
//
// Both are for peers without sessions, in files that begin with v107. [Flight] and [ReceivedIDs] are for the others, in files that begin
// with session: their acknowledgements never become false, and say which copy of a frame arrived.
//
// Invariants: an id is acknowledged once; the ids in use span less than the
// peer's history, so that the peer can tell a retransmission from an old copy;
// nothing is acknowledged before it was accepted; frames that hold nothing but
// acknowledgements are neither acknowledged nor awaited.
//
// A [Controller] bounds the bytes in flight: [Adaptive] by default,
// [FixedWindow] for links that belong to one user.
//
// Both halves of a connection that sends and receives, in outline:
//
//	seq := sender.Track(now, len(frame))          // a new frame leaves
//	acked, ok := sender.AppendAcked(nil, now, run) // a run of ids came back
//	sender.EndBatch(now)
//	for q, ok := sender.NextLost(now); ok; q, ok = sender.NextLost(now) {
//		sender.Resend(now, q)
//	}
//	if receiver.Check(id) == ack.New { // a frame came
//		place()
//		receiver.Accept(id, tag)
//	}
//	due.Take(now, &receiver) // at the end of a batch
//
// # Rules
//
// Concurrency: no type here is safe for concurrent use; each documents where it
// lives. Buffers: results are appended to slices of the caller. Errors: there
// are none; what the network says wrongly is reported by a false ok. Limits:
// windows of up to [MaxWindow] frames, runs of up to 255 ids.
package ack
