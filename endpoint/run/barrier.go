package run

import (
	"slices"
	"sync"
	"sync/atomic"
)

// AfterBatch calls f when nothing that Apply began before this call still goes on: at
// once, or at the end of the batch that is being applied. f must not block.
func (s *Scheduler[W]) AfterBatch(f func()) {
	added := s.batchEnd.add(f)
	if s.batching.Load() {
		return // the end of the batch runs the barrier
	}
	// A batch that begins now began after this call.
	if s.batchEnd.remove(added) {
		f()
	}
}

// AtBatchEnd calls f at the end of a batch, of this or the next one.
func (s *Scheduler[W]) AtBatchEnd(f func()) { s.batchEnd.add(f) }

// IsBatching reports whether a batch is being applied.
func (s *Scheduler[W]) IsBatching() bool { return s.batching.Load() }

// barrier holds what waits for the end of the batch that is being applied. The lock is
// a leaf.
type barrier struct {
	waits atomic.Bool // list may not be empty
	mu    sync.Mutex
	list  []*func()
}

func (b *barrier) add(f func()) *func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, &f)
	b.waits.Store(true)
	return &f
}

// remove reports whether f was still there.
func (b *barrier) remove(f *func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, g := range b.list {
		if g == f {
			b.list = slices.Delete(b.list, i, i+1) // and forgets it
			return true
		}
	}
	return false
}

// run calls what was added, in order. The holder of the receive lock calls it between
// batches.
func (b *barrier) run() {
	if !b.waits.Load() {
		return
	}
	b.mu.Lock()
	list := b.list
	b.list = nil
	b.waits.Store(false)
	b.mu.Unlock()
	for _, f := range list {
		(*f)()
	}
}
