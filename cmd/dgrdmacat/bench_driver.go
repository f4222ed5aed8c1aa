package main

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// driver polls many endpoints from one goroutine. With goroutines of their own,
// a thousand of them would spend the processors on switching between threads,
// and the bench would measure that. It looks at those that wait for something,
// and rarely at the others.
type driver struct {
	endpoints []*dgrdma.Endpoint
	owed      []atomic.Int32 // answers that each waits for
	stopping  atomic.Bool
	gone      chan struct{}
	err       error // good when gone is closed

	fresh atomic.Bool // began is not empty
	mu    sync.Mutex
	began []int // that wait since a moment ago
}

const (
	// driverWindow is how many endpoints are asked before the first is asked
	// again: what was posted first is mostly answered first.
	driverWindow = 16
	// idleRounds is after how many rounds in vain others get the processor, if
	// there is but one.
	idleRounds = 64
	// sweepEvery is how often all are asked: some have timers.
	sweepEvery = 50 * time.Millisecond
)

func drive(endpoints []*dgrdma.Endpoint) *driver {
	d := &driver{endpoints: endpoints, owed: make([]atomic.Int32, len(endpoints)), gone: make(chan struct{})}
	go func() {
		defer close(d.gone)
		d.err = d.run()
	}()
	return d
}

// stop returns when no endpoint is polled any more. It may be called on nil.
func (d *driver) stop() error {
	if d == nil {
		return nil
	}
	d.stopping.Store(true)
	<-d.gone
	return d.err
}

// awaits says that endpoint i waits for n more answers, or -n fewer. It may be
// called on nil.
func (d *driver) awaits(i, n int) {
	if d == nil || d.owed[i].Add(int32(n)) != int32(n) || n < 0 {
		return
	}
	d.mu.Lock()
	d.began = append(d.began, i)
	d.fresh.Store(true)
	d.mu.Unlock()
}

func (d *driver) run() error {
	var waiting []int // in the order in which they began
	listed := make([]bool, len(d.endpoints))
	swept, quiets := time.Now(), 0
	for !d.stopping.Load() {
		if d.fresh.Load() {
			d.mu.Lock()
			for _, i := range d.began {
				if !listed[i] {
					listed[i] = true
					waiting = append(waiting, i)
				}
			}
			d.began = d.began[:0]
			d.fresh.Store(false)
			d.mu.Unlock()
		}
		quiet, kept := true, 0
		asked := min(driverWindow, len(waiting))
		for _, i := range waiting[:asked] {
			n, err := d.endpoints[i].Poll()
			switch {
			case errors.Is(err, net.ErrClosed):
				return nil
			case err != nil:
				return err
			}
			if n > 0 {
				quiet = false
			}
			switch {
			case d.owed[i].Load() == 0:
				// If it begins again at this moment, it is in began again.
				listed[i] = false
			case n > 0:
				waiting = append(waiting, i) // others waited longer
			default:
				waiting[kept] = i
				kept++
			}
		}
		waiting = append(waiting[:kept], waiting[asked:]...)
		if quiets++; !quiet {
			quiets = 0
		} else if quiets%idleRounds == 0 {
			runtime.Gosched()
		}
		if now := time.Now(); now.Sub(swept) >= sweepEvery {
			for _, e := range d.endpoints {
				if _, err := e.Poll(); err != nil && !errors.Is(err, net.ErrClosed) {
					return err
				}
			}
			swept = time.Now()
		}
	}
	return nil
}
