package ack

import (
	"testing"
	"time"
)

// While neither a rate nor a round trip is known, only what is tried so far limits
// the window.
func TestAdaptiveNothingMeasured(t *testing.T) {
	r := newRoundTest(t)
	for range 3 {
		r.full(0, -1)
	}
	r.wantWindow(512)
	if got := r.a.Rate(); got != 0 {
		t.Errorf("rate %v", got)
	}
}

// A path that takes no time is measured as that.
func TestAdaptiveNoRoundTrip(t *testing.T) {
	r := newRoundTest(t)
	for range 3 {
		r.full(ms, 0)
	}
	r.wantWindow(adaptiveSlackFrames)
}

// A nanosecond is enough for a rate, and for a round trip.
func TestAdaptiveShortestRound(t *testing.T) {
	r := newRoundTest(t)
	r.round(1, 1, 1)
	if got := r.a.Rate(); got != modelMTU*1e9 {
		t.Errorf("rate %v", got)
	}
	if got := r.a.MinRTT(); got != 1 {
		t.Errorf("shortest round trip %v", got)
	}
}

// A round lasts until all that was in flight at its begin has left.
func TestAdaptiveRoundEndsWithItsFlight(t *testing.T) {
	r := newRoundTest(t)
	r.send(64)
	r.now = r.now.Add(ms)
	r.acked(1, ms)
	r.end() // of the first round, in which the window was used
	r.wantWindow(128)
	r.send(64)
	r.now = r.now.Add(ms)
	r.acked(62, ms)
	r.end()
	r.wantWindow(128)
	r.acked(1, ms)
	r.end()
	r.wantWindow(256)
}

// A rate is remembered for at least five rounds that used the window, and for at
// most ten.
func TestAdaptiveRateIsRemembered(t *testing.T) {
	const frame = 10 * time.Microsecond // the time a link takes for one
	least, most := 1000, 0
	for phase := range adaptiveRateRounds {
		r := newRoundTest(t)
		turn := func(frame time.Duration) {
			r.full(max(ms, time.Duration(r.a.Window()/modelMTU)*frame), ms)
		}
		for range 20 + phase {
			turn(frame)
		}
		r.wantWindow(2*100 + adaptiveSlackFrames)
		rate := r.a.Rate()
		rounds := 0
		for ; r.a.Window() == 456*modelMTU && rounds < 50; rounds++ {
			if r.a.Rate() != rate {
				t.Fatalf("rate %v after %d slow rounds, want %v", r.a.Rate(), rounds, rate)
			}
			turn(10 * frame)
		}
		r.wantWindow(2*10 + adaptiveSlackFrames)
		least, most = min(least, rounds), max(most, rounds)
	}
	if least != adaptiveRateRounds+1 || most != 2*adaptiveRateRounds {
		t.Errorf("a rate was forgotten after %d to %d rounds", least, most)
	}
}

// A minimum of the round trip that is reached again needs no look at the empty link,
// nor does one while the window is not used.
func TestAdaptiveNoDrainWithoutNeed(t *testing.T) {
	r := newRoundTest(t)
	for range 8 {
		r.full(10*ms, ms)
	}
	before := r.a.Window()
	for range 1500 {
		if r.full(10*ms, ms); r.a.Window() < before {
			t.Fatalf("window %d, before %d; %v", r.a.Window(), before, r.a)
		}
	}
	for range 1500 {
		if r.round(10, 10*ms, 10*ms); r.a.Window() < before {
			t.Fatalf("window %d of a sender that uses 10 frames, before %d; %v", r.a.Window(), before, r.a)
		}
	}
}

