package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var inAll = []string{
	"Done", "Copied", "Packed", "Admit", "Complete", "OnEvent", "FrameSent", "FrameReceived", "FrameLost", "Log", "Window", "OnAcked", "ready",
}

// TestEnd ends an endpoint that is driven in each of the ways there are, while one of
// its callbacks is slow, is kept, posts, or ends the endpoint itself. When Close has
// returned no callback runs and no goroutine is left, each post was answered once, and
// nothing waits for ever (attacks A8, A16 and A17, SECURITY.md).
func TestEnd(t *testing.T) {
	behaviours := []struct {
		name string
		in   []string
		does func(w *endWorld, release chan struct{}) func()
	}{
		{"slow", inAll, func(w *endWorld, _ chan struct{}) func() {
			return func() {
				w.hooks.did()
				w.hooks.pass(endBeat)
			}
		}},
		{"kept", inAll, func(w *endWorld, release chan struct{}) func() {
			var kept atomic.Bool
			return func() {
				if kept.CompareAndSwap(false, true) {
					w.hooks.did()
					<-release
				}
			}
		}},
		{"posts", []string{"Done", "Admit", "Complete", "OnEvent", "ready"}, func(w *endWorld, _ chan struct{}) func() {
			return func() {
				w.post(w.toA)
				w.post(w.other)
				w.hooks.did()
			}
		}},
		{"closes", inAll, func(w *endWorld, _ chan struct{}) func() {
			return func() {
				if err := w.b.Close(); err != nil {
					w.t.Errorf("Close in the callback: %v", err)
				}
				if !w.hooks.underLock() && !isClosed(w.post(w.toA)) {
					w.t.Error("posted after Close")
				}
				w.hooks.did()
			}
		}},
		{"shuts down", inAll, func(w *endWorld, _ chan struct{}) func() {
			return func() {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
				context.AfterFunc(ctx, cancel)
				if err := w.b.Shutdown(ctx); err != nil {
					w.t.Errorf("Shutdown in the callback: %v", err)
				}
				w.hooks.did()
			}
		}},
	}
	ends := []struct {
		name string
		end  func(w *endWorld) error
	}{
		{"Close", func(w *endWorld) error { return w.b.Close() }},
		{"Shutdown", func(w *endWorld) error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			if err := w.b.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		}},
	}
	for _, d := range drivings() {
		for _, b := range behaviours {
			for _, which := range b.in {
				if which == "ready" && d.name != "help" {
					continue
				}
				for _, e := range ends {
					t.Run(fmt.Sprintf("%s/%s %s/%s", d.name, which, b.name, e.name), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							w := newEndWorld(t, d, which, false)
							time.Sleep(20 * endBeat)
							release := make(chan struct{})
							act := b.does(w, release)
							w.hooks.act.Store(&act)
							select {
							case <-w.hooks.acted:
							case <-time.After(5 * time.Second):
								t.Error("it was not called")
							}
							if b.name == "posts" {
								w.other.Close() // it posts to what is just ending, too
							}
							over := make(chan error, 1)
							go func() { over <- w.end(func() error { return e.end(w) }) }()
							if b.name == "kept" {
								w.hooks.pass(50 * time.Millisecond)
								if len(over) > 0 && which != "ready" { // which is asked by who waits
									t.Error("ended while a callback runs")
								}
							}
							close(release)
							if err := <-over; err != nil {
								t.Error(err)
							}
							w.check()
						})
					})
				}
			}
		}
	}
}

// TestEndOfWhatFailed ends an endpoint of which a callback, or a method of its controller
// or logger, does not return, whenever it is called: not in Close either. The rest is as
// in TestEnd (attack A8, SECURITY.md).
func TestEndOfWhatFailed(t *testing.T) {
	all := append(slices.Clone(inAll), "OnSent", "OnLost", "EndBatch", "NextSend",
		"Done and its report", "FrameSent and its report", "OnLost and its report")
	// Those of which a helper need not be the one that calls them are left out.
	byHelper := []string{
		"Done", "Copied", "Packed", "Admit", "Complete", "OnEvent", "FrameSent", "FrameReceived", "Log", "Window", "OnAcked", "OnSent",
		"EndBatch", "NextSend", "ready",
	}
	panics := map[string][]string{"help": byHelper, "poll": all, "write": all}
	for _, d := range drivings() {
		for _, how := range []struct {
			name string
			in   []string
			does func(h *hooks)
		}{
			{"ends its goroutine", all, func(h *hooks) {
				h.did()
				runtime.Goexit()
			}},
			{"panics", panics[d.name], func(h *hooks) {
				if !onEndpointGoroutine() {
					h.did()
					panic("sprung")
				}
			}},
		} {
			for _, which := range how.in {
				if which == "ready" && d.name != "help" {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s %s", d.name, which, how.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newEndWorld(t, d, which, true)
						time.Sleep(20 * endBeat)
						if strings.HasPrefix(which, "OnLost and") {
							w.net.Link(endB, endA, simnet.Link{Down: true}) // they are lost because time passes
							time.Sleep(5 * endBeat)
						}
						act := func() { how.does(w.hooks) }
						w.hooks.act.Store(&act)
						select {
						case <-w.hooks.acted:
						case <-time.After(5 * time.Second):
							t.Error("it was not called")
						}
						time.Sleep(20 * endBeat)
						survive(func() { w.b.Close() })
						if err := w.end(w.b.Close); err != nil {
							t.Error(err)
						}
						w.check()
						if err := w.toA.Post(w.transaction()); which != "ready" && !errors.Is(err, endpoint.ErrCallback) {
							t.Errorf("Post: %v, want ErrCallback", err)
						}
					})
				})
			}
		}
	}
}
