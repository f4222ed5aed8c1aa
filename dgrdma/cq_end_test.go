package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestWaitOutlivesTheEndpoint: who waits for completions when the endpoint was closed, or
// while it is, sleeps until its context ends. In a bubble that ends only if nobody spins.
func TestWaitOutlivesTheEndpoint(t *testing.T) {
	for _, manual := range []bool{false, true} {
		for _, before := range []bool{false, true} {
			watchdog := time.AfterFunc(30*time.Second, func() { panic("who waits does not sleep") })
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
			watchdog.Stop()
		}
	}
}
