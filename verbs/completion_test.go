package verbs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestCompletionsStayInOrder (RDMAP-071): completions are taken in the order in which they came, however many are there and wherever in the queue they begin.
func TestCompletionsStayInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakePeer(t, &verbs.Options{Sends: 300})
		posted, taken := uint64(0), uint64(0)
		done := make([]verbs.Completion, 500)
		for round := range 40 {
			for range 7 * round {
				posted++
				if err := f.q.Post(&verbs.Work{ID: posted, Op: verbs.OpSend}); err != nil {
					t.Fatal(err)
				}
			}
			f.settled()
			for _, c := range done[:f.q.Completions().Poll(done[:1+5*round])] {
				taken++
				if c.ID != taken || c.Err != nil {
					t.Fatalf("round %d: %+v, want %d", round, c, taken)
				}
			}
		}
		for _, c := range done[:f.q.Completions().Poll(done)] {
			if taken++; c.ID != taken {
				t.Fatalf("%+v, want %d", c, taken)
			}
		}
		if taken < 64 {
			t.Errorf("%d completions of %d requests", taken, posted)
		}
	})
}

// TestEventsOfEachKind (RDMAP-015, 049, RDMAPX-036, 037): a goroutine that waits for an event wakes up for messages that ask for one, and for those that fail, whatever kind they
// are; it sleeps on for others, which one that waits for anything gets.
func TestEventsOfEachKind(t *testing.T) {
	for name, c := range map[string]struct {
		control byte
		event   bool
	}{
		"Send": {0x43, false}, "Send with SE": {0x45, true}, "Send with Invalidate": {0x44, false}, "Send with SE and Invalidate": {0x46, true},
		"Immediate": {0x48, false}, "Immediate with SE": {0x49, true}, "a fault": {0x4a, true}, // an Atomic Request of nothing
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := openHost(t).Domain()
				f := newFakePeer(t, &verbs.Options{Extensions: all, Domain: d, Posted: []verbs.Receive{{ID: 1, Data: make([]byte, 8)}}})
				r, err := d.Register(nil, 0, &verbs.RegionOptions{Only: f.q.Stream()})
				if err != nil {
					t.Fatal(err)
				}
				woke := make(chan error, 1)
				var done [2]verbs.Completion
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				go func() {
					n, err := f.q.Received().WaitEvent(ctx, done[:])
					if err == nil && n != 1 {
						err = errors.New("not one completion")
					}
					woke <- err
				}()
				synctest.Wait()
				if c.control == 0x4a {
					f.say(c.control, 1, 0, nil)
				} else {
					f.say(c.control, 0, r.STag(), make([]byte, 8))
				}
				if c.event {
					if err := <-woke; err != nil || done[0].ID != 1 || errors.Is(done[0].Err, ddp.OperationStream) != (c.control == 0x4a) || done[0].Solicited != (c.control != 0x4a) {
						t.Fatalf("%v: %+v", err, done[0])
					}
					return
				}
				time.Sleep(time.Minute)
				if len(woke) != 0 {
					t.Fatalf("it woke up: %v, %+v", <-woke, done[0])
				}
				if n, err := f.q.Received().Wait(ctx, done[:]); n != 1 || err != nil || done[0].Err != nil || done[0].Solicited {
					t.Errorf("%d, %v: %+v", n, err, done[0])
				}
				cancel()
				<-woke
			})
		})
	}
}
