package dgrdma_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestEndOfBusyPoll checks that the end of an endpoint whose goroutine polls without waiting is
// like any other, which TestEnd cannot do in time of a bubble: in real time, for a few milliseconds
// (attack A17, SECURITY.md).
func TestEndOfBusyPoll(t *testing.T) {
	for _, c := range []struct {
		name string
		does func(e *Endpoint, over chan struct{})
	}{
		{"posts", func(*Endpoint, chan struct{}) {}},
		{"is kept", func(_ *Endpoint, over chan struct{}) { <-over }},
		{"of a closed connection is kept", func(*Endpoint, chan struct{}) {}},
		{"closes", func(e *Endpoint, _ chan struct{}) { e.Stop() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			watchdog := time.AfterFunc(time.Minute, func() { panic(t.Name() + " hangs") })
			defer watchdog.Stop()
			n := simnet.New(1)
			defer n.Close()
			region, _ := NewRegion(4096)
			before := endpointGoroutines()
			a := open(t, n, &Config{ID: 1, BusyPoll: true, Queue: 16, GiveUp: time.Minute})
			b := open(t, n, &Config{ID: 2, Memory: region, GiveUp: time.Minute})
			if _, err := b.Connect(Peer{ID: 1, Addr: endA}); err != nil {
				t.Fatal(err)
			}
			toB, err := a.Connect(Peer{ID: 2, Addr: endB})
			if err != nil {
				t.Fatal(err)
			}
			var posted, answered, inside atomic.Int32
			did, over := make(chan struct{}, 1), make(chan struct{})
			var post func() error
			post = func() error {
				posted.Add(1) // before it can be answered
				err := toB.PostWith(&Transaction{Completion: Word(0, 0)}, func(_ *Transaction, err error) {
					inside.Add(1)
					defer inside.Add(-1)
					answered.Add(1)
					post()
					select {
					case did <- struct{}{}:
						c.does(a, over)
					default:
					}
				})
				if err != nil {
					posted.Add(-1)
				}
				return err
			}
			if c.name == "of a closed connection is kept" {
				// It is called by the goroutine that sends, of which no batch's end tells.
				other, err := a.Connect(Peer{ID: 2, Addr: endB, As: 9})
				if err != nil {
					t.Fatal(err)
				}
				if err := other.PostWith(&Transaction{Completion: Word(0, 0)}, func(*Transaction, error) { <-over }); err != nil {
					t.Fatal(err)
				}
				other.Close()
			}
			for range 8 {
				post() // if the endpoint has not ended yet
			}
			for len(did) == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(2 * time.Millisecond)
			closed := make(chan error, 1)
			go func() { closed <- a.Close() }()
			if strings.HasSuffix(c.name, "is kept") {
				select {
				case err := <-closed:
					t.Error("Close returned while a callback runs")
					closed <- err
				case <-time.After(5 * time.Millisecond):
				}
			}
			close(over)
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if in, p, got := inside.Load(), posted.Load(), answered.Load(); in != 0 || p != got {
				t.Errorf("%d callbacks run; %d posts, %d answers", in, p, got)
			}
			if err := post(); err != ErrClosed {
				t.Errorf("Post: %v, want %v", err, ErrClosed)
			}
			b.Close()
			for wait := time.Millisecond; endpointGoroutines() > before; wait *= 2 {
				if wait > 4*time.Second {
					t.Fatalf("%d goroutines, %d before", endpointGoroutines(), before)
				}
				time.Sleep(wait)
			}
		})
	}
}
