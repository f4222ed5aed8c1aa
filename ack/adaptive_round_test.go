package ack

import (
	"testing"
	"time"
)

// roundTest drives an Adaptive round by round.
type roundTest struct {
	t   *testing.T
	a   *Adaptive
	now Instant
}

func newRoundTest(t *testing.T) *roundTest {
	return &roundTest{t: t, a: NewAdaptive(modelMTU), now: Instant(time.Second)}
}

func (r *roundTest) send(frames int) {
	for range frames {
		r.a.OnSent(r.now, 0, modelMTU)
	}
}

func (r *roundTest) acked(frames int, rtt time.Duration) {
	for range frames {
		r.a.OnAcked(r.now, 0, modelMTU, rtt)
	}
}

func (r *roundTest) lost(frames int, timeout bool) {
	for range frames {
		r.a.OnLost(r.now, 0, modelMTU, timeout)
	}
}

func (r *roundTest) end() { r.a.EndBatch(r.now) }

// round sends frames and has them all acknowledged after that time.
func (r *roundTest) round(frames int, took, rtt time.Duration) {
	r.send(frames)
	r.now = r.now.Add(took)
	r.acked(frames, rtt)
	r.end()
}

// full is a round that uses the whole window.
func (r *roundTest) full(took, rtt time.Duration) { r.round(r.a.Window()/modelMTU, took, rtt) }

func (r *roundTest) wantWindow(frames int) {
	r.t.Helper()
	if got := r.a.Window(); got != frames*modelMTU {
		r.t.Fatalf("window %d, want %d frames, %d; %v", got, frames, frames*modelMTU, r.a)
	}
}

// Before anything is known, what a user reads says so, for frames of any length.
func TestAdaptiveNew(t *testing.T) {
	for mtu, bytes := range map[int]int{-1: 64, 0: 64, 1: 64, 1500: 96000} {
		a := NewAdaptive(mtu)
		if a.Window() != bytes || a.Cap() != 0 || a.Rate() != 0 || a.MinRTT() != 0 {
			t.Errorf("mtu %d: window %d, cap %d, rate %v, round trip %v, want %d and nothing",
				mtu, a.Window(), a.Cap(), a.Rate(), a.MinRTT(), bytes)
		}
	}
}

// The window opens when seven eighths of it were in use at one moment of the round,
// whatever was in flight when the round ended.
func TestAdaptiveOpensWhenUsed(t *testing.T) {
	for sent, window := range map[int]int{1: 64, 55: 64, 56: 128, 64: 128} {
		r := newRoundTest(t)
		r.round(sent, ms, ms)
		r.wantWindow(window)
	}
	r := newRoundTest(t)
	r.send(64)
	r.now = r.now.Add(ms)
	r.acked(40, ms)
	r.send(1)
	r.acked(25, ms)
	r.end()
	r.wantWindow(128)
}

// Bursts with pauses between them are as fast as they are: the pauses are not taken
// for slow delivery.
func TestAdaptiveRateOfBursts(t *testing.T) {
	r := newRoundTest(t)
	const want = 1500e6 // bytes per second: a frame each microsecond
	for range 30 {
		r.now = r.now.Add(100 * ms)
		frames := r.a.Window() / modelMTU
		r.round(frames, max(ms, time.Duration(frames)*time.Microsecond), ms)
	}
	if got := r.a.Rate(); got < 0.9*want || got > 1.1*want {
		t.Errorf("rate %.0f of bursts at %.0f", got, want)
	}
}

// A frame that others overtook says nothing of the link being down, even if
// nothing else is in flight.
func TestAdaptiveOneLossIsNoSilence(t *testing.T) {
	r := newRoundTest(t)
	r.full(ms, ms)
	r.full(ms, ms)
	r.wantWindow(256)
	r.send(10)
	r.now = r.now.Add(ms)
	r.acked(9, ms)
	r.lost(1, false)
	r.end()
	r.wantWindow(256)
}

// A window that did not fit counts from the first one on: once is no alarm, and
// twice is.
func TestAdaptiveSilenceOfFirstWindow(t *testing.T) {
	r := newRoundTest(t)
	for i, alarm := range []bool{false, true} {
		r.send(200)
		r.now = r.now.Add(100 * ms)
		r.lost(200, true)
		r.end()
		if got := r.a.Cap() > 0; got != alarm {
			t.Fatalf("silence %d: capped %v, want %v; %v", i+1, got, alarm, r.a)
		}
		r.round(1, ms, ms)
	}
}

// While nothing measures the round trip, the last one known stays.
func TestAdaptiveMinRTTWithoutSamples(t *testing.T) {
	r := newRoundTest(t)
	r.round(1, ms, ms)
	for range 40 {
		r.round(1, 500*ms, -1) // of frames that were sent again
	}
	if got := r.a.MinRTT(); got != ms {
		t.Errorf("shortest round trip %v, want %v", got, ms)
	}
}

// The look at the empty link leaves enough frames for a loss to be noticed.
func TestAdaptiveDrainKeepsMinimum(t *testing.T) {
	r := newRoundTest(t)
	r.round(1, 10*time.Microsecond, 10*time.Microsecond)
	before := r.a.Window()
	for range 1000 { // 10 s: a minimum is remembered for twice 5 s
		if r.full(10*ms, 10*ms); r.a.Window() < before {
			break
		}
	}
	r.wantWindow(4)
}

// What heavy loss forbade is tried again soon, where nothing is lost any more.
func TestAdaptiveCapIsRaised(t *testing.T) {
	r := newRoundTest(t)
	r.send(400)
	r.now = r.now.Add(ms)
	r.acked(100, ms)
	r.lost(300, false)
	r.end()
	before := r.a.Cap()
	if before == 0 {
		t.Fatalf("three quarters lost set no cap; %v", r.a)
	}
	for range 8 {
		r.full(ms, ms)
	}
	if got := r.a.Cap(); got < before+8*modelMTU {
		t.Errorf("cap %d after 8 rounds without loss, before %d", got, before)
	}
}
