package endpoint

import (
	"context"
	"sync"
	"sync/atomic"
)

// watchers wakes those who wait for words of a Region to change.
type watchers struct {
	n    atomic.Int32 // so that a store without watchers costs one load
	mu   sync.Mutex
	list []watcher
}

type watcher struct {
	addr uint32
	ch   chan struct{}
}

func (w *watchers) wake(addr uint32) {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	for _, x := range w.list {
		if x.addr == addr {
			leave(x.ch)
		}
	}
	w.mu.Unlock()
}

func (w *watchers) add(addr uint32) chan struct{} {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	w.list = append(w.list, watcher{addr, ch})
	w.n.Store(int32(len(w.list)))
	w.mu.Unlock()
	return ch
}

func (w *watchers) remove(ch chan struct{}) {
	w.mu.Lock()
	for i, x := range w.list {
		if x.ch == ch {
			last := len(w.list) - 1
			w.list[i] = w.list[last]
			w.list[last] = watcher{}
			w.list = w.list[:last]
			break
		}
	}
	w.n.Store(int32(len(w.list)))
	w.mu.Unlock()
}

// Wait blocks until ready says yes to the word at addr, and returns that word.
// It looks at once and after every write of the word. A word that is ready
// wins over a context that is done. It does not poll for an endpoint with
// [Config.Manual]: another goroutine must.
func (r *Region) Wait(ctx context.Context, addr uint32, ready func(word uint32) bool) (uint32, error) {
	if r == nil {
		return 0, ErrNil
	}
	if uint64(addr)+4 > r.Size() {
		return 0, ErrBounds
	}
	if v := r.Load32(addr); ready(v) {
		return v, nil
	}
	ch := r.watch.add(addr)
	defer r.watch.remove(ch)
	for {
		// Looked at after joining the list: a store from here on wakes us.
		if v := r.Load32(addr); ready(v) {
			return v, nil
		}
		select {
		case <-ch:
		case <-ctx.Done():
			if v := r.Load32(addr); ready(v) {
				return v, nil
			}
			return 0, context.Cause(ctx)
		}
	}
}

// WaitFor blocks until the word at addr is value.
func (r *Region) WaitFor(ctx context.Context, addr, value uint32) error {
	_, err := r.Wait(ctx, addr, func(v uint32) bool { return v == value })
	return err
}
