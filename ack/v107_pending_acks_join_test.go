package ack

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// Observation V7 (docs/peers.md): ids come one by one, each in a batch of its own.
// Those that wait share runs, also when runs are as long as they can be.
func TestDueSlidingRuns(t *testing.T) {
	for _, repeat := range []bool{false, true} {
		dueTests(t, ReceiverConfig{History: 1024, Repeat: repeat}, 16, func(d *dueTest) {
			frames := 0
			for p := 1; p <= 1600; p++ {
				d.batch(p)
				for at, armed := d.d.Deadline(); armed && at <= d.now; at, armed = d.d.Deadline() {
					d.d.Next()
					frames++
				}
			}
			if frames != 100 {
				t.Errorf("%d runs for 1600 frames, want one for each 16", frames)
			}
		})
	}
}

// New ids alternate with copies: the copies are acknowledged at once, and what is
// new waits for company.
func TestDueAlternating(t *testing.T) {
	for _, repeat := range []bool{false, true} {
		dueTests(t, ReceiverConfig{History: 1024, Repeat: repeat}, 100, func(d *dueTest) {
			d.acceptRun(1, 400)
			d.r.DropPending()
			for i := range 5 {
				d.r.Again(d.id(10 + i))
				d.accept(401 + i)
			}
			d.d.Take(d.now, &d.r)
			d.wantDeadline(0)
			want := []Range{d.run(10, 14), d.run(401, 405)}
			if repeat {
				want = []Range{d.run(10, 264), d.run(151, 405)}
			}
			if got, _ := d.d.Next(); got != want[0] {
				d.t.Fatalf("first run %v, want %v", got, want[0])
			}
			d.wantDeadline(2 * ms)
			d.wantRuns(want[1])
		})
	}
}

// Whatever comes: what is due is named once, by few runs of received ids, in time.
func TestDueRandom(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		cfg := ReceiverConfig{History: 1024, Repeat: seed&1 != 0, SplitAtWrap: seed&2 != 0}
		var r Receiver
		r.Init(cfg)
		var d PendingAcks
		d.Init(1+rnd.IntN(40), 2*ms)
		now, next := Instant(time.Hour), frame.Seq(65000)
		owed := make(map[frame.Seq]Instant) // by when
		for range 400 {
			for range rnd.IntN(4) {
				q := next
				if next += frame.Seq(1 + rnd.IntN(8)/7); rnd.IntN(8) == 0 {
					q = next.Add(-rnd.IntN(600))
				}
				switch r.Check(q) {
				case New:
					r.Accept(q, 0)
					owed[q] = now.Add(2 * ms)
				case Duplicate:
					r.Again(q)
					owed[q] = now
				}
			}
			d.Take(now, &r)
			for at, armed := d.Deadline(); armed && at <= now; at, armed = d.Deadline() {
				run, _ := d.Next()
				if run.Count == 0 || cfg.SplitAtWrap && int(run.Start)+int(run.Count) > 1<<16 {
					t.Fatalf("seed %d: run %v", seed, run)
				}
				for i := range int(run.Count) {
					q := run.Start.Add(i)
					if _, due := owed[q]; r.Check(q) != Duplicate || !due && !cfg.Repeat {
						t.Fatalf("seed %d: run %v names id %d, which is %v, due %v", seed, run, q, r.Check(q), due)
					}
					delete(owed, q)
				}
			}
			for q, at := range owed {
				if at <= now {
					t.Fatalf("seed %d: id %d was due %v ago", seed, q, now.Sub(at))
				}
			}
			now = now.Add(time.Duration(rnd.IntN(int(ms))))
		}
	}
}

// A run that waits stands for all that relied on it: one that repeats only the
// first of these does not replace it.
func TestDueJoinedStays(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 1024, Repeat: true}, 100, func(d *dueTest) {
		d.acceptRun(1, 700)
		d.r.DropPending()
		for _, p := range []int{400, 600, 200} {
			d.r.Again(d.id(p))
			d.d.Take(d.now, &d.r)
		}
		d.wantRuns(d.run(400, 654), d.run(200, 454))
	})
}
