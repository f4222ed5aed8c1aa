package dgrdma

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestRoomPassesOn checks that a place in the queue passes to another goroutine when the one
// that was told of it did not wait any more.
func TestRoomPassesOn(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Queue: 1}, link: simnet.Link{Latency: 10 * time.Millisecond}})
			defer p.close()
			p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1))
			began := time.Now()
			p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1))
			took := time.Since(began)
			if err := p.toB.Post(write(64, []byte("data"), 0, 1)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), took)
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() { p.toB.Write(ctx, write(64, []byte("data"), 0, 2)) })
			time.Sleep(time.Microsecond)
			wg.Go(func() {
				long, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := p.toB.Write(long, write(64, []byte("data"), 0, 3)); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
		})
	}
}

// TestRoomIsTold checks that a goroutine that waits for a place in the queue is told of each way in
// which one becomes free.
func TestRoomIsTold(t *testing.T) {
	writes := func(c *Conn) (errs chan error) {
		errs = make(chan error, 6)
		for range cap(errs) {
			go func() { errs <- c.Write(context.Background(), write(64, pattern(1, 8), 0, 1)) }()
		}
		return errs
	}
	check := func(t *testing.T, errs chan error, want error) {
		t.Helper()
		time.Sleep(time.Second)
		if len(errs) != cap(errs) {
			t.Fatalf("%d of %d have an answer", len(errs), cap(errs))
		}
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
	}
	t.Run("sent to who never acknowledges", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			h, e, c := openHooked(t, n, OpenCPI2(), Config{Queue: 1})
			defer e.Close()
			h.after = func() { time.Sleep(time.Millisecond) } // while the others come
			check(t, writes(c), nil)
		})
	})
	t.Run("failed by Reset", func(t *testing.T) {
		withFakePeer(t, Config{Queue: 1}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			errs := writes(c)
			s.recv(time.Millisecond)
			for range cap(errs) {
				c.Reset(0)
				s.recv(time.Millisecond)
			}
			check(t, errs, ErrReset)
		})
	})
	t.Run("refused when the peer says what it serves", func(t *testing.T) {
		withFakePeer(t, Config{Queue: 1}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			c.Reset(0)
			local := s.asked()
			errs := writes(c)
			s.recv(10 * time.Millisecond)
			s.welcome(70, local, serviceAt("post", 1<<20))
			check(t, errs, ErrNoService)
		})
	})
}

// TestDrainedForTwo checks that all goroutines that wait until nothing is posted any more are told.
func TestDrainedForTwo(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	r.posts(8)
	one, two := r.c.tx.drain(), r.c.tx.drain()
	r.acknowledges(0)
	for i, empty := range []<-chan struct{}{one, two} {
		select {
		case <-empty:
		default:
			t.Errorf("%d is not told", i)
		}
	}
	if r.c.tx.drain() != nil {
		t.Error("there is something to wait for")
	}
}