// A window that keeps a queue is made small for two rounds every five seconds, and
// the empty link shows its round trip.
func TestAdaptiveDrainsRegularly(t *testing.T) {
	const frame, drained = 20 * time.Microsecond, 60 // frames: at most 50 while it looks
	r := newRoundTest(t)
	rtt, took := ms, ms
	r.round(1, rtt, rtt)
	var drains []Instant
	small := 0
	for end := r.now.Add(40 * sec); r.now < end; {
		if r.a.Window() < drained*modelMTU && len(drains) > 0 {
			if small++; small > 2 {
				t.Fatalf("the window stays small; %v", r.a)
			}
			seen := rtt
			if small == 1 {
				seen = took // what left before is still in the queue
			}
			r.full(seen, seen)
			continue
		}
		small = 0
		took = max(rtt, time.Duration(r.a.Window()/modelMTU)*frame)
		if r.full(took, took); r.a.Window() < drained*modelMTU {
			drains = append(drains, r.now)
			rtt = 2 * ms // the path became longer
		}
	}
	if len(drains) < 6 {
		t.Fatalf("%d looks in 40 s", len(drains))
	}
	for i := range drains[1:] {
		if gap := drains[i+1].Sub(drains[i]); gap > 5*sec+100*ms || gap < 5*sec {
			t.Errorf("%v between two looks", gap)
		}
	}
	if got := r.a.MinRTT(); got != rtt {
		t.Errorf("shortest round trip %v, want %v", got, rtt)
	}
}

// A second of idleness is remembered over, and more is not. Nor does a round end
// before anything of it has left.
func TestAdaptiveIdleness(t *testing.T) {
	r := newRoundTest(t)
	r.full(ms, ms)
	r.full(ms, ms)
	r.now = r.now.Add(sec - ms)
	r.send(1) // a second after the last round ended
	r.wantWindow(256)
	r.acked(1, ms)
	r.now = r.now.Add(sec + 1)
	r.send(1)
	r.wantWindow(64)
	r = newRoundTest(t)
	r.send(64)
	r.end()
	r.wantWindow(64)
}

// A look at the empty link that shows no shorter round trip leaves what is known.
func TestAdaptiveDrainShowsNothing(t *testing.T) {
	r := newRoundTest(t)
	for range 505 {
		r.full(10*ms, ms)
	}
	for before := r.a.Window(); r.a.Window() >= before; {
		if r.full(10*ms, 10*ms); r.now > Instant(20*sec) {
			t.Fatal("the empty link was not looked at")
		}
	}
	r.full(12*ms, 12*ms)
	r.full(12*ms, 12*ms)
	if got := r.a.MinRTT(); got != 10*ms {
		t.Errorf("shortest round trip %v, want 10ms", got)
	}
}

// A round in which something was lost does not open the window, and what is in flight
// at its end counts for the next one.
func TestAdaptiveFlightOfTheRoundBefore(t *testing.T) {
	r := newRoundTest(t)
	r.send(64)
	r.now = r.now.Add(ms)
	r.acked(7, ms)
	r.lost(1, false)
	r.end()
	r.wantWindow(64)
	r.now = r.now.Add(ms)
	r.acked(56, ms) // seven eighths
	r.end()
	r.wantWindow(128)
}

// Rounds of which nothing arrived say nothing of the rate.
func TestAdaptiveRateOutlastsLoss(t *testing.T) {
	r := newRoundTest(t)
	r.full(ms, ms)
	rate := r.a.Rate()
	for range 3 * adaptiveRateRounds {
		frames := r.a.Window() / modelMTU
		r.send(frames)
		r.now = r.now.Add(ms)
		r.lost(frames, false)
		r.end()
	}
	if got := r.a.Rate(); got != rate {
		t.Errorf("rate %v, before the loss %v", got, rate)
	}
}

// The look at the empty link does not count for the time that a rate is remembered.
func TestAdaptiveRateOutlastsDrain(t *testing.T) {
	const frame = 10 * time.Microsecond
	r := newRoundTest(t)
	rtt := ms
	turn := func(frame time.Duration) {
		r.full(max(rtt, time.Duration(r.a.Window()/modelMTU)*frame), rtt)
	}
	for before := 0; r.a.Window() >= before; turn(frame) {
		if before = r.a.Window(); r.now > Instant(6*sec) {
			rtt = 2 * ms
		}
		if r.now > Instant(20*sec) {
			t.Fatal("the empty link was not looked at")
		}
	}
	rounds := 0
	for rate := r.a.Rate(); r.a.Rate() == rate && rounds < 50; rounds++ {
		turn(10 * frame)
	}
	if rounds < adaptiveRateRounds+1+2 {
		t.Errorf("a rate was forgotten after %d rounds, of which 2 were to look", rounds)
	}
}
