package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestToken checks that of goroutines that take a token one at a time has it, however often, and that
// each gets it.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x token
		x.init()
		const many, often = 5, 20
		has, had := 0, 0
		over := make(chan struct{})
		for range many {
			go func() {
				for range often {
					if err := x.take(t.Context()); err != nil {
						t.Error(err)
					}
					if has++; has != 1 {
						t.Errorf("%d have the token", has)
					}
					time.Sleep(time.Millisecond)
					had++
					has--
					x.give()
				}
				over <- struct{}{}
			}()
		}
		for range many {
			select {
			case <-over:
			case <-time.After(time.Second):
				t.Fatalf("no goroutine has the token, %d of %d had it", had, many*often)
			}
		}
		if !x.try() || x.try() {
			t.Error("try does not take a free token, or takes one that is held")
		}
		x.give()
		if !x.try() {
			t.Error("it was given, and cannot be taken")
		}
	})
}

// TestTokenAndContext checks that a goroutine that stops waiting leaves the token to the others,
// though it was given at that moment.
func TestTokenAndContext(t *testing.T) {
	for range 50 { // for whichever is seen first
		synctest.Test(t, func(t *testing.T) {
			var x token
			x.init()
			if !x.try() {
				t.Fatal("a new token is held")
			}
			cause := errors.New("no more")
			ctx, cancel := context.WithCancelCause(t.Context())
			stopped, got := make(chan error, 1), make(chan error, 1)
			go func() { stopped <- x.take(ctx) }()
			synctest.Wait()
			go func() { got <- x.take(soon(t)) }()
			synctest.Wait()
			cancel(cause)
			x.give()
			if err := <-stopped; err == nil {
				x.give()
			} else if err != cause {
				t.Error(err)
			}
			if err := <-got; err != nil {
				t.Errorf("the one that waits: %v", err)
			}
		})
	}
}

// TestTokenGivenEarly checks that a token that is given when a goroutine has seen it taken, and does
// not wait yet, is there when it does.
func TestTokenGivenEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x token
		x.init()
		x.try()
		x.waiters.Add(1)
		x.give()
		select {
		case <-x.free:
		default:
			t.Error("it was lost")
		}
	})
}

// TestGiveUpTakesNoToken checks that a call that waits for the token, no longer than its context,
// fails with the context's cause, and that the token stays where it is.
func TestGiveUpTakesNoToken(t *testing.T) {
	for _, c := range []struct {
		name  string
		call  func(l *Link, ctx context.Context) error
		token func(l *Link) *token
	}{
		{"Acquire", func(l *Link, ctx context.Context) error { _, err := l.Out.Acquire(ctx); return err }, func(l *Link) *token { return &l.Out.token }},
		{"Send", func(l *Link, ctx context.Context) error { return l.Out.Send(ctx, 0, nil) }, func(l *Link) *token { return &l.Out.token }},
		{"Flush", func(l *Link, ctx context.Context) error { return l.Out.Flush(ctx) }, func(l *Link) *token { return &l.Out.token }},
		{"CloseContext", func(l *Link, ctx context.Context) error { return l.Out.CloseContext(ctx) }, func(l *Link) *token { return &l.Out.token }},
		{"Recv", func(l *Link, ctx context.Context) error { _, err := l.In.Recv(ctx); return err }, func(l *Link) *token { return &l.In.token }},
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
				if c.token(l).try() {
					t.Error("the token is free while a call holds it")
				}
				cancel()
				for range 2 {
					if err := <-waits; err != context.Canceled {
						t.Errorf("the holder: %v", err)
					}
				}
				if !c.token(l).try() {
					t.Error("no call holds the token, and it is not free")
				}
				c.token(l).give()
			})
		})
	}
}

// TestTokenGoesOn checks that of several goroutines that receive, or send, each gets the token,
// without another call that would bring it.
func TestTokenGoesOn(t *testing.T) {
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
			came[<-got] = true // in the order in which the goroutines run
		}
		for k := range uint64(each) {
			if !came[k] {
				t.Errorf("message %d was not received: %v", k, came)
			}
		}
	})
}
