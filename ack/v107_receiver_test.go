package ack

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// receiverTest drives a Receiver. As in senderTest, frames are named by the
// place of their id.
type receiverTest struct {
	t     *testing.T
	r     Receiver
	first frame.Seq
}

func receiverTests(t *testing.T, cfg ReceiverConfig, f func(r *receiverTest)) {
	for _, first := range testFirsts {
		t.Run(fmt.Sprintf("first=%d", first), func(t *testing.T) {
			r := &receiverTest{t: t, first: first}
			r.r.Init(cfg)
			f(r)
		})
	}
}

func (r *receiverTest) id(place int) frame.Seq { return r.first.Add(place - 1) }

// tag of the frame at that place; the first ones are those that are folded.
func (r *receiverTest) tag(place int) uint16 { return uint16(place - 1) }

// accept receives new frames.
func (r *receiverTest) accept(places ...int) {
	r.t.Helper()
	for _, p := range places {
		r.want(New, p)
		r.r.Accept(r.id(p), r.tag(p))
		r.want(Duplicate, p)
	}
}

// acceptRun receives all frames between two places.
func (r *receiverTest) acceptRun(from, to int) {
	r.t.Helper()
	for ; from <= to; from++ {
		r.accept(from)
	}
}

func (r *receiverTest) ackOnly(places ...int) {
	for _, p := range places {
		r.r.AckOnly(r.id(p))
	}
}

func (r *receiverTest) want(v Verdict, places ...int) {
	r.t.Helper()
	for _, p := range places {
		if got := r.r.Check(r.id(p)); got != v {
			r.t.Fatalf("frame %d is %v, want %v", p, got, v)
		}
	}
}

// run names the range between two places.
func (r *receiverTest) run(from, to int) Range { return Run(r.id(from), r.id(to)) }

// allDue takes what became due, in frames that leave at once.
func allDue(r *Receiver) (runs []Range) {
	var d PendingAcks
	d.Init(1, 0)
	d.Take(0, r)
	for {
		run, ok := d.Next()
		if !ok {
			return runs
		}
		runs = append(runs, run)
	}
}

// wantDue takes what became due.
func (r *receiverTest) wantDue(want ...Range) {
	r.t.Helper()
	if got := allDue(&r.r); !slices.Equal(got, want) {
		r.t.Fatalf("due %v, want %v", got, want)
	}
	if fresh, urgent := r.r.pending(); fresh != 0 || urgent {
		r.t.Fatalf("%d frames fresh, urgent %v after they were taken", fresh, urgent)
	}
}

func (r *receiverTest) wantUrgent(want bool) {
	r.t.Helper()
	if _, urgent := r.r.pending(); urgent != want {
		r.t.Fatalf("urgent is %v, want %v", urgent, want)
	}
}

// DGRDMA-027: duplicates are known in the whole history. DGRDMA-034: what lies
// behind it is old.
func TestReceiverVerdicts(t *testing.T) {
	for _, history := range []int{1, 256, MaxHistory} {
		t.Run(fmt.Sprintf("history=%d", history), func(t *testing.T) {
			receiverTests(t, ReceiverConfig{History: history}, func(r *receiverTest) {
				r.want(New, 1, 2, -5, 1<<15)
				r.accept(1)
				r.want(Old, 1-history)
				r.accept(2)
				r.want(New, 3, 4, 1000, 1<<15-1+2)
				r.want(Old, 2-history, 2-history-1, 2-1<<15)
				n := 3 * history / 2
				r.accept(n + 2) // over all between
				r.want(Old, 2, 1)
				if history > 1 {
					r.want(New, n+1, n+2-history+1)
					r.accept(n+1, n+2-history+1)
				}
				r.want(Duplicate, n+2)
			})
		})
	}
}

// Over several laps of the ids each frame is new once.
func TestReceiverLaps(t *testing.T) {
	for _, history := range []int{256, MaxHistory} {
		receiverTests(t, ReceiverConfig{History: history}, func(r *receiverTest) {
			for p := 1; p < 150000; p++ {
				if p%7 == 0 {
					continue
				}
				r.accept(p)
				if q := p - history/2; q > 0 && q%7 != 0 {
					r.want(Duplicate, q)
				}
				if q := p - history + 1; q > 0 && q%7 == 0 {
					r.accept(q) // the last moment for one that is late
				}
			}
			r.r.DropPending()
			r.wantDue()
		})
	}
}

// Tags tell a retransmission from another frame under the same id (DGRDMA-041).
func TestReceiverTags(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		if r.r.Carried(r.id(1), 0) {
			t.Error("a frame was carried before there was any")
		}
		for p := 1; p <= 4; p++ { // tags 0 to 3
			r.accept(p)
		}
		r.ackOnly(5)
		for p := 1; p <= 4; p++ {
			if !r.r.Carried(r.id(p), r.tag(p)) {
				t.Errorf("frame %d was not carried with tag %d", p, r.tag(p))
			}
			if r.r.Carried(r.id(p), r.tag(p)+100) {
				t.Errorf("frame %d was carried with a tag not its own", p)
			}
		}
		for tag := range uint16(5) {
			if r.r.Carried(r.id(5), tag) || r.r.Carried(r.id(6), tag) || r.r.Carried(r.id(0), tag) {
				t.Errorf("an id that no frame with messages had was carried with tag %d", tag)
			}
		}
		r.accept(300)
		if r.r.Carried(r.id(1), r.tag(1)) || r.r.Carried(r.id(300-256), r.tag(300-256)) {
			t.Error("a frame is carried behind the history")
		}
	})
}

