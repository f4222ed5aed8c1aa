package endpoint

import (
	"sync"
	"sync/atomic"
)

// afterBatch holds what waits for the end of the batch of datagrams that is
// being applied.
type afterBatch struct {
	waits atomic.Bool // list is not empty
	mu    sync.Mutex
	list  []*func()
}

// AfterBatch calls f when nothing that Admit allowed before this call is still
// to be placed: at once, or at the end of the batch of datagrams that is being
// applied. Who withdraws memory from a peer may give it to another one in f,
// which must not block.
func (e *Endpoint) AfterBatch(f func()) {
	if e == nil {
		f()
		return
	}
	a := &e.after
	mine := a.add(f)
	if e.batching.Load() {
		return // its end looks at waits
	}
	// A batch that begins now asks Admit anew. Only our own: others may have
	// come after we looked.
	a.mu.Lock()
	for i, g := range a.list {
		if g == mine {
			a.list = append(a.list[:i], a.list[i+1:]...)
			a.waits.Store(len(a.list) > 0)
			a.mu.Unlock()
			f()
			return
		}
	}
	a.mu.Unlock()
}

// add has f called at the end of a batch, of this or the next one.
func (a *afterBatch) add(f func()) *func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, &f)
	a.waits.Store(true)
	return &f
}

// run is called by the receiving goroutine between batches.
func (a *afterBatch) run() {
	if !a.waits.Load() {
		return
	}
	a.mu.Lock()
	list := a.list
	a.list = nil
	a.waits.Store(false)
	a.mu.Unlock()
	runAll(list)
}

// runAll runs them in order, each even if the one before it does not return.
func runAll(list []*func()) {
	if len(list) > 0 {
		defer runAll(list[1:])
		(*list[0])()
	}
}
