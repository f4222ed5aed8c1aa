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
	w    *Waiter
}

func (w *watchers) wake(addr uint32) {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	for _, x := range w.list {
		if x.addr == addr {
			x.w.Rouse()
		}
	}
	w.mu.Unlock()
}

func (w *watchers) add(addr uint32) *Waiter {
	x := new(Waiter)
	x.Init()
	w.mu.Lock()
	w.list = append(w.list, watcher{addr, x})
	w.n.Store(int32(len(w.list)))
	w.mu.Unlock()
	return x
}

func (w *watchers) remove(gone *Waiter) {
	w.mu.Lock()
	for i, x := range w.list {
		if x.w == gone {
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
// It looks at once and after every write of the word, and drives the endpoints whose
// memory this is, as [Endpoint.Await] does. A word that is ready wins over a context
// that is done.
//
// Only the context ends it otherwise. It goes on when an endpoint whose memory this is
// closes or fails, and when a peer dies: others may still write, and so may the program.
// So context.Background() may be for ever. Who waits for one endpoint or peer gives it a
// deadline, or a context that is cancelled where the endpoint is closed, or when
// [Conn.Done] is.
func (r *Region) Wait(ctx context.Context, addr uint32, ready func(word uint32) bool) (uint32, error) {
	if r == nil {
		return 0, ErrNil
	}
	if uint64(addr)+4 > r.Size() {
		return 0, &boundsError{what: "the word to wait for", addr: addr, n: 4, size: r.Size()}
	}
	word := r.Load32(addr)
	if ready(word) {
		return word, nil
	}
	w := r.watch.add(addr)
	defer r.watch.remove(w)
	// Looked at after joining the list: a store from here on rouses us.
	look := func() bool {
		word = r.Load32(addr)
		return ready(word)
	}
	for {
		switch met := r.drivers.Await(ctx, w, look, nil, nil); {
		case met:
			return word, nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		}
		// An endpoint ended; others may still store.
	}
}

// WaitFor blocks until the word at addr is value, or the context is done. It does not end
// when an endpoint does: see Wait.
func (r *Region) WaitFor(ctx context.Context, addr, value uint32) error {
	_, err := r.Wait(ctx, addr, func(v uint32) bool { return v == value })
	return err
}
