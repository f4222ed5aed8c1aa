package main

import (
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// driver polls many endpoints from one goroutine. With goroutines of their own,
// a thousand of them would spend the processors on switching between threads,
// and the bench would measure that.
type driver struct {
	stopping atomic.Bool
	gone     chan struct{}
	err      error // good when gone is closed
}

const (
	// driverWindow is how many endpoints are asked before the first is asked
	// again: what was posted first is mostly answered first.
	driverWindow = 32
	// sweepEvery is how often all are asked: some have timers, some are late.
	sweepEvery = 5 * time.Millisecond
)

func drive(endpoints []*dgrdma.Endpoint) *driver {
	d := &driver{gone: make(chan struct{})}
	go func() {
		defer close(d.gone)
		runtime.LockOSThread() // ends with the goroutine
		d.err = d.run(endpoints)
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

func (d *driver) run(endpoints []*dgrdma.Endpoint) error {
	ring := append([]*dgrdma.Endpoint(nil), endpoints...)
	answered := make(map[*dgrdma.Endpoint]bool, len(ring))
	window := min(driverWindow, len(ring))
	head, swept := 0, time.Now()
	for !d.stopping.Load() {
		quiet := true
		for i := range window {
			at := (head + i) % len(ring)
			e := ring[at]
			n, err := e.Poll()
			switch {
			case errors.Is(err, net.ErrClosed):
				return nil
			case err != nil:
				return err
			case n > 0:
				answered[e], quiet = true, false
			case answered[e]: // and that was all: to the end
				answered[e] = false
				ring[at], ring[head] = ring[head], e
				head = (head + 1) % len(ring)
			}
		}
		if quiet {
			runtime.Gosched()
		}
		if now := time.Now(); now.Sub(swept) >= sweepEvery {
			for _, e := range endpoints {
				if _, err := e.Poll(); err != nil && !errors.Is(err, net.ErrClosed) {
					return err
				}
			}
			swept = time.Now()
		}
	}
	return nil
}
