package link

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleSlots checks that the slots of links by which nothing is under way keep no memory from a
// link that wants to send, however many such links there were (F9).
func TestIdleSlots(t *testing.T) {
	for _, size := range []int{0, 16} {
		synctest.Test(t, func(t *testing.T) {
			n := newNet(t, 3)
			h := n.host(2, &Config{Memory: 1 << 20})
			made := h.serve(t, "port", &Options{Directions: Send})
			s := n.stranger(9, h)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			k := uint32(0)
			for ; k < 40; k++ {
				s.dial(k+1, "port", toDialer, half{}, buffers(mostUnderWay, 64))
				p := (<-made).Out
				var got []Buffer
				for range mostUnderWay/2 + 1 {
					b, ok := p.TryAcquire()
					if !ok {
						break
					}
					got = append(got, b)
				}
				for _, b := range got {
					p.Commit(b, 0, size)
				}
				if err := p.Flush(ctx); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d links keep %d bytes", k, h.Stats().Sending)
			s.dial(k+1, "port", toDialer, half{}, buffers(100, MaxMessage))
			p := (<-made).Out
			for range 4 {
				if err := p.Send(ctx, 0, make([]byte, MaxMessage)); err != nil {
					t.Fatalf("though nothing is under way, with %d bytes kept: %v", h.Stats().Sending, err)
				}
			}
			if err := p.Flush(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSlotsWait checks that a producer that needs more slots than there is memory for waits, does
// not spin, and goes on when another link gives memory back, also if it has committed nothing (F9).
func TestSlotsWait(t *testing.T) {
	for name, size := range map[string]uint32{"slots": 1, "both": 64 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 3)
				h := n.host(2, &Config{Memory: 1 << 20})
				made := h.serve(t, "port", &Options{Directions: Send})
				s := n.stranger(9, h)
				s.dial(1, "port", toDialer, half{}, buffers(100, size))
				p := (<-made).Out
				for range firstSlots {
					if _, err := p.Acquire(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				// Another link leaves room for the message or for the slots, and not for both.
				other := h.peerOf(h.ep.Conns()[0])
				left := charge(int(size)) + p.ring.growth(firstSlots) - 1
				if name == "slots" {
					left = p.ring.growth(firstSlots) - 1
				}
				taken := (h.budget.most - h.budget.used.Load() - other.sending.Load() - 2*left) / 2
				if !h.budget.take(other, taken) {
					t.Fatal("no room for the other link")
				}
				got := make(chan error, 1)
				go func() {
					_, err := p.Acquire(t.Context())
					got <- err
				}()
				synctest.Wait()
				if len(got) > 0 {
					t.Fatal("there was memory at once")
				}
				h.budget.give(other, taken)
				synctest.Wait()
				if len(got) == 0 {
					t.Error("it waits on, with memory there")
				}
			})
		})
	}
}
