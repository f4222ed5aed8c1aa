// Package foreign is what an endpoint knows of a peer without sessions: OpenCPI's drivers and cards, which speak DG/RDMA v1.07. It
// has no goroutine, lock, clock or socket. It promises no compatibility: it is for the engine.
//
//   - A [Profile] is what must be known of a kind of peer. Its fields name the rows of docs/quirks.md that they answer.
//   - A [Receiver] says of each frame of the peer whether it is new, a copy, or of another life, and keeps what the peer acknowledges.
//   - A [Sender] has the ids of our frames, what is to be acknowledged, and the headers that say so.
//   - A [Peer] is both, where they meet: at the end of a batch.
//
// A quirk that needs a memory has a file of its own, which has its number: f5_card_was_reset.go, f16_overcount.go, f5_stale_card.go, v4_copies.go,
// v9_missed.go.
//
// # Whether a frame is a copy
//
// A peer without sessions starts again with ids that are known here. To acknowledge a frame of the new life as a copy loses it silently
// (DGRDMA-041); to refuse a copy leaves the peer without its acknowledgement, and a C++ driver ends at its 256th frame after that (quirk
// D1-6). What a frame is, with d ids from it to the newest one, of which the profile says:
//
//	ahead by more than Ahead  foreign the first time. While the data of this life comes,
//	                          so is each but of a younger transaction, and the same again
//	                          of one that is not over: the network held it back for half
//	                          of all ids
//	ahead (d < 0)             new
//	d >= Behind               foreign: the peer cannot wait for it any more, so it was
//	                          held back by the network, or a new life sent it
//	not received so far       new
//	older transaction than    foreign: the transaction of a frame only changes when its
//	came under this id        request is posted again, under a newer one
//	same transaction, other   foreign, but for peers that keep the id of a transfer (quirk
//	address, words or counts  L5): their request was posted again
//	last copy CopyFor ago,    foreign: the peer would have sent it again during that time.
//	among the first ids       In the middle of a life an outage looks like this
//	anything else             a copy, whatever its header says: drivers send a frame
//	                          again with the header that its request has now (V3)
//
// Once a life is suspected, CopyFor counts for all ids. So a new life that sends the like, to the same places, within CopyFor of the first
// ids of the old one cannot be told from it, and is acknowledged (V4). The data does not help: a buffer that is filled again before it is
// posted again looks the same.
package foreign
