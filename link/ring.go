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
	r.renew(nil, 0)
}

// len returns how many slots there are.
func (r *ring) len() int {
	if s := r.slots.Load(); s != nil {
		return len(*s)
	}
	return 0
}

// room reports whether message k can have a slot.
func (r *ring) room(k uint64) bool {
	s := *r.slots.Load()
	n := uint64(len(s))
	return !s[k%n].busy.Load() || n < r.most
}

// growth returns what the slots take that message k makes necessary.
func (r *ring) growth(k uint64) int64 {
	s := *r.slots.Load()
	n := uint64(len(s))
	if !s[k%n].busy.Load() {
		return 0
	}
	return int64(min(n, r.most-n)) * slotBytes
}

// at returns the slot of a message that was handed out.
func (r *ring) at(k uint64) *outSlot {
	s := *r.slots.Load()
	return s[k%uint64(len(s))]
}

// take returns the slot of message k, which takes n bytes of the budget besides; nil: there is no
// room. Guarded by the producer's mu.
func (r *ring) take(k uint64, n int64) *outSlot {
	more := r.growth(k)
	budget := &r.p.link.host.budget
	if !r.room(k) || !budget.fits(r.p.link.peer, n+more) || !r.p.take(n+more) {
		return nil
	}
	if more > 0 {
		r.grow(k)
		budget.note(r.p, true)
	}
	s := r.at(k)
	s.busy.Store(true)
	return s
}

// shed gives the slots beyond the first back, if nothing is in any.
func (p *Producer) shed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.ring.len()
	if n <= firstSlots || p.acquired.Load() != p.done.Load() {
		return
	}
	p.link.host.budget.note(p, false)
	p.ring.renew(nil, 0)
	p.give(int64(n-firstSlots) * slotBytes)
}

// checkIdle is called when a slot became free.
func (p *Producer) checkIdle() {
	if p.ring.len() > firstSlots && p.acquired.Load() == p.done.Load() {
		p.link.host.budget.becameIdle()
	}
}

// grow makes more slots; k is the next message to be handed out.
func (r *ring) grow(k uint64) { r.renew(*r.slots.Load(), k) }

// renew makes twice as many slots as the old ones, which are among them.
func (r *ring) renew(old []*outSlot, k uint64) {
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
