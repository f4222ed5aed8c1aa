package dgrdma

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// polled is a memory on which goroutines wait that can drive its endpoint in that time.
type polled interface{ polledBy(e *Endpoint, on bool) }

// polledEndpoints are the endpoints that a goroutine polls while it waits for something that may arrive by any of them. The zero value
// has none.
type polledEndpoints struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*Endpoint] // replaced, never changed
}

func (p *polledEndpoints) all() []*Endpoint {
	if list := p.list.Load(); list != nil {
		return *list
	}
	return nil
}

// live returns those that can still bring something about.
func (p *polledEndpoints) live() []*Endpoint {
	over := func(e *Endpoint) bool { return e.sched.IsOver() }
	all := p.all()
	if !slices.ContainsFunc(all, over) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), over)
}

// add adds an endpoint, if it is not there.
func (p *polledEndpoints) add(e *Endpoint) {
	if slices.Contains(p.all(), e) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if all := p.live(); !slices.Contains(all, e) {
		all = append(slices.Clip(all), e)
		p.list.Store(&all)
	}
}

// addOf adds the endpoint of a connection.
func (p *polledEndpoints) addOf(c *Conn) { p.add(c.ep) }

// remove takes an endpoint out.
func (p *polledEndpoints) remove(e *Endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(p.all()), func(x *Endpoint) bool { return x == e })
	p.list.Store(&all)
}

// await is [Endpoint.Await] for what any of them may bring about. It returns, too, when the
// only one is closed.
func (p *polledEndpoints) await(ctx context.Context, w *Waiter, ready func() bool, over, gone <-chan struct{}) bool {
	all := p.live()
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

// severalWait is how long a goroutine that polls several endpoints looks at each. Arbitrary: short
// compared with the delay of acknowledgements, long compared with a look.
const severalWait = 100 * time.Microsecond
