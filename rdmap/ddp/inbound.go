package ddp

import "math"

// Inbound puts together messages for a carrier whose segments arrive in order, and checks
// that they continue each other (DDP-002, DDP-003, DDP-005). A tagged message may stand
// between the segments of an untagged one, and the other way round, as siw sends them; and a message of the
// AbortQueue anywhere.
type Inbound struct {
	tagged, untagged unfinished
}

// AbortQueue is the queue of the message that ends a stream: Terminate. It may come at any time, since who cannot go
// on with a message has nothing else to say. The message that it cuts short is not delivered.
const AbortQueue = 2

type unfinished struct {
	first Header
	n     uint64
	begun bool
}

// Follows checks a segment with n bytes of payload against the message that it belongs to, before
// it is placed. The error is a [Fault].
func (in *Inbound) Follows(h *Header, n int) error {
	if h.Tagged {
		return in.tagged.followsTagged(h, n)
	}
	return in.untagged.followsUntagged(h, n)
}

func (u *unfinished) followsTagged(h *Header, n int) error {
	switch {
	case !u.begun:
		return nil
	case h.Control != u.first.Control:
		return OperationOpcode
	case h.STag != u.first.STag:
		return TaggedSTag
	case h.TO != u.first.TO+u.n, u.n+uint64(n) > math.MaxUint32:
		return TaggedBounds
	}
	return nil
}

// aborted says that a segment begins the message that cuts this one short.
func (u *unfinished) aborted(h *Header) bool {
	return u.begun && !h.Tagged && h.QN == AbortQueue && u.first.QN != AbortQueue && h.MO == 0
}

func (u *unfinished) followsUntagged(h *Header, n int) error {
	switch {
	case u.aborted(h):
		return nil
	case !u.begun && h.MO != 0:
		return UntaggedMO
	case !u.begun:
		return nil
	case h.Control != u.first.Control, h.Invalidate != u.first.Invalidate:
		return OperationOpcode
	case h.QN != u.first.QN:
		return UntaggedQN
	case h.MSN != u.first.MSN:
		return UntaggedMSN
	case uint64(h.MO) != u.n:
		return UntaggedMO
	case u.n+uint64(n) > math.MaxUint32:
		return UntaggedTooLong
	}
	return nil
}

// Placed says that a segment with n bytes of payload, which [Inbound.Follows] has passed, is in
// place. If it was the last of its message, first is the header of the message's first
// segment, valid until the next call, and total its length; otherwise first is nil.
func (in *Inbound) Placed(h *Header, n int) (first *Header, total uint32) {
	u := &in.untagged
	if h.Tagged {
		u = &in.tagged
	}
	if !u.begun || u.aborted(h) {
		u.first, u.n, u.begun = *h, 0, true
	}
	u.n += uint64(n)
	if !h.Last {
		return nil, 0
	}
	u.begun = false
	return &u.first, uint32(u.n)
}
