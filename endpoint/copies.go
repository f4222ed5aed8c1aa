package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// A peer that does not introduce its lives starts again with ids that we know.
// To acknowledge a frame of the new life as a copy loses it silently
// (DGRDMA-041); to refuse a copy leaves the peer without its acknowledgement, and
// a C++ driver ends at its 256th frame after that (quirk D1-6). What a frame is,
// with d ids from it to the newest one, of which the profile says:
//
//	ahead (d < 0)             new
//	d >= Behind               foreign: the peer cannot wait for it any more, so it was
//	                          held back by the network, or a new life sent it
//	not received so far       new
//	older transaction than    foreign: the transaction of a frame only changes when its
//	came under this id        request is posted again, under a newer one
//	same transaction, other   foreign, but for peers that keep the id of a transfer (quirk
//	address, words or counts  L5): their request was posted again
//	last copy CopyFor ago,    foreign: the peer would have sent it again meanwhile. In
//	among the first ids       the midst of a life an outage looks like this
//	anything else             a copy, whatever its header says: drivers send a frame
//	                          again with the header that its request has now (V3)
//
// Once a life is suspected, CopyFor counts for all ids. So a new life that sends
// the like, to the same places, within CopyFor of the first ids of the old one
// cannot be told from it, and is acknowledged (V4). The data does not help: a
// buffer that is filled again before it is posted again looks the same.

// firstIDs are those by which a new life is suspected: an outage in the midst of a
// life is not.
const firstIDs = 128

type kinship uint8

const (
	fresh kinship = iota
	sameAgain
	foreign
)

// arrival is what was received last under an id.
type arrival struct {
	at  ack.Instant
	txn uint32
	seq frame.Seq
}

// arrivals is a table of them by id: more than any such peer keeps ids for.
type arrivals []arrival

func (a *arrivals) note(now ack.Instant, q frame.Seq, txn uint32) {
	if *a == nil {
		*a = make([]arrival, 256)
	}
	(*a)[int(q)%len(*a)] = arrival{now, txn, q}
}

// last returns what came under q, if that is not too long ago.
func (a arrivals) last(q frame.Seq) (arrival, bool) {
	if a == nil {
		return arrival{}, false
	}
	l := a[int(q)%len(a)]
	return l, l.seq == q
}

// remembers reports whether arrivals are of use for this kind of peer.
func (p *Profile) remembers() bool { return p.CopyFor > 0 || p.Acks == AckIfResent }

// kin says what a frame of a peer without introduction is; m is its first message.
func (c *Conn) kin(now ack.Instant, verdict ack.Verdict, q frame.Seq, tag uint16, m *frame.Message) kinship {
	p, r := &c.profile, &c.rx
	behind := r.recv.Newest().Seq().Diff(q)
	switch {
	case verdict == ack.Old, p.Behind > 0 && r.accepted && behind >= p.Behind:
		return foreign
	case verdict == ack.New:
		return fresh
	}
	before, known := r.arrivals.last(q)
	same := r.recv.Carried(q, tag)
	switch {
	case !same && !p.LiveHeaders:
		return foreign
	case !same && known && int32(m.Txn-before.txn) < 0:
		return foreign
	case !same && known && m.Txn == before.txn && !p.KeepsIDs:
		return foreign
	case p.CopyFor > 0 && (r.suspect || isFirst(q)) && (!known || now.Sub(before.at) >= p.CopyFor):
		return foreign
	}
	return sameAgain
}

func isFirst(q frame.Seq) bool { return q >= 1 && q <= firstIDs }

// suspectRestart refuses a frame that its peer cannot have sent in the life we
// know. Peers without introduction are taken back by Reset only: their ids say
// too little. Where the frames of the old life still come, what is far behind
// them was held back by the network.
func (c *Conn) suspectRestart(now ack.Instant, f *frame.Frame, m *frame.Message) Reason {
	r := &c.rx
	flows := c.profile.Behind > 0 && r.recv.Newest().Seq().Diff(f.Seq) >= c.profile.Behind && now.Sub(r.freshAt) < heldBack
	if !r.suspect && isFirst(f.Seq) && !flows {
		r.suspect = true
		c.ep.event(Event{Kind: PeerRestarted, Conn: c, Peer: c.Name(), Reason: RefusedForeign, Txn: m.Txn})
	}
	return c.refused(RefusedForeign, m.Txn, nil)
}

// heldBack is for how long the network may hold a frame back while others pass.
// Arbitrary: long for that, and short beside the start of a process.
const heldBack = time.Second

// copyDelay is how long after a frame its copy is a retransmission, and not the
// network's doing, for peers that a second acknowledgement harms (quirk D2-4).
const copyDelay = 100 * time.Millisecond

// tagOf names a frame by its first message: a retransmission has the same tag,
// another frame under the same id almost never, not even if a peer that starts
// again with the same ids sends the like to other places.
func tagOf(m *frame.Message) uint16 {
	const k1, k2, k3 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB // as in splitmix64
	h := (uint64(m.Txn)<<32 | uint64(m.Addr)) * k1
	h = (h ^ h>>32 ^ uint64(m.CompletionAddr)<<32 ^ uint64(m.CompletionValue)) * k2
	h = (h ^ h>>32 ^ uint64(m.Index)<<32 ^ uint64(m.Count)<<16 ^ uint64(m.Len)) * k3
	return uint16(h >> 48)
}
