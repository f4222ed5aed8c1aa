package dgrdma_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var inAll = []string{
	"Done", "Copied", "Packed", "Admit", "Complete", "OnEvent", "FrameSent", "FrameReceived", "FrameLost", "Log", "Window", "OnAcked", "ready",
}

// TestEnd checks that an endpoint ends that is driven in each of the ways there are, while one of
// its callbacks is slow, is kept, posts, or ends the endpoint itself. When Close has returned no
// callback runs and no goroutine is left, each post was answered once, and nothing waits for ever
// (attacks A16 and A17, SECURITY.md).
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
		{"stops", inAll, func(w *endWorld, _ chan struct{}) func() {
			return func() {
				w.b.Stop()
				if !w.hooks.underLock() && !isClosed(w.post(w.toA)) {
					w.t.Error("posted after Stop")
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
								if len(over) > 0 && which != "ready" { // which the goroutine that waits asks for
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
