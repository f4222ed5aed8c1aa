package dgrdma_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	. "github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
)

// hooks are in everything that the application hands to an endpoint. They note what
// runs after the end, and one of them does something.
type hooks struct {
	which   string
	act     atomic.Pointer[func()]
	acted   chan struct{} // closed when it was done for the first time
	first   sync.Once
	running atomic.Int32
	ended   atomic.Bool
	late    atomic.Pointer[string]
}

// enter is called first, and what it returns last, in what is called which.
func (h *hooks) enter(which string) func() {
	note := func() {
		if h.ended.Load() {
			h.late.Store(&which)
		}
	}
	h.running.Add(1)
	leave := func() {
		note()
		h.running.Add(-1)
	}
	note()
	returned := false
	defer func() {
		if !returned { // it panics
			leave()
		}
	}()
	h.does(which)
	returned = true
	return leave
}

func (h *hooks) does(which string) {
	if act := h.act.Load(); act != nil && h.which == which {
		(*act)()
	}
}

// did says that it was done.
func (h *hooks) did() { h.first.Do(func() { close(h.acted) }) }

// underLock says which are documented to run under locks: time of a bubble stands
// still while others wait for these.
func (h *hooks) underLock() bool {
	switch h.which {
	case "Done", "Admit", "Complete", "OnEvent", "ready":
		return false
	}
	return true
}

// pass lets time pass, in a callback or outside of one.
func (h *hooks) pass(d time.Duration) {
	if h.underLock() {
		for range d / time.Microsecond {
			runtime.Gosched()
		}
		return
	}
	time.Sleep(d)
}

// install puts the hooks into a configuration.
func (h *hooks) install(cfg Config, region *Region) *Config {
	cfg.Memory = &hookedRegion{region, h}
	cfg.OnEvent = func(Event) { defer h.enter("OnEvent")() }
	cfg.Trace = &Trace{
		FrameSent:     func(PeerName, []byte, bool) { defer h.enter("FrameSent")() },
		FrameReceived: func(PeerName, []byte, Reason) { defer h.enter("FrameReceived")() },
		FrameLost:     func(PeerName, frame.Seq, bool) { defer h.enter("FrameLost")() },
	}
	cfg.Logger = slog.New(&hookedLog{h})
	cfg.NewController = func(int) ack.Controller { return &hookedController{hooks: h} }
	return &cfg
}

type hookedRegion struct {
	*Region
	hooks *hooks
}

func (r *hookedRegion) Admit(src frame.EndpointID, m *frame.Message) ([]byte, error) {
	defer r.hooks.enter("Admit")()
	if m.Addr == lostAddr {
		return nil, Swallow(errors.New("not wanted"))
	}
	return r.Region.Admit(src, m)
}

func (r *hookedRegion) Complete(src frame.EndpointID, m *frame.Message) {
	defer r.hooks.enter("Complete")()
	r.Region.Complete(src, m)
}

type hookedLog struct{ hooks *hooks }

func (l *hookedLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *hookedLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *hookedLog) WithGroup(string) slog.Handler            { return l }
func (l *hookedLog) Handle(context.Context, slog.Record) error {
	defer l.hooks.enter("Log")()
	return nil
}

type hookedController struct{ hooks *hooks }

func (c *hookedController) Window() int {
	defer c.hooks.enter("Window")()
	return 20_000
}

func (c *hookedController) NextSend(now ack.Instant, _ int) ack.Instant {
	defer c.hooks.enter("NextSend")()
	return now
}

func (c *hookedController) OnSent(ack.Instant, uint32, int) { defer c.hooks.enter("OnSent")() }
func (c *hookedController) OnAcked(ack.Instant, uint32, int, time.Duration) {
	defer c.hooks.enter("OnAcked")()
}
func (c *hookedController) OnLost(ack.Instant, uint32, int, bool) { defer c.hooks.enter("OnLost")() }
func (c *hookedController) OnAppLimited(ack.Instant)              { defer c.hooks.enter("OnAppLimited")() }
func (c *hookedController) OnSpurious(ack.Instant)                { defer c.hooks.enter("OnSpurious")() }
func (c *hookedController) EndBatch(ack.Instant)                  { defer c.hooks.enter("EndBatch")() }
