package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestWaitOutlivesTheEndpoint checks that a goroutine that waits for completions when the endpoint
// was closed, or while it is, sleeps until its context ends. In a bubble the test ends only if no
// goroutine spins.
func TestWaitOutlivesTheEndpoint(t *testing.T) {
	for _, manual := range []bool{false, true} {
		for _, before := range []bool{false, true} {
			stop := fixture.Limit(30*time.Second, func() { panic("who waits does not sleep") })
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				e, err := New(n.Attach(simnet.Addr(1), simnet.Config{}), &Config{ID: 1, Manual: manual})
				if err != nil {
					t.Fatal(err)
				}
				c, err := e.Connect(Peer{ID: 2, Addr: simnet.Addr(2)})
				if err != nil {
					t.Fatal(err)
				}
				q := NewCompletionQueue(1)
				if err := q.Post(c, &Transaction{}); err != nil {
					t.Fatal(err)
				}
				if before {
					e.Close()
				} else {
					time.AfterFunc(time.Millisecond, func() { e.Close() })
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var done [1]Completion
				if k, err := q.Wait(ctx, done[:]); k != 1 || !errors.Is(done[0].Err, ErrClosed) {
					t.Errorf("%d, %v, %v", k, done[0].Err, err)
				}
				if k, err := q.Wait(ctx, done[:]); k != 0 || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("nothing is posted: %d, %v", k, err)
				}
			})
			stop()
		}
	}
}

// TestQueueLetsGo checks that what a queue has given back is the program's: it may be written, or
// posted without the queue.
func TestQueueLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		memory, err := NewRegion(64)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(n.Attach(simnet.Addr(2), simnet.Config{}), &Config{ID: 2, Memory: memory, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		a, err := New(n.Attach(simnet.Addr(1), simnet.Config{}), &Config{ID: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		c, err := a.Connect(Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		q := NewCompletionQueue(1)
		x := &Transaction{Completion: Word(0, 1)}
		if err := q.Post(c, x); err != nil {
			t.Fatal(err)
		}
		var done [1]Completion
		if n, err := q.Wait(t.Context(), done[:]); n != 1 || err != nil || done[0].Err != nil {
			t.Fatal(n, err, done[0].Err)
		}
		if x.Done != nil {
			t.Error("Done is still the queue's")
		}
		if err := c.Write(t.Context(), x); err != nil {
			t.Error(err)
		}
		if n := q.Poll(done[:]); n != 0 {
			t.Errorf("the queue has %d of what it was not given", n)
		}
	})
}

// TestNilTakesNoPlace checks that a nil connection or transaction panics and leaves the queue as it was (N12).
func TestNilTakesNoPlace(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	e, err := New(n.Attach(simnet.Addr(1), simnet.Config{}), &Config{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	c, err := e.Connect(Peer{ID: 2, Addr: simnet.Addr(2)})
	if err != nil {
		t.Fatal(err)
	}
	q := NewCompletionQueue(1)
	for name, post := range map[string]func(){
		"connection": func() { q.Post(nil, &Transaction{}) }, "transaction": func() { q.Post(c, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a nil %s: no panic", name)
				}
			}()
			post()
		}()
	}
	if err := q.Post(c, &Transaction{}); err != nil {
		t.Error(err)
	}
}
