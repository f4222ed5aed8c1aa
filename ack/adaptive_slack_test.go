package ack

import (
	"testing"
	"time"
)

const (
	slackMost  = adaptiveSlackFrames * modelMTU
	slackLeast = adaptiveSlackLeast * modelMTU
	gigabit    = 0.125 // bytes per ns
)

// slackTest drives an adaptiveSlack with rounds of a millisecond, in each of which all
// is acknowledged evenly, in 50 batches.
type slackTest struct {
	t   *testing.T
	s   adaptiveSlack
	now Instant
	all int64 // delivered
}

func (r *slackTest) rounds(n int, rate float64) {
	const batch = 20 * us
	for range n {
		for range ms / batch {
			r.now = r.now.Add(batch)
			r.all += int64(rate * float64(batch))
			r.s.gather(r.now, r.all, rate)
		}
		r.s.judge(r.now, int64(rate*float64(ms)), ms)
	}
}

// burst acknowledges bytes at once.
func (r *slackTest) burst(bytes int64, rate float64) {
	r.all += bytes
	r.s.gather(r.now, r.all, rate)
}

func (r *slackTest) want(bytes int64, rate float64, bdp int64) {
	r.t.Helper()
	const batch = 2500 // what of a batch the rate does not explain at once
	if got := r.s.grant(rate, bdp, modelMTU); got < bytes || got > bytes+2*batch {
		r.t.Fatalf("slack %d, want %d; %+v", got, bytes, r.s)
	}
}

func newSlackTest(t *testing.T, rate float64) *slackTest {
	r := &slackTest{t: t, now: Instant(time.Hour)}
	r.rounds(40, rate)
	return r
}

// The slack is whole until two rates in a row are the same, within a sixteenth.
func TestSlackWhileTheRateGrows(t *testing.T) {
	r := &slackTest{t: t}
	rate := gigabit
	for range 10 {
		r.want(slackMost, rate, 0)
		r.rounds(20, rate)
		rate *= 1.07
	}
	r.want(slackMost, rate, 0)
	r.rounds(19, rate)
	r.rounds(1, rate)
	r.want(slackMost, rate, 0)
	r.rounds(20, rate*1.06)
	r.want(int64(rate*1.06*250e3), rate*1.06, 0)
}

// It is whole, too, while the rate falls: on a busy machine no two are the same.
func TestSlackWhileTheRateFalls(t *testing.T) {
	r := &slackTest{t: t}
	rate := gigabit
	for range 10 {
		r.rounds(20, rate)
		r.want(slackMost, rate, 0)
		rate *= 0.93
	}
	r.rounds(20, rate)
	r.rounds(20, rate*0.94)
	r.want(slackLeast, rate, 0)
}

// It is 250 us, 16 frames, or rate times round trip, and never more than 256 frames
// beyond that.
func TestSlackOfSteadyFlow(t *testing.T) {
	for _, test := range []struct {
		rate      float64
		bdp, want int64
	}{
		{gigabit, 0, 31250},
		{gigabit / 10, 0, slackLeast},
		{gigabit, 100_000, 100_000},
		{10 * gigabit, 0, 312_500},
		{30 * gigabit, 0, slackMost},
		{30 * gigabit, 1000, slackMost + 1000},
	} {
		r := newSlackTest(t, gigabit/10) // so that batches are small
		r.want(test.want, test.rate, test.bdp)
	}
}

// A burst is granted, with a quarter and four frames, for 200 to 400 ms.
func TestSlackOfBursts(t *testing.T) {
	const bytes, want = 100_000, 125_000 + 4*modelMTU
	r := newSlackTest(t, gigabit)
	r.burst(bytes, gigabit)
	r.want(want, gigabit, 0)
	r.rounds(200, gigabit)
	r.want(want, gigabit, 0)
	r.rounds(260, gigabit)
	r.want(31250, gigabit, 0)
	r.burst(10*slackMost, gigabit)
	r.want(slackMost, gigabit, 0)
}

// Several batches are one burst, if no more time passes between them than they took
// from the rate.
func TestSlackBurstOfBatches(t *testing.T) {
	const want = 125_000 + 4*modelMTU
	r := newSlackTest(t, gigabit)
	for range 4 {
		r.burst(25_000, gigabit)
	}
	r.want(want, gigabit, 0)
	r = newSlackTest(t, gigabit)
	for range 4 {
		r.burst(25_000, gigabit)
		r.now = r.now.Add(300 * us)
	}
	r.want(31_250+4*modelMTU, gigabit, 0)
}

// What is delivered faster than was known is no burst: not when the rate grows, nor
// when the one that is known is a little too low for long.
func TestSlackRateIsNoBurst(t *testing.T) {
	r := newSlackTest(t, gigabit)
	for range 10 {
		r.burst(2_000, gigabit)
		r.rounds(1, 1.2*gigabit)
	}
	r.burst(100_000, gigabit)
	r.rounds(10, 1.2*gigabit)
	r.want(37_500, 1.2*gigabit, 0)

	r = newSlackTest(t, gigabit)
	for range 10_000 {
		r.now = r.now.Add(ms)
		r.all += gigabit * 1e6
		r.s.gather(r.now, r.all, gigabit*0.99)
	}
	r.want(int64(gigabit*1e6+gigabit*0.01*20e6)*5/4+4*modelMTU, gigabit, 0)
}

// When the rate falls by more than a sixteenth it may be for want of slack, which is whole
// again for two seconds; the rate that there is then is taken for granted.
func TestSlackIsGivenBack(t *testing.T) {
	r := newSlackTest(t, gigabit)
	r.rounds(100, gigabit*0.945)
	r.want(31250, gigabit, 0)
	r.rounds(40, gigabit*0.93)
	r.want(slackMost, gigabit, 0)
	r.rounds(1900, gigabit*0.93)
	r.want(slackMost, gigabit, 0)
	r.rounds(140, gigabit*0.93)
	r.want(31250, gigabit, 0)
	r.rounds(100, gigabit*0.93)
	r.want(31250, gigabit, 0)
}

// A rate is that of five rounds and 20 ms at least.
func TestSlackJudgesSlowly(t *testing.T) {
	r := &slackTest{t: t}
	for _, test := range []struct {
		rounds int
		took   time.Duration
	}{{5, 10 * ms}, {20, ms}} {
		r.s = adaptiveSlack{}
		for i := range 2 * test.rounds {
			if r.s.tight {
				t.Errorf("after %d rounds of %v the slack is tight", i, test.took)
			}
			r.s.judge(r.now, int64(gigabit*float64(test.took)), test.took)
		}
		if !r.s.tight {
			t.Errorf("after %d rounds of %v the slack is not tight", 2*test.rounds, test.took)
		}
	}
}
