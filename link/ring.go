package link

import (
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link/budget"
)

// outSlot is a message to be sent, and the transaction that carries it.
type outSlot struct {
	p       *Producer
	t       dgrdma.Transaction
	segment [1]dgrdma.Segment
	chunk   *budget.Chunk // from when it is handed out until it is acknowledged; nil: of no bytes
	busy    atomic.Bool   // as long as the message has the slot
}

const _ = uint(budget.MostChunk - MaxMessage) // a chunk holds the longest message

// slotBytes is the memory of a slot, as TestSlotBytes weighs it, rounded up.
const slotBytes int64 = 384

// ring is the slots of messages that were handed out and are not acknowledged: message k has slot k
// modulo their number. There are as many slots as were needed so far. There are no more than the peer
// has buffers, and no more than mostUnderWay; beyond the first ones no more than the host's budget has
// room for. So what a peer says of itself costs nothing. A message waits for the one that was in its
// slot before.
type ring struct {
	p     *Producer
	slots atomic.Pointer[[]*outSlot] // replaced with the producer's mu held
}

const (
	firstSlots   = 16
	mostUnderWay = 4096
)

func (r *ring) init(p *Producer) {
	r.p = p
	r.renew(nil, 0)
}

// limit returns how many slots there may be.
func (r *ring) limit() uint64 { return min(r.p.buffers.Load(), mostUnderWay) }

// len returns how many slots there are.
func (r *ring) len() int {
	if s := r.slots.Load(); s != nil {
		return len(*s)
	}
	return 0
}

// hasRoom reports whether message k can have a slot.
func (r *ring) hasRoom(k uint64) bool {
	s := *r.slots.Load()
	n := uint64(len(s))
	return !s[k%n].busy.Load() || n < r.limit()
}

// growth returns how many bytes the slots take that message k makes necessary.
func (r *ring) growth(k uint64) int64 {
	s := *r.slots.Load()
	n := uint64(len(s))
	if !s[k%n].busy.Load() {
		return 0
	}
	return int64(min(n, r.limit()-n)) * slotBytes
}

// at returns the slot of a message that was handed out.
func (r *ring) at(k uint64) *outSlot {
	s := *r.slots.Load()
	return s[k%uint64(len(s))]
}

// take returns the slot of message k, and charges n bytes for the message, and its new slots; nil:
// there is no room. Guarded by the producer's mu.
func (r *ring) take(k uint64, n int64) *outSlot {
	more := r.growth(k)
	share := &r.p.share
	if !r.hasRoom(k) || !share.Fits(n+more) || !share.Charge(n+more) {
		return nil
	}
	if more > 0 {
		r.grow(k)
		share.SetGrown(true)
	}
	s := r.at(k)
	s.busy.Store(true)
	return s
}

// shrinkRing gives the slots beyond the first ones back, if no message is in any.
func (p *Producer) shrinkRing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.ring.len()
	if n <= firstSlots || p.acquired.Load() != p.done.Load() {
		return
	}
	p.share.SetGrown(false)
	p.ring.renew(nil, 0)
	p.share.Uncharge(int64(n-firstSlots) * slotBytes)
}

// checkIdle is called when a slot became free.
func (p *Producer) checkIdle() {
	if p.ring.len() > firstSlots && p.acquired.Load() == p.done.Load() {
		p.share.CanShrink()
	}
}

// grow makes more slots; k is the next message to be handed out.
func (r *ring) grow(k uint64) { r.renew(*r.slots.Load(), k) }

// renew makes twice as many slots as the old ones, which are among them.
func (r *ring) renew(old []*outSlot, k uint64) {
	n := uint64(len(old))
	s := make([]*outSlot, min(max(2*n, firstSlots), r.limit()))
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

// freeChunk makes the memory of a message free for other ones.
func (p *Producer) freeChunk(s *outSlot) {
	if c := s.chunk; c != nil {
		s.chunk = nil
		p.share.Free(c)
	}
}
