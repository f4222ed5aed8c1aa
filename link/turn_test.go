package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurn: of those who take a turn one at a time has it, however often, and each gets
// it.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x turn
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
						t.Errorf("%d have the turn", has)
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
				t.Fatalf("nobody has the turn, %d of %d had it", had, many*often)
			}
		}
		if !x.try() || x.try() {
			t.Error("who tries has the turn if nobody has it")
		}
		x.give()
		if !x.try() {
			t.Error("it was given, and nobody has it")
		}
	})
}

// TestTurnThatIsNotAwaited: who stops waiting takes nobody's turn along, though it was
// given at that moment.
func TestTurnThatIsNotAwaited(t *testing.T) {
	for range 50 { // whichever is seen first
		synctest.Test(t, func(t *testing.T) {
			var x turn
			x.init()
			if !x.try() {
				t.Fatal("nobody has it")
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
				t.Errorf("who waits on: %v", err)
			}
		})
	}
}

// TestTurnGivenEarly: a turn that is given when somebody has seen it taken, and does not
// wait yet, is there when it does.
func TestTurnGivenEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x turn
		x.init()
		x.try()
		x.queue.Add(1)
		x.give()
		select {
		case <-x.free:
		default:
			t.Error("it was lost")
		}
	})
}
