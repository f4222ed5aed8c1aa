// Package budget bounds the memory of messages that a host's links send.
//
// A [Budget] is the host's, a [Peer] is what all links to one peer have of it, and a [Share] is
// what one link has. Bytes are charged when a buffer is handed out, and uncharged when its
// message is acknowledged. A peer gets no more than it leaves for others.
package budget

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Budget is the memory of all links of a host. Call Init first.
type Budget struct {
	limit      int64
	used       atomic.Int64
	waits      atomic.Uint64 // how often a link had to wait
	afterBatch func(func())

	waiters     atomic.Int32 // links that wait
	wakePending atomic.Bool  // afterBatch has wake, and has not called it
	surplus     atomic.Bool  // a link can shrink, since when links wait
	wake        func()
	mu          sync.Mutex
	waiting     map[*Share]struct{}
	grown       map[*Share]struct{} // the links that may have something to shrink
}

// Init sets the limit in bytes. afterBatch calls a function when the batch of datagrams that
// is received now has been worked off.
func (b *Budget) Init(limit int64, afterBatch func(func())) {
	b.limit, b.afterBatch = limit, afterBatch
	b.waiting, b.grown = make(map[*Share]struct{}), make(map[*Share]struct{})
	b.wake = b.wakeAll
}

// Used returns how many bytes are charged.
func (b *Budget) Used() int64 { return b.used.Load() }

// Waits returns how often a link has begun to wait.
func (b *Budget) Waits() uint64 { return b.waits.Load() }

// Waiting returns how many links wait.
func (b *Budget) Waiting() int { return int(b.waiters.Load()) }

// uncharge takes n bytes off, and has the links that wait look again: once for each batch of
// datagrams, whatever is acknowledged in it.
func (b *Budget) uncharge(p *Peer, n int64) {
	p.used.Add(-n)
	b.used.Add(-n)
	if b.waiters.Load() > 0 {
		b.scheduleWake()
	}
}

func (b *Budget) scheduleWake() {
	if !b.wakePending.Swap(true) {
		b.afterBatch(b.wake)
	}
}

func (b *Budget) wakeAll() {
	b.wakePending.Store(false)
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.waiting {
		s.wake()
	}
}

// shrinkAll has all links give back what they do not need.
func (b *Budget) shrinkAll() {
	b.mu.Lock()
	all := slices.Collect(maps.Keys(b.grown))
	b.mu.Unlock()
	for _, s := range all {
		s.shrink()
	}
}

// Peer is what all links to one peer have of the budget, and the chunks that they use again.
type Peer struct {
	used atomic.Int64
	free chunkCache
}

// Used returns how many bytes are charged.
func (p *Peer) Used() int64 { return p.used.Load() }
