package ack

import (
	"testing"
	"time"
)

// wantCap wants a cap of about so many frames.
func (r *roundTest) wantCap(frames int) {
	r.t.Helper()
	if got := r.a.Cap(); got < (frames-2)*modelMTU || got > (frames+2)*modelMTU {
		r.t.Fatalf("cap %d, want about %d frames, %d; %v", got, frames, frames*modelMTU, r.a)
	}
}

// The cap is set by what got through since the first of the losses that it is for.
func TestAdaptiveCapIsOfTheLossyRounds(t *testing.T) {
	r := newRoundTest(t)
	for range 5 {
		r.round(200, ms, ms)
	}
	r.round(1, ms, ms)
	r.send(160)
	r.now = r.now.Add(ms)
	r.acked(40, ms)
	r.lost(120, false)
	r.end()
	if got := r.a.Cap(); got != 0 {
		t.Fatalf("cap %d after one round", got)
	}
	r.send(100)
	r.now = r.now.Add(ms)
	r.acked(10, ms)
	r.lost(90, false)
	r.end()
	r.wantCap(160 * 51 * 85 / 100 / 261)
}

// Frames lost by timeout did not get through either.
func TestAdaptiveCapCountsTimeouts(t *testing.T) {
	r := newRoundTest(t)
	r.send(800)
	r.now = r.now.Add(ms)
	r.acked(100, ms)
	r.lost(300, true)
	r.end()
	r.wantCap(800 * 85 / 100 / 4)
}

// A single frame that got through is all that is known where the losses before it
// came faster than a round.
func TestAdaptiveCapOfOneFrame(t *testing.T) {
	r := newRoundTest(t)
	r.send(1)
	r.now = r.now.Add(ms)
	r.acked(1, 10*ms)
	r.end()
	r.send(200)
	r.now = r.now.Add(ms)
	r.lost(200, false)
	r.end()
	r.send(400)
	r.now = r.now.Add(10 * ms)
	r.acked(1, 10*ms)
	r.end()
	r.wantCap(400 * 85 / 100)
}

// What was in flight when the cap was set has been paid for.
func TestAdaptiveOneAlarmForOneFlight(t *testing.T) {
	r := newRoundTest(t)
	r.send(900)
	r.now = r.now.Add(ms)
	r.acked(200, ms)
	r.lost(300, false)
	r.end()
	before := r.a.Cap()
	r.now = r.now.Add(ms)
	r.lost(400, false)
	r.end()
	r.send(400)
	r.now = r.now.Add(ms)
	r.lost(155, false) // one less than an alarm takes
	r.end()
	if got := r.a.Cap(); before == 0 || got != before {
		t.Errorf("cap %d, before %d; %v", got, before, r.a)
	}
}

// Loss that is not heavy sets no cap, however long it lasts.
func TestAdaptiveNoCapForLightLoss(t *testing.T) {
	r := newRoundTest(t)
	for range 40 {
		n := r.a.Window() / modelMTU
		r.send(n)
		r.now = r.now.Add(max(ms, time.Duration(n)*10*time.Microsecond))
		r.lost(n/10, false)
		r.acked(n-n/10, ms)
		r.end()
	}
	if got := r.a.Cap(); got != 0 {
		t.Errorf("cap %d for one frame lost in ten", got)
	}
}

// After silence the window opens from its first size, and doubles.
func TestAdaptiveOpensAgainAfterSilence(t *testing.T) {
	for _, frames := range []int{1, 20} {
		r := newRoundTest(t)
		r.full(ms, ms)
		r.full(ms, ms)
		r.wantWindow(256)
		r.send(frames)
		r.now = r.now.Add(100 * ms)
		r.lost(frames, true)
		r.end()
		r.round(1, ms, ms)
		r.wantWindow(64)
		r.full(ms, ms)
		r.wantWindow(128)
	}
}

// Where nothing can be heard, silence says nothing of what gets through.
func TestAdaptiveLinkDownIsNoLoss(t *testing.T) {
	r := newRoundTest(t)
	for range 6 {
		r.send(200)
		r.now = r.now.Add(100 * ms)
		r.lost(200, true)
		r.end()
	}
	r.send(400)
	r.now = r.now.Add(100 * ms)
	r.acked(200, ms)
	r.lost(100, false)
	r.end()
	r.wantCap(400 * 85 / 100 * 200 / 500)
}

