package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
)

// Where pings go, in both memories.
const (
	pingWord   = 0 // number of the ping or answer
	pingBye    = 4 // the client is through
	pingData   = 64
	pingBytes  = 64
	pingMemory = 4096
	// pingWarmUp is how many are not counted.
	pingWarmUp = 1000
)

// pinger is one side: memory that is told of pings or answers as they complete,
// and posts what follows from there, on the goroutine that received. To wake
// another one for it takes longer than everything else.
type pinger struct {
	*dgrdma.Region
	endpoint *dgrdma.Endpoint
	manual   bool
	arrived  func(number uint32) // called by who receives

	peer  atomic.Pointer[dgrdma.Conn]
	over  atomic.Bool
	err   error         // good when ended is closed
	ended chan struct{} // the client said bye, all is measured, or something failed

	mu     sync.Mutex
	t      dgrdma.Transaction
	posted bool      // and not done yet
	owed   uint32    // to be written when it is
	sentAt time.Time // when t was posted last
}

func newPinger(size int) (*pinger, error) {
	region, err := dgrdma.NewRegion(size)
	if err != nil {
		return nil, err
	}
	p := &pinger{Region: region, ended: make(chan struct{})}
	p.t = dgrdma.Transaction{
		Segments:       []dgrdma.Segment{{Addr: pingData, Bytes: make([]byte, pingBytes)}},
		CompletionAddr: pingWord,
		Done:           p.done,
	}
	return p, nil
}

// open opens the endpoint. learn: whoever speaks is the peer.
func (p *pinger) open(local string, busyPoll, learn bool) (err error) {
	cfg := dgrdma.Config{Memory: p, Manual: busyPoll, AcceptAny: learn}
	if learn {
		cfg.OnEvent = func(e dgrdma.Event) {
			if e.Kind == dgrdma.PeerUp {
				p.peer.Store(e.Conn)
			}
		}
	}
	p.manual = busyPoll
	p.endpoint, err = dgrdma.Open(local, &cfg)
	return err
}

// Complete implements [dgrdma.Memory].
func (p *pinger) Complete(src dgrdma.EndpointID, m *frame.Message) {
	p.Region.Complete(src, m)
	switch m.CompletionAddr {
	case pingWord:
		p.arrived(m.CompletionValue)
	case pingBye:
		p.end(nil)
	}
}

// write sends a ping or an answer. What was written before is mostly
// acknowledged by the very frame that made us call, but not until the end of
// its batch. To wait for that costs nothing, and then the frame leaves from
// this goroutine, which with another transaction under way would be the
// business of the sending one.
func (p *pinger) write(number uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.posted {
		p.owed = number
		return
	}
	p.post(number)
}

func (p *pinger) done(_ *dgrdma.Transaction, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.posted = false
	if err != nil {
		p.end(err)
	} else if n := p.owed; n != 0 {
		p.owed = 0
		p.post(n)
	}
}

// post is guarded by mu.
func (p *pinger) post(number uint32) {
	p.posted, p.sentAt = true, time.Now()
	p.t.CompletionValue = number
	if err := p.peer.Load().Post(&p.t); err != nil {
		p.end(err)
	}
}

// elapsed returns how long ago the last write was posted.
func (p *pinger) elapsed() time.Duration {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.sentAt)
}

func (p *pinger) end(err error) {
	if p.over.CompareAndSwap(false, true) {
		p.err = err
		close(p.ended)
	}
}

// wait lets the endpoint work until ended.
func (p *pinger) wait(ctx context.Context) error {
	if p.manual {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		// A look at the context takes as long as one at the wire.
		for i := 1; !p.over.Load() && (i%1024 != 0 || ctx.Err() == nil); i++ {
			if _, err := p.endpoint.Poll(); err != nil {
				return err
			}
		}
	}
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// linger lets the endpoint work for a while, or until done.
func (p *pinger) linger(long time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	for p.manual {
		select {
		case <-timer.C:
			return
		case <-done:
			return
		default:
			p.endpoint.Poll()
		}
	}
	select {
	case <-timer.C:
	case <-done:
	}
}

// bye ends the server.
func (p *pinger) bye(c *dgrdma.Conn) {
	told := make(chan struct{})
	t := dgrdma.Transaction{
		CompletionAddr: pingBye, CompletionValue: 1, Done: func(*dgrdma.Transaction, error) { close(told) },
	}
	if c.Post(&t) == nil {
		p.linger(10*farewell, told)
	}
}
