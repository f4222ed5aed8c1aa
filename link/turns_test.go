package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhoGivesUpTakesNoTurn: who waits behind another, no longer than its context, goes
// away with the context's cause, and the turn stays whose it is.
func TestWhoGivesUpTakesNoTurn(t *testing.T) {
	for _, c := range []struct {
		name string
		call func(l *Link, ctx context.Context) error
		turn func(l *Link) *turn
	}{
		{"Acquire", func(l *Link, ctx context.Context) error { _, err := l.Out.Acquire(ctx); return err }, func(l *Link) *turn { return &l.Out.turn }},
		{"Send", func(l *Link, ctx context.Context) error { return l.Out.Send(ctx, 0, nil) }, func(l *Link) *turn { return &l.Out.turn }},
		{"Flush", func(l *Link, ctx context.Context) error { return l.Out.Flush(ctx) }, func(l *Link) *turn { return &l.Out.turn }},
		{"CloseContext", func(l *Link, ctx context.Context) error { return l.Out.CloseContext(ctx) }, func(l *Link) *turn { return &l.Out.turn }},
		{"Recv", func(l *Link, ctx context.Context) error { _, err := l.In.Recv(ctx); return err }, func(l *Link) *turn { return &l.In.turn }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				both := &Options{Directions: Both, Buffers: 1, Size: 8}
				_, _, l, _ := pair(t, newNet(t, 4), both, both)
				if err := l.Out.Send(soon(t), 0, nil); err != nil { // the only buffer
					t.Fatal(err)
				}
				waits := make(chan error, 2)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { waits <- l.Out.Send(ctx, 0, nil) }()
				go func() { _, err := l.In.Recv(ctx); waits <- err }()
				synctest.Wait()
				cause := errors.New("too late")
				short, stop := context.WithTimeoutCause(t.Context(), time.Second, cause)
				defer stop()
				began := time.Now()
				if err := c.call(l, short); err != cause || time.Since(began) != time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if c.turn(l).try() {
					t.Error("the turn is free, and somebody has it")
				}
				cancel()
				for range 2 {
					if err := <-waits; err != context.Canceled {
						t.Errorf("who has the turn: %v", err)
					}
				}
				if !c.turn(l).try() {
					t.Error("the turn is nobody's, and not free")
				}
				c.turn(l).give()
			})
		})
	}
}

// TestTurnsGoOn: of several that receive, or send, each gets its turn, without another
// call that would bring it.
func TestTurnsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, in := pair(t, newNet(t, 4), nil, &Options{Buffers: 4, Size: 8})
		const each = 5
		got := make(chan uint64, each)
		for range each {
			go func() {
				m, err := in.In.Recv(soon(t))
				if err != nil {
					t.Error(err)
				} else if err := in.In.Release(m); err != nil {
					t.Error(err)
				}
				got <- m.Number
			}()
		}
		synctest.Wait()
		for range each {
			go func() {
				if err := out.Out.Send(soon(t), 0, nil); err != nil {
					t.Error(err)
				}
			}()
		}
		came := make(map[uint64]bool)
		for range each {
			came[<-got] = true // in the order in which they run on
		}
		for k := range uint64(each) {
			if !came[k] {
				t.Errorf("message %d was not received: %v", k, came)
			}
		}
	})
}