// raised returns after how many full rounds with that many lost of a thousand the
// cap was raised, and by how many frames.
func (r *roundTest) raised(lostOf1000 int) (rounds, frames int) {
	r.t.Helper()
	before := r.a.Cap()
	for ; r.a.Cap() == before && rounds < 100; rounds++ {
		r.send(1000)
		r.now = r.now.Add(ms)
		r.lost(lostOf1000, false)
		r.acked(1000-lostOf1000, ms)
		r.end()
	}
	return rounds, (r.a.Cap() - before) / modelMTU
}

// The cap is raised by more each time while little is lost, and slowly while more is.
func TestAdaptiveProbesForCap(t *testing.T) {
	for lost, want := range map[int][][2]int{
		0:  {{4, 8}, {4, 16}, {4, 32}},
		50: {{4, 8}, {4, 16}, {4, 32}},
		51: {{4, 8}, {16, 8}, {16, 8}, {16, 8}, {4, 16}}, // nothing lost from the fourth on
	} {
		r := newRoundTest(t)
		r.round(64, ms, ms)
		r.round(128, ms, ms)
		r.round(256, ms, ms)
		r.send(1000)
		r.now = r.now.Add(ms)
		r.acked(100, ms)
		r.lost(900, false)
		r.end()
		if r.a.Cap() == 0 {
			t.Fatal("no cap")
		}
		for i, w := range want {
			if i == 3 {
				lost = 0
			}
			if rounds, frames := r.raised(lost); rounds != w[0] || frames != w[1] {
				t.Errorf("%d of 1000 lost: raise %d after %d rounds by %d frames, want %v", lost, i+1, rounds, frames, w)
			}
		}
	}
}

// Silence of half of what was in flight is weighed as that of all of it.
func TestAdaptiveSilenceOfHalf(t *testing.T) {
	r := newRoundTest(t)
	r.send(400)
	r.now = r.now.Add(100 * ms)
	r.lost(200, true)
	r.end()
	r.acked(200, ms)
	r.end()
	if got := r.a.Cap(); got != 0 {
		t.Errorf("cap %d after one silence", got)
	}
}

// An alarm needs more than 132 frames above the tolerated share.
func TestAdaptiveAlarmBound(t *testing.T) {
	for acked, alarm := range map[int]bool{3: true, 4: false} {
		r := newRoundTest(t)
		r.send(400)
		r.now = r.now.Add(ms)
		r.lost(156, false)
		r.acked(acked, ms)
		r.end()
		if got := r.a.Cap() > 0; got != alarm {
			t.Errorf("156 lost, %d acknowledged: alarm %v, want %v", acked, got, alarm)
		}
	}
	for lost, alarm := range map[int]bool{155: false, 156: true} {
		r := newRoundTest(t)
		r.send(400)
		r.now = r.now.Add(ms)
		r.lost(lost, true)
		r.end()
		if got := r.a.Cap() > 0; got != alarm {
			t.Errorf("%d of 400 lost by timeout: alarm %v, want %v", lost, got, alarm)
		}
	}
}

// A silence is charged once, however many batches follow.
func TestAdaptiveSilenceIsChargedOnce(t *testing.T) {
	r := newRoundTest(t)
	r.send(200)
	r.now = r.now.Add(100 * ms)
	r.lost(200, true)
	r.end()
	r.round(1, ms, ms)
	r.send(1000)
	r.now = r.now.Add(ms)
	for range 100 {
		r.end()
	}
	r.acked(1, ms)
	r.end()
	if got := r.a.Cap(); got != 0 {
		t.Errorf("cap %d after one silence", got)
	}
}

// What led to one alarm does not count for the next one.
func TestAdaptiveSecondAlarm(t *testing.T) {
	r := newRoundTest(t)
	for _, got := range []int{100, 200} {
		r.send(400)
		r.now = r.now.Add(ms)
		r.acked(got, ms)
		r.lost(400-got, false)
		r.end()
		r.wantCap(got * 85 / 100)
	}
}
