package sched

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// script is a model that does something else where it is told to.
type script struct {
	*model
	receive func(wait time.Duration) (int, error)
	apply   func(n int) (reply bool, err error)
	serve   func(i *item) (whole bool)
	expire  func(i *item)
	reply   func()
	flush   func()
	drop    func()
	deliver func()
	abandon func()
	broke   func()
}

func newScript(t *testing.T, cfg Config, items int) *script {
	c := &script{model: newModel(t, cfg, items)}
	cfg.ErrCallback, cfg.ErrClosed = errCallback, errClosed
	c.s.Init(c, cfg)
	c.unanswered = true // so that nobody is woken but by the scheduler
	return c
}

func (c *script) Receive(wait time.Duration) (int, error) {
	if c.receive != nil {
		return c.receive(wait)
	}
	return c.model.Receive(wait)
}

func (c *script) Apply(n int) (bool, error) {
	if c.apply != nil {
		return c.apply(n)
	}
	return c.model.Apply(n)
}

func (c *script) Serve(i *item, now ack.Instant) bool {
	if c.serve != nil {
		return c.serve(i)
	}
	return c.model.Serve(i, now)
}

func (c *script) Expire(i *item, now ack.Instant) {
	if c.expire != nil {
		c.expire(i)
	}
	c.model.Expire(i, now)
}

func (c *script) Reply() { instead(c.reply, c.model.Reply) }
func (c *script) Flush() { instead(c.flush, c.model.Flush) }
func (c *script) Drop()  { instead(c.drop, c.model.Drop) }

func (c *script) Deliver() {
	also(c.deliver)
	c.model.Deliver()
}

func (c *script) Abandon(err error) {
	also(c.abandon)
	c.model.Abandon(err)
}

func (c *script) Broken(err error) {
	c.model.Broken(err)
	also(c.broke)
}

func instead(f, usual func()) {
	if f != nil {
		usual = f
	}
	usual()
}

func also(f func()) {
	if f != nil {
		f()
	}
}

// need gives an item work that nobody is told of.
func (m *model) need(i *item) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wanted++
	m.s.Queue(&i.entry)
}

// leaves calls a function that may end its goroutine.
func leaves(f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	<-over
}
