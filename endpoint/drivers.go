package endpoint

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// driven is memory on which goroutines wait that can drive the endpoint meanwhile.
type driven interface{ drivenBy(e *Endpoint, on bool) }

// Drivers are the endpoints that may bring about what a goroutine waits for. The zero
// value has none.
type Drivers struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*Endpoint] // replaced, never changed
}

func (d *Drivers) all() []*Endpoint {
	if p := d.list.Load(); p != nil {
		return *p
	}
	return nil
}

// live returns those that can still bring something about.
func (d *Drivers) live() []*Endpoint {
	over := func(e *Endpoint) bool { return e.sched.Over() }
	all := d.all()
	if !slices.ContainsFunc(all, over) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), over)
}

// Add adds an endpoint, if it is not there.
func (d *Drivers) Add(e *Endpoint) {
	if slices.Contains(d.all(), e) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if all := d.live(); !slices.Contains(all, e) {
		all = append(slices.Clip(all), e)
		d.list.Store(&all)
	}
}

// AddOf adds the endpoint of a connection.
func (d *Drivers) AddOf(c *Conn) { d.Add(c.ep) }

// Remove takes an endpoint out.
func (d *Drivers) Remove(e *Endpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(d.all()), func(x *Endpoint) bool { return x == e })
	d.list.Store(&all)
}

// Await is [Endpoint.Await] for what any of them may bring about. It returns, too, when the
// only one is closed.
func (d *Drivers) Await(ctx context.Context, w *Waiter, ready func() bool, over, gone <-chan struct{}) bool {
	all := d.live()
	if len(all) == 1 {
		return all[0].Await(ctx, w, ready, over, gone)
	}
	manual := slices.DeleteFunc(slices.Clone(all), func(e *Endpoint) bool { return !e.cfg.Manual })
	for len(manual) > 0 && !ready() {
		select {
		case <-ctx.Done():
			return ready()
		case <-over:
			return ready()
		case <-gone:
			return ready()
		default:
		}
		manual = slices.DeleteFunc(manual, func(e *Endpoint) bool {
			_, err := e.Progress(severalWait)
			return err != nil
		})
	}
	return w.Sleep(ctx, ready, over, gone)
}

// severalWait is how long who drives several endpoints looks at each. Arbitrary: short
// beside the delay of acknowledgements, long beside a look.
const severalWait = 100 * time.Microsecond
