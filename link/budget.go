package link

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// leastBudget is what links may send at least, so that a host that only sends needs no
// memory: see Config.Memory. Arbitrary; well above what is under way on a fast wire.
const leastBudget = 32 << 20

// budget bounds the memory of the messages that all links of a host send: from when a
// buffer is handed out until its message is acknowledged. A peer gets no more of it than it
// leaves for others.
type budget struct {
	host    *Host
	most    int64
	used    atomic.Int64
	reached atomic.Uint64 // how often a producer had to wait

	hungry atomic.Int32 // producers that wait
	due    atomic.Bool  // rouse is about to be called
	idle   atomic.Bool  // a ring of more than its first slots became idle while producers wait
	rouse  func()
	mu     sync.Mutex
	queue  map[*Producer]struct{}
	grown  map[*Producer]struct{} // those whose rings have more than their first slots
}

func (b *budget) init(h *Host) {
	b.host, b.most = h, int64(max(h.size, leastBudget))
	b.queue, b.grown = make(map[*Producer]struct{}), make(map[*Producer]struct{})
	b.rouse = b.rouseAll
}

// fits reports whether a peer may have n bytes more.
func (b *budget) fits(p *peer, n int64) bool {
	return n == 0 || b.allows(p.sending.Load()+n, b.used.Load()+n)
}

// allows reports whether a peer may have so much, of what all have.
func (b *budget) allows(peers, all int64) bool { return peers <= b.most-all }

// take counts n bytes. Not ok: the peer may not have them.
func (b *budget) take(p *peer, n int64) (ok bool) {
	if n == 0 || b.allows(p.sending.Add(n), b.used.Add(n)) {
		return true
	}
	b.give(p, n)
	return false
}

// swap counts what is less than what give counts off soon.
func (b *budget) swap(p *peer, n int64) {
	p.sending.Add(n)
	b.used.Add(n)
}

// give counts n bytes off, and has the producers that wait look again: once for each
// batch of datagrams, whatever is acknowledged in it.
func (b *budget) give(p *peer, n int64) {
	p.sending.Add(-n)
	b.used.Add(-n)
	if b.hungry.Load() > 0 {
		b.poke()
	}
}

func (b *budget) poke() {
	if !b.due.Swap(true) {
		b.host.ep.AfterBatch(b.rouse)
	}
}

// becameIdle has the producers that wait take back the slots of rings by which nothing is under way.
func (b *budget) becameIdle() {
	if b.hungry.Load() > 0 {
		b.idle.Store(true)
		b.poke()
	}
}

// note notes whether a producer's ring has more than its first slots.
func (b *budget) note(p *Producer, grown bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if grown && !p.link.silent() { // else drop has been here, or comes
		b.grown[p] = struct{}{}
	} else {
		delete(b.grown, p)
	}
}

// reclaim takes back the slots of idle rings.
func (b *budget) reclaim() {
	b.mu.Lock()
	all := slices.Collect(maps.Keys(b.grown))
	b.mu.Unlock()
	for _, p := range all {
		p.shed()
	}
}

func (b *budget) rouseAll() {
	b.due.Store(false)
	b.mu.Lock()
	defer b.mu.Unlock()
	for p := range b.queue {
		p.waiting.Rouse()
	}
}

// enter notes a producer that waits until something is given, and takes back the slots that
// became idle. The producer looks again afterwards.
func (b *budget) enter(p *Producer) {
	first := !p.hungry.Swap(true)
	if first {
		b.reached.Add(1)
		b.mu.Lock()
		b.queue[p] = struct{}{}
		b.mu.Unlock()
		b.hungry.Add(1)
	}
	if b.idle.Swap(false) || first {
		b.reclaim()
	}
}

// leave notes that it does not wait any more.
func (b *budget) leave(p *Producer) {
	if !p.hungry.Swap(false) {
		return
	}
	b.mu.Lock()
	delete(b.queue, p)
	b.mu.Unlock()
	b.hungry.Add(-1)
}
