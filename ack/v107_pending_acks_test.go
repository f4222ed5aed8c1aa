package ack

import (
	"slices"
	"testing"
	"time"
)

// dueTest drives a PendingAcks together with a Receiver.
type dueTest struct {
	*receiverTest
	d   PendingAcks
	now Instant
}

func dueTests(t *testing.T, cfg ReceiverConfig, every int, f func(d *dueTest)) {
	receiverTests(t, cfg, func(r *receiverTest) {
		d := &dueTest{receiverTest: r, now: Instant(time.Hour)}
		d.d.Init(every, 2*ms)
		f(d)
	})
}

// batch receives new frames in one batch.
func (d *dueTest) batch(places ...int) {
	d.t.Helper()
	d.accept(places...)
	d.d.Take(d.now, &d.r)
}

func (d *dueTest) wantDeadline(want time.Duration) {
	d.t.Helper()
	if at, armed := d.d.Deadline(); !armed || at.Sub(d.now) != want {
		d.t.Fatalf("deadline in %v (%v), want in %v", at.Sub(d.now), armed, want)
	}
}

func (d *dueTest) wantNone() {
	d.t.Helper()
	if _, armed := d.d.Deadline(); armed {
		d.t.Fatal("a deadline is armed, want none")
	}
	if r, ok := d.d.Next(); ok {
		d.t.Fatalf("%v is due, want nothing", r)
	}
}

// wantRuns takes all runs, as outgoing frames do.
func (d *dueTest) wantRuns(want ...Range) {
	d.t.Helper()
	var got []Range
	for {
		r, ok := d.d.Next()
		if !ok {
			break
		}
		got = append(got, r)
	}
	if !slices.Equal(got, want) {
		d.t.Fatalf("runs %v, want %v", got, want)
	}
	d.wantNone()
}

// DGRDMA-035: an acknowledgement waits a bounded time for company.
func TestDueDelay(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 256}, 8, func(d *dueTest) {
		d.wantNone()
		d.d.Take(d.now, &d.r) // a batch without anything
		d.wantNone()
		d.batch(1, 2)
		d.wantDeadline(2 * ms)
		d.now = d.now.Add(ms)
		d.batch(3)
		d.wantDeadline(ms) // of the first one
		d.wantRuns(d.run(1, 3))
		d.batch(4)
		d.wantDeadline(2 * ms)
	})
}

// After so many frames nothing waits (quirk D1-6).
func TestDueEvery(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 256, Repeat: true}, 4, func(d *dueTest) {
		d.batch(1, 2, 3)
		d.wantDeadline(2 * ms)
		d.batch(4)
		d.wantDeadline(0)
		d.wantRuns(d.run(1, 4)) // the shorter one is repeated in it
		d.batch(5)
		d.wantDeadline(2 * ms) // counted anew
		d.wantRuns(d.run(1, 5))
	})
}

func TestDueUrgent(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 256}, 100, func(d *dueTest) {
		d.batch(1)
		d.wantDeadline(2 * ms)
		d.now = d.now.Add(ms)
		d.batch(3) // a gap
		d.wantDeadline(0)
		d.wantRuns(d.run(1, 1), d.run(3, 3))
		d.now = d.now.Add(sec)
		d.r.Again(d.id(1)) // DGRDMA-028
		d.d.Take(d.now, &d.r)
		d.wantDeadline(0)
		d.wantRuns(d.run(1, 1))
	})
}

// Frames without messages never become due (DGRDMA-024).
func TestDueAckOnly(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 256, Repeat: true}, 1, func(d *dueTest) {
		d.batch(1)
		d.wantRuns(d.run(1, 1))
		d.ackOnly(2, 5, 6, 1, 3)
		d.d.Take(d.now, &d.r)
		d.wantNone()
	})
}

// What could not leave is tried again later.
func TestDueHold(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 256}, 2, func(d *dueTest) {
		d.batch(1, 2)
		d.wantDeadline(0)
		d.d.Hold(d.now.Add(5 * ms))
		d.wantDeadline(5 * ms)
		d.batch(4)
		d.wantDeadline(0)
		d.d.Hold(d.now.Add(5 * ms))
		d.wantRuns(d.run(1, 2), d.run(4, 4)) // a frame may take it before
	})
}

func TestDuePartlyTaken(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 256}, 3, func(d *dueTest) {
		d.batch(1, 3, 5)
		if r, ok := d.d.Next(); !ok || r != d.run(1, 1) {
			t.Fatalf("next run %v, %v", r, ok)
		}
		d.wantDeadline(0)
		d.wantRuns(d.run(3, 3), d.run(5, 5))
	})
}

// The list is bounded: when nothing can be sent, the oldest runs are forgotten.
func TestDueBound(t *testing.T) {
	for _, repeat := range []bool{false, true} {
		dueTests(t, ReceiverConfig{History: 256, Repeat: repeat}, 2, func(d *dueTest) {
			for i := range 200 {
				d.batch(1 + 2*i)
				if n, want := len(d.d.runs), min(i+1, mostPendingAcks); n != want {
					t.Fatalf("%d runs, want %d", n, want)
				}
			}
			for p := 401 - 2*mostPendingAcks; p < 401; p += 2 {
				if r, ok := d.d.Next(); !ok || r != d.run(p, p) {
					t.Fatalf("next run %v, %v, want %v", r, ok, d.run(p, p))
				}
			}
			d.wantNone()
		})
	}
}

func TestDueInit(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 256}, 2, func(d *dueTest) {
		d.batch(1)
		d.d.Init(1, sec)
		d.wantNone()
		d.batch(2)
		d.wantDeadline(0)
	})
}

// A batch that brings nothing new puts nothing off.
func TestDueNothingNew(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 256}, 1, func(d *dueTest) {
		d.batch(1)
		d.now = d.now.Add(ms)
		d.batch()
		d.wantDeadline(-ms)
	})
}

// Frames count until all that waits has left, not until some of it has.
func TestDueCountsWhileAnythingWaits(t *testing.T) {
	dueTests(t, ReceiverConfig{History: 256}, 3, func(d *dueTest) {
		d.batch(1, 2)
		d.wantRuns(d.run(1, 2))
		d.batch(3)
		d.r.Again(d.id(1))
		d.d.Take(d.now, &d.r)
		if run, ok := d.d.Next(); !ok || run != d.run(1, 1) {
			d.t.Fatalf("%v leaves (%v), want the copy", run, ok)
		}
		d.batch(4)
		d.wantDeadline(2 * ms)
		d.batch(5)
		d.wantDeadline(0)
	})
}