func TestReceiverReset(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		r.accept(1, 2, 5)
		if s := r.r.Newest(); s != r.id(5) {
			t.Errorf("newest id %d, want %d", s, r.id(5))
		}
		r.r.Reset()
		if w := r.r.Newest(); w != 0 {
			t.Errorf("ids go on at %d after Reset", w)
		}
		if fresh, urgent := r.r.pending(); fresh != 0 || urgent {
			t.Error("something is due after Reset")
		}
		r.wantDue()
		r.want(New, 1, 2, 5, -1000)
		r.accept(2)
		r.wantDue(r.run(2, 2))
	})
}

// Init begins with nothing, whatever was there, and whatever was remembered of it.
func TestReceiverInitAgain(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 8}, func(r *receiverTest) {
		r.accept(1, 2, 5)
		r.r.Init(ReceiverConfig{History: 256})
		if w := r.r.Newest(); w != 0 {
			t.Errorf("ids go on at %d", w)
		}
		r.wantDue()
		r.accept(1, 100)
		r.want(New, 2, 5)
	})
}

func TestReceiverHistoryIsPowerOfTwo(t *testing.T) {
	for _, history := range []int{0, -1, 3, 255, MaxHistory * 2} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("history %d was taken", history)
				}
			}()
			new(Receiver).Init(ReceiverConfig{History: history})
		}()
	}
}

// DGRDMA-028: a duplicate is acknowledged again, and at once.
func TestReceiverAgain(t *testing.T) {
	for _, repeat := range []bool{false, true} {
		t.Run(fmt.Sprintf("repeat=%v", repeat), func(t *testing.T) {
			receiverTests(t, ReceiverConfig{History: 256, Repeat: repeat}, func(r *receiverTest) {
				r.accept(1, 2, 3)
				r.wantUrgent(false)
				r.wantDue(r.run(1, 3))
				r.r.Again(r.id(2))
				r.wantUrgent(true)
				if fresh, _ := r.r.pending(); fresh != 0 {
					t.Errorf("%d frames fresh after a duplicate", fresh)
				}
				if repeat {
					r.wantDue(r.run(1, 3))
				} else {
					r.wantDue(r.run(2, 2))
				}
			})
		})
	}
}

// An id behind the history is acknowledged alone (DGRDMA-034): nothing is known
// of its neighbours.
func TestReceiverAgainOld(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256, Repeat: true}, func(r *receiverTest) {
		r.acceptRun(1, 300)
		r.r.DropPending()
		r.r.Again(r.id(10))
		r.r.Again(r.id(300 - 256))
		r.wantDue(r.run(10, 10), r.run(44, 44))
	})
}

// One range per frame (DGRDMA-017): runs are as long as they can be, up to 255,
// across the wrap as well (DGRDMA-016).
func TestReceiverRuns(t *testing.T) {
	cfg := ReceiverConfig{History: MaxHistory}
	t.Run("once", func(t *testing.T) {
		receiverTests(t, cfg, func(r *receiverTest) {
			r.acceptRun(1, 600)
			r.wantDue(r.run(1, 255), r.run(256, 510), r.run(511, 600))
			r.accept(601, 603, 605, 604, 602)
			r.wantDue(r.run(601, 605))
		})
	})
	cfg.Repeat = true
	t.Run("repeat", func(t *testing.T) {
		receiverTests(t, cfg, func(r *receiverTest) {
			r.acceptRun(1, 600)
			r.wantDue(r.run(1, 255), r.run(256, 510), r.run(346, 600))
			r.accept(601)
			r.wantDue(r.run(347, 601))
			r.accept(603)
			r.wantDue(r.run(603, 603))
			r.accept(602)
			r.wantDue(r.run(349, 603)) // first forth, then back
			r.r.Again(r.id(100))
			r.wantDue(r.run(100, 354))
			r.accept(605, 606, 608, 604)
			r.wantDue(r.run(352, 606), r.run(608, 608))
		})
	})
	t.Run("covered", func(t *testing.T) {
		receiverTests(t, cfg, func(r *receiverTest) {
			r.acceptRun(1, 10)
			r.wantDue(r.run(1, 10))
			r.r.Again(r.id(3))
			r.r.Again(r.id(7))
			r.r.Again(r.id(1))
			r.wantDue(r.run(1, 10))
		})
	})
	// Two links, one behind the other (quirk F19): two runs, not one per frame.
	t.Run("interleaved", func(t *testing.T) {
		receiverTests(t, cfg, func(r *receiverTest) {
			for p := 1; p <= 20; p++ {
				r.accept(p, p+30)
			}
			r.wantDue(r.run(1, 20), r.run(31, 50))
		})
	})
	// Ids of acknowledgement-only frames end a run.
	t.Run("ack_only", func(t *testing.T) {
		receiverTests(t, cfg, func(r *receiverTest) {
			r.acceptRun(1, 3)
			r.ackOnly(4, 5)
			r.acceptRun(6, 8)
			r.wantDue(r.run(1, 3), r.run(6, 8))
		})
	})
}

