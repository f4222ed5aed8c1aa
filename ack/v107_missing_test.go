package ack

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

func TestReceiverMissing(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		want := func(from, to, missing int) {
			t.Helper()
			q, ok := r.r.Missing(r.id(from), r.id(to))
			if ok != (missing >= 0) || ok && q != r.id(missing) {
				t.Errorf("%d to %d: %d %v, want %d (%d)", from, to, q, ok, r.id(missing), missing)
			}
		}
		want(1, 1, 1)
		r.acceptRun(1, 4)
		r.ackOnly(5, 6)
		r.accept(7, 9)
		want(1, 4, -1)
		want(1, 7, -1)
		want(5, 6, -1)
		want(7, 9, 8)
		want(8, 8, 8)
		want(9, 9, -1)
		want(9, 10, 10)
		want(0, 4, 0)
		want(4, 3, -1)
		r.ackOnly(8) // overtaken
		want(1, 9, -1)
		r.accept(300)
		want(1, 9, 1)
		want(290, 300, 290)
		want(300, 400, 301)
	})
}

// What one lap of the history ago came is not there again: neither behind the
// newest id, nor where a frame without messages was held back for that long.
func TestReceiverMissingOneLapLater(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		want := func(from, to, missing int) {
			t.Helper()
			if q, ok := r.r.Missing(r.id(from), r.id(to)); !ok || q != r.id(missing) {
				t.Errorf("%d to %d: %d %v, want %d", from, to, q, ok, r.id(missing))
			}
		}
		r.acceptRun(1, 300)
		want(300, 301, 301)
		want(290, 400, 301)
		r.accept(600)
		r.ackOnly(200)
		want(456, 456, 456)
		r.ackOnly(344) // the first one behind the history
		want(600, 600+1, 601)
		r.accept(601)
		r.ackOnly(345)
		want(600, 602, 602)
	})
}

// TestReceiverMissingLikeOneByOne: all sizes of history, all places of the words.
func TestReceiverMissingLikeOneByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, history := range []int{1, 8, 32, 64, 128, 1024} {
		t.Run(fmt.Sprint(history), func(t *testing.T) {
			var r Receiver
			r.Init(ReceiverConfig{History: history})
			base := frame.Seq(65536 - 2*history)
			for range 4 * history {
				if q := base.Add(rng.IntN(4 * history)); r.Check(q) == New && rng.IntN(8) > 0 {
					r.Accept(q, 0)
				} else if d := q.Diff(r.newest); d > -history/2 && d < 4 {
					r.AckOnly(q)
				}
				first, last := base.Add(rng.IntN(4*history)), base.Add(rng.IntN(4*history))
				q, ok := r.Missing(first, last)
				want := first
				for ; !last.Before(want); want++ {
					if !r.known(want) || !r.got.has(want, history) && !r.alone.has(want, history) {
						break
					}
				}
				if found := !last.Before(want); ok != found || ok && q != want {
					t.Fatalf("%d to %d, newest %d: %d %v, want %d %v", first, last, r.newest, q, ok, want, found)
				}
			}
		})
	}
}
