package ack

import (
	"testing"
	"time"
)

// Attack A5 (SECURITY.md): what a frame costs does not depend on how far ahead its
// id is.
func TestReceiverFarJumpIsCheap(t *testing.T) {
	const frames = 10_000
	took := func(step int) time.Duration {
		var r Receiver
		r.Init(ReceiverConfig{History: MaxHistory})
		r.Accept(0, 0)
		least := time.Hour // of several: others use the processor too
		for range 8 {
			began := time.Now()
			for range frames {
				r.Accept(r.Newest().Add(step), 7)
				r.DropPending()
			}
			least = min(least, time.Since(began))
		}
		return least
	}
	near := took(1)
	for _, step := range []int{MaxHistory / 2, MaxHistory - 1, MaxHistory, MaxHistory + 1, 1<<15 - 1} {
		// Bit by bit it were 4000 times as long.
		if far := took(step); far > 100*near {
			t.Errorf("%d frames %d ids ahead took %v, in order %v", frames, step, far, near)
		}
	}
}

// The window forgets what falls out of it, whatever the steps in which it moves:
// ids with messages and those without.
func TestReceiverMoveForgets(t *testing.T) {
	for _, history := range []int{1, 2, 16, 64, 128, 256, 1024} {
		receiverTests(t, ReceiverConfig{History: history}, func(r *receiverTest) {
			for _, step := range []int{1, 2, 15, 63, 64, 65, 127, 128, 129, 255, 256, 300, 1000} {
				r.r.Reset()
				r.acceptRun(1, history)
				if step < history {
					r.want(Duplicate, history, 1)
				}
				r.accept(history + step)
				r.want(Duplicate, history+step)
				for p := step + 1; p < history+step; p++ {
					if p > history {
						r.want(New, p)
					} else {
						r.want(Duplicate, p)
					}
				}
			}
		})
	}
}

// Ids without messages are forgotten like the others: those one lap later did not
// come yet.
func TestReceiverMoveForgetsAckOnly(t *testing.T) {
	for _, step := range []int{3, 64, 200, 255} {
		receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
			r.accept(1)
			r.ackOnly(10, 11)
			for p := 1; p < 300; {
				p += step
				r.accept(p)
			}
			for _, p := range []int{10 + 256, 11 + 256} {
				if _, missing := r.r.Missing(r.id(p), r.id(p)); !missing {
					t.Errorf("step %d: frame %d is there and never came", step, p)
				}
			}
		})
	}
}

// Nothing that came before a reset is there, in whatever frame it came.
func TestReceiverResetForgetsAckOnly(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		r.accept(1)
		r.ackOnly(2, 3)
		r.r.Reset()
		r.ackOnly(2)
		r.accept(4)
		for p := 2; p <= 3; p++ {
			if q, ok := r.r.Missing(r.id(p), r.id(4)); !ok || q != r.id(p) {
				t.Errorf("%v %d is missing, want %d", ok, q, r.id(p))
			}
		}
	})
}

// An id that came without messages, and then with them, came.
func TestReceiverMissingAfterBoth(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		r.accept(1)
		r.ackOnly(2, 3)
		r.r.Accept(r.id(2), 0)
		r.ackOnly(2)
		if q, ok := r.r.Missing(r.id(1), r.id(3)); ok {
			t.Errorf("%d is missing", q)
		}
	})
}

// What the ids of one lap before brought without messages is forgotten where the newest id
// moves beyond them.
func TestReceiverForgetsAckOnlyOfLastLap(t *testing.T) {
	missing := func(r *receiverTest, place, last int) {
		t.Helper()
		if q, ok := r.r.Missing(r.id(place), r.id(last)); !ok || q != r.id(place) {
			t.Errorf("%v %d is missing, want %d", ok, q, r.id(place))
		}
	}
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		r.accept(4)
		r.ackOnly(5)
		r.accept(200, 260, 262)
		missing(r, 261, 262) // in the place of 5
	})
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		r.accept(300)
		r.ackOnly(45) // the last one of the history, overtaken
		r.accept(302)
		missing(r, 301, 302)
	})
}

// An id without messages is known when the window moves on from it by several.
func TestReceiverMoveKeepsAckOnly(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		r.accept(9)
		r.ackOnly(10)
		r.accept(13)
		if q, missing := r.r.Missing(r.id(9), r.id(13)); !missing || q != r.id(11) {
			t.Errorf("missing %v: id %d, want %d", missing, q, r.id(11))
		}
	})
}
