package link

import (
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// outSlot is a message to be sent, and the transaction that carries it.
type outSlot struct {
	p       *Producer
	t       dgrdma.Transaction
	segment [1]dgrdma.Segment
	chunk   *chunk      // from when it is handed out until it is acknowledged; nil: of no bytes
	busy    atomic.Bool // as long
}

// slotBytes is what a slot takes, as TestSlotBytes weighs it, rounded up.
const slotBytes int64 = 384

// ring is the slots of messages that were handed out and are not acknowledged:
// message k has slot k modulo their number. There are as many as were needed so far,
// no more than the peer has buffers, no more than mostUnderWay, and beyond the first no more
// than the host's budget has room for: what a peer says of itself costs nothing, and a message
// waits for the one before in its buffer.
type ring struct {
	p     *Producer
	most  uint64
	slots atomic.Pointer[[]*outSlot] // replaced with the producer's mu held
}

const (
	firstSlots   = 16
	mostUnderWay = 4096
)

func (r *ring) init(p *Producer, buffers uint64) {
	r.p, r.most = p, min(buffers, mostUnderWay)
	r.grow(0)
}

// room reports whether message k can have a slot.
func (r *ring) room(k uint64) bool {
	s := *r.slots.Load()
	n := uint64(len(s))
	return !s[k%n].busy.Load() || n < r.most && r.p.link.host.budget.fits(r.p.link.peer, r.growth(n))
}

// growth returns what more slots take, if there are n.
func (r *ring) growth(n uint64) int64 { return int64(min(n, r.most-n)) * slotBytes }

// at returns the slot of a message that was handed out.
func (r *ring) at(k uint64) *outSlot {
	s := *r.slots.Load()
	return s[k%uint64(len(s))]
}

// take returns the slot of message k; nil: there is no room. Guarded by the producer's mu.
func (r *ring) take(k uint64) *outSlot {
	s := r.at(k)
	if s.busy.Load() {
		n := uint64(len(*r.slots.Load()))
		if n == r.most || !r.p.take(r.growth(n)) {
			return nil
		}
		r.grow(k)
		s = r.at(k)
	}
	s.busy.Store(true)
	return s
}

// grow makes more slots; k is the next message to be handed out.
func (r *ring) grow(k uint64) {
	var old []*outSlot
	if p := r.slots.Load(); p != nil {
		old = *p
	}
	n := uint64(len(old))
	s := make([]*outSlot, min(max(2*n, firstSlots), r.most))
	kept := min(k, n)
	for j := k - kept; j < k; j++ {
		s[j%uint64(len(s))] = old[j%n]
	}
	more := make([]outSlot, uint64(len(s))-kept)
	for i := range s {
		if s[i] == nil {
			s[i], more = &more[0], more[1:]
			s[i].p = r.p
		}
	}
	r.slots.Store(&s)
}
