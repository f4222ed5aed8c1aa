package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// script is a model some of whose calls a test replaces.
type script struct {
	*model
	receive func(wait time.Duration) (int, error)
	apply   func(n int) (reply bool, err error)
	serve   func(i *item) (complete bool)
	expire  func(i *item)
	reply   func()
	flush   func()
	deliver func()
}

func newScript(t *testing.T, cfg Config, items int) *script {
	c := &script{model: newModel(t, cfg, items)}
	cfg.ErrPanic, cfg.ErrClosed = errPanic, errClosed
	c.s.Init(c, cfg)
	c.unanswered = true // so that only the scheduler wakes its goroutine
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

func (c *script) Deliver() {
	also(c.deliver)
	c.model.Deliver()
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

// logSends has a script log what is sent, and count the releases of the send lock.
func (c *script) logSends(t *testing.T) (log *[]string, ended *int) {
	log, ended = new([]string), new(int)
	say := func(format string, args ...any) { *log = append(*log, fmt.Sprintf(format, args...)) }
	c.reply = func() { c.model.Reply(); say("reply") }
	c.flush = func() { say("flush") }
	c.serve = func(i *item) bool {
		complete := c.model.Serve(i, c.Now())
		say("%d", slices.Index(c.items, i))
		return complete
	}
	c.s.beforeUnlock = func() { *ended++ }
	t.Cleanup(func() { c.s.beforeUnlock = nil })
	return log, ended
}

func takeLog(log *[]string) string {
	said := strings.Join(*log, " ")
	*log = nil
	return said
}