// Quirk L3: a legacy peer applies nothing beyond id 65535 of a run.
func TestReceiverSplitAtWrap(t *testing.T) {
	for _, repeat := range []bool{false, true} {
		t.Run(fmt.Sprintf("repeat=%v", repeat), func(t *testing.T) {
			var r Receiver
			r.Init(ReceiverConfig{History: 256, Repeat: repeat, SplitAtWrap: true})
			for q := frame.Seq(65530); q != 4; q++ {
				r.Accept(q, 7)
			}
			if got, want := allDue(&r), []Range{{65530, 6}, {0, 4}}; !slices.Equal(got, want) {
				t.Errorf("due %v, want %v", got, want)
			}
			r.Again(65535)
			r.Again(0)
			want := []Range{{65535, 1}, {0, 1}}
			if repeat {
				want = []Range{{65530, 6}, {0, 4}}
			}
			if got := allDue(&r); !slices.Equal(got, want) {
				t.Errorf("due again %v, want %v", got, want)
			}
		})
	}
}

// DGRDMA-024, quirk F14: frames without messages are never acknowledged; their
// ids are no gaps (DGRDMA-014), and a later frame with messages under one of
// them is new.
func TestReceiverAckOnly(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256, Repeat: true}, func(r *receiverTest) {
		r.ackOnly(1, 2, 40000)
		r.want(New, 1, 2, 3)
		r.accept(3)
		r.wantDue(r.run(3, 3))
		r.ackOnly(4, 5, 6)
		r.wantUrgent(false)
		r.wantDue()
		r.accept(7)
		r.wantUrgent(false)
		r.wantDue(r.run(7, 7))
		r.accept(5) // an id without messages, used again
		r.wantDue(r.run(5, 5))
		r.ackOnly(5, 3) // and again without
		r.want(Duplicate, 5, 3)
		r.ackOnly(7, 7)
		r.want(Duplicate, 7)
	})
}

// The window follows the id of a frame without messages up to half of all ids ahead.
func TestReceiverAckOnlyFar(t *testing.T) {
	for _, ahead := range []int{2, 1024, 1<<15 - 1} {
		t.Run(fmt.Sprintf("ahead=%d", ahead), func(t *testing.T) {
			receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
				r.accept(1)
				before := r.r.Newest()
				r.r.AckOnly(before.Add(ahead))
				if got := r.r.Newest().Diff(before); got != ahead {
					t.Fatalf("the window moved by %d ids", got)
				}
				r.want(New, 1+ahead, ahead)
				r.want(Old, 1+ahead-256)
				r.accept(ahead)
				r.r.AckOnly(before) // a held-back copy
				if got := r.r.Newest().Diff(before); got != ahead {
					t.Fatalf("a copy moved the window by %d ids", got-ahead)
				}
			})
		})
	}
}

// A gap asks for an acknowledgement at once, so that the sender learns of it.
func TestReceiverGap(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256}, func(r *receiverTest) {
		r.accept(5)
		r.wantUrgent(false) // the first frame has no id before it
		r.accept(6)
		r.wantUrgent(false)
		r.accept(8)
		r.wantUrgent(true)
		r.r.DropPending()
		r.wantUrgent(false)
		r.accept(7, 9)
		r.wantUrgent(false)
		r.accept(2)
		r.wantUrgent(false)
	})
}

// Property of all profiles: what is due again and again is bounded by the frames
// of a batch, and costs nothing once taken.
func TestReceiverZeroAllocs(t *testing.T) {
	var r Receiver
	r.Init(ReceiverConfig{History: MaxHistory, Repeat: true})
	var d PendingAcks
	d.Init(2, 2*ms)
	q, now := frame.Seq(65000), Instant(0)
	if n := fixture.Allocations(2000, func() {
		for range 8 {
			if r.Check(q) == New {
				r.Accept(q, uint16(q))
			}
			q++
		}
		r.Again(q - 3)
		r.AckOnly(q)
		q += 2
		now = now.Add(time.Microsecond)
		d.Take(now, &r)
		for {
			if _, ok := d.Next(); !ok {
				break
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations per batch, want 0", n)
	}
}

func TestVerdictString(t *testing.T) {
	for v, want := range map[Verdict]string{New: "new", Duplicate: "duplicate", Old: "old", Far: "far"} {
		if v.String() != want {
			t.Errorf("verdict %d is %q, want %q", v, v, want)
		}
	}
}

// pending reports how many frames were accepted since what is due was last taken, and
// whether something asks for an acknowledgement at once: a gap or a duplicate.
func (r *Receiver) pending() (fresh int, urgent bool) { return r.fresh, r.gap || len(r.again) > 0 }
