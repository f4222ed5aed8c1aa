package dgrdma

import (
	"context"
	"sync"
	"sync/atomic"
)

// watchers wakes the goroutines that wait for words of a Region to change.
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
// So context.Background() may be for ever. A program that waits for what one peer writes calls
// [Conn.Wait], which ends with the peer.
func (r *Region) Wait(ctx context.Context, addr uint32, ready func(word uint32) bool) (uint32, error) {
	w, err := r.watched(addr, ready)
	if err != nil {
		return 0, err
	}
	defer w.over()
	for {
		switch met := r.polled.await(ctx, w.waiter, w.look, nil, nil); {
		case met:
			return w.word, nil
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		}
		// An endpoint ended; others may still store.
	}
}

// watched is a word that a goroutine waits for.
type watched struct {
	region *Region
	addr   uint32
	ready  func(word uint32) bool
	waiter *Waiter
	word   uint32 // at the last look
}

// watched has a word watched. It is looked at afterwards: a store from then on rouses.
func (r *Region) watched(addr uint32, ready func(word uint32) bool) (*watched, error) {
	if uint64(addr)+4 > r.Size() {
		return nil, &boundsError{what: "the word to wait for", addr: addr, n: 4, size: r.Size()}
	}
	return &watched{region: r, addr: addr, ready: ready, waiter: r.watch.add(addr)}, nil
}

func (w *watched) over() { w.region.watch.remove(w.waiter) }

func (w *watched) look() bool {
	w.word = w.region.Load32(w.addr)
	return w.ready(w.word)
}

// WaitFor blocks until the word at addr is value, or the context is done. It does not end
// when an endpoint does: see Wait.
func (r *Region) WaitFor(ctx context.Context, addr, value uint32) error {
	_, err := r.Wait(ctx, addr, func(v uint32) bool { return v == value })
	return err
}
