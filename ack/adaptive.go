package ack

import (
	"fmt"
	"math"
	"time"
)

// The numbers of Adaptive, in frames of mtu bytes where they are amounts. Those
// called chosen were picked by running the network model of adaptive_test.go.
const (
	adaptiveMinimumFrames = 4  // arbitrary: enough for three later frames to reveal a lost one
	adaptiveInitialFrames = 64 // less than half of what a kernel-default receive buffer holds

	// Loss is heavy when it exceeds adaptiveHeavyLoss of adaptiveHeavyOutOf, summed up over
	// time, by adaptiveAlarmFrames. One burst lost out of the few of a small window is
	// a large share of it and yet no sign of overload: the sum has to collect
	// four bursts of 44 before it is.
	adaptiveHeavyLoss   = 3
	adaptiveHeavyOutOf  = 20
	adaptiveAlarmFrames = 132 // chosen

	adaptiveCapKeeps    = 0.85 // of what got through at the moment of heavy loss
	adaptiveProbeRounds = 4    // chosen: rounds between two attempts to raise the cap
	adaptiveProbeFrames = 8    // chosen: added by the first attempt; each further one doubles it

	adaptiveProbeMaxLoss = 0.05            // chosen: a third of heavy loss
	adaptiveRateRounds   = 5               // half of the ten rounds that a rate is remembered
	adaptiveRTTMemory    = 5 * time.Second // half of the time that a minimum is remembered
	adaptiveIdleMemory   = time.Second     // arbitrary: then the network is taken for unknown
	adaptiveUnlimited    = int64(1) << 40  // as FixedWindow
	adaptiveNoRTT        = time.Duration(math.MaxInt64)
)

// Adaptive is the default Controller. Its window is the delivery rate
// times the minimum round trip, plus what adaptiveSlack grants, so that loss by itself
// does not make it smaller. Only heavy loss does, because a receiver that drops what
// does not fit into its socket buffer gives no other sign: it sets a cap, which
// is then raised cautiously. After start, silence and idleness the window opens
// from adaptiveInitialFrames, doubling every round.
//
// A round ends when all that was in flight at its begin has left the network.
type Adaptive struct {
	mtu    int64
	window int64 // min of the next three, never below adaptiveMinimumFrames
	target int64 // what rate and round trip call for
	cap    int64 // what heavy loss permits
	open   int64 // what is tried so far

	sent, left int64 // bytes since New; the difference is in flight
	delivered  int64 // of those that left
	full       int64 // in flight from which a round counts as window-limited

	now       adaptiveRound
	recovered int64         // losses of bytes sent before this position were paid for
	overload  int64         // loss above the tolerated share, in 1/adaptiveHeavyOutOf frames
	excess    adaptiveTally // since overload was last 0
	silence   int64         // frames lost by timeout in this batch
	silenced  int64         // and their bytes
	heard     bool          // something was acknowledged since the last silence

	search     adaptiveProbe // for a higher cap
	slack      adaptiveSlack
	rateRounds int
	rate       [2]float64 // bytes per ns: highest of the current and of the previous rounds
	rtt        [2]time.Duration
	rttSince   Instant
	lastSeen   Instant
	drain      int // rounds left with a small window, to see the true round trip
}

type adaptiveTally struct {
	acked, lost int64 // frames
	peak        int64 // most bytes in flight
}

// adaptiveProbe is the state of the search for a higher cap.
type adaptiveProbe struct {
	adaptiveTally // since the last step
	rounds        int
	step          int64 // bytes
}

type adaptiveRound struct {
	adaptiveTally
	start     Instant
	end       int64 // position in sent that must have left
	delivered int64 // at the start
	overload  int64 // at the start
	limited   bool  // the window, not the application, held the sender back
}

var _ Controller = (*Adaptive)(nil)

// NewAdaptive returns an Adaptive for frames of up to mtu bytes.
func NewAdaptive(mtu int) *Adaptive {
	a := &Adaptive{
		mtu:    int64(max(mtu, 1)),
		target: adaptiveUnlimited,
		cap:    adaptiveUnlimited,
		rtt:    [2]time.Duration{adaptiveNoRTT, adaptiveNoRTT},
		heard:  true,
	}
	a.open = adaptiveInitialFrames * a.mtu
	a.setWindow()
	return a
}

// Window returns how many bytes may be in flight.
func (a *Adaptive) Window() int { return int(min(a.window, math.MaxInt)) }

// Cap returns the window that heavy loss permits, 0 before there was any.
func (a *Adaptive) Cap() int {
	if a.cap == adaptiveUnlimited {
		return 0
	}
	return int(min(a.cap, math.MaxInt))
}

// Rate returns the highest delivery rate of the last rounds in bytes per second.
func (a *Adaptive) Rate() float64 { return a.fastest() * 1e9 }

func (a *Adaptive) fastest() float64 { return max(a.rate[0], a.rate[1]) }

// MinRTT returns the shortest round trip of the last seconds, 0 when unknown.
func (a *Adaptive) MinRTT() time.Duration {
	if m := min(a.rtt[0], a.rtt[1]); m != adaptiveNoRTT {
		return m
	}
	return 0
}

func (a *Adaptive) String() string {
	limit := "none"
	if a.cap != adaptiveUnlimited {
		limit = fmt.Sprint(a.cap)
	}
	return fmt.Sprintf("adaptive window=%d inflight=%d cap=%s rate=%.0f minrtt=%v",
		a.window, a.sent-a.left, limit, a.Rate(), a.MinRTT())
}

// NextSend never delays: bursts of tens of frames leave in less time than a
// timer needs, and acknowledgements per batch already space them.
func (a *Adaptive) NextSend(now Instant, _ int) Instant { return now }

// OnSent counts a frame that was put on the wire.
func (a *Adaptive) OnSent(now Instant, _ uint32, bytes int) {
	if a.sent == a.left {
		a.wake(now)
	}
	a.sent += int64(bytes)
	if flight := a.sent - a.left; flight > a.now.peak {
		a.now.peak = flight
		a.now.limited = flight >= a.full
	}
}

// wake starts a round with the first frame after nothing was in flight, so that
// the pause before it does not count as slow delivery.
func (a *Adaptive) wake(now Instant) {
	if now.Sub(a.lastSeen) > adaptiveIdleMemory {
		a.open = min(a.open, adaptiveInitialFrames*a.mtu)
		a.setWindow()
	}
	a.startRound(now)
	a.now.end++
}

func (a *Adaptive) startRound(now Instant) {
	a.lastSeen = now
	flight := a.sent - a.left
	a.now = adaptiveRound{
		adaptiveTally: adaptiveTally{peak: flight},
		start:         now,
		end:           a.sent,
		delivered:     a.delivered,
		overload:      a.overload,
		limited:       flight >= a.full,
	}
}

// OnAcked counts a delivered frame.
func (a *Adaptive) OnAcked(_ Instant, _ uint32, bytes int, rtt time.Duration) {
	a.left += int64(bytes)
	a.delivered += int64(bytes)
	a.now.acked++
	a.heard = true
	a.overload = max(a.overload-adaptiveHeavyLoss, 0)
	if rtt >= 0 && rtt < a.rtt[0] {
		a.rtt[0] = rtt
	}
}

// OnLost counts a frame taken for lost.
func (a *Adaptive) OnLost(_ Instant, _ uint32, bytes int, timeout bool) {
	a.left += int64(bytes)
	if a.left <= a.recovered {
		return
	}
	if timeout {
		a.silence++
		a.silenced += int64(bytes)
		return
	}
	a.now.lost++
	a.overload += adaptiveHeavyOutOf - adaptiveHeavyLoss
}

// OnAppLimited does nothing: rounds that the window did not limit are known by how much was in flight.
func (a *Adaptive) OnAppLimited(Instant) {}

// OnSpurious does nothing: what is made of loss needs much of it.
func (a *Adaptive) OnSpurious(Instant) {}

// EndBatch draws the conclusions of the calls since the last one.
func (a *Adaptive) EndBatch(now Instant) {
	if a.silence > 0 {
		a.endSilence()
	}
	a.slack.gather(now, a.delivered, a.fastest())
	minimum := min(a.rtt[0], a.rtt[1])
	elapsed := now.Sub(a.now.start)
	if a.left < a.now.end || minimum != adaptiveNoRTT && elapsed < minimum {
		return
	}
	a.measure(now, elapsed, minimum)
	a.judge()
	a.startRound(now)
}

// endSilence weighs the frames lost by timeout. When they are most of what was
// in flight, either the link was down, which says nothing about the window, or
// the end of a large window did not fit into a buffer. A single time is
// therefore not enough for an alarm, a second one soon afterwards is.
func (a *Adaptive) endSilence() {
	charge := a.silence * (adaptiveHeavyOutOf - adaptiveHeavyLoss)
	if a.silenced >= a.sent-a.left {
		charge = min(charge, adaptiveAlarmFrames*adaptiveHeavyOutOf*6/10)
		if !a.heard {
			charge = 0
		}
		a.heard = false
		a.open = adaptiveInitialFrames * a.mtu
	}
	if charge > 0 {
		a.now.lost += a.silence
	}
	a.overload += charge
	a.silence, a.silenced = 0, 0
}

// measure updates rate and round trip and what they call for.
func (a *Adaptive) measure(now Instant, elapsed, minimum time.Duration) {
	if elapsed > 0 {
		delivered := a.delivered - a.now.delivered
		rate := float64(delivered) / float64(elapsed)
		a.rate[0] = max(a.rate[0], rate)
		if a.now.limited && a.drain == 0 && delivered > 0 {
			a.slack.judge(now, delivered, elapsed)
			if a.rateRounds++; a.rateRounds >= adaptiveRateRounds {
				a.rateRounds = 0
				a.rate[1], a.rate[0] = a.rate[0], rate
			}
		}
	}
	if a.drain > 0 {
		a.drain--
		if a.drain == 0 {
			a.forget(now)
		}
	} else if now.Sub(a.rttSince) > adaptiveRTTMemory {
		// A window that is never exhausted keeps a queue, and without a look
		// at the empty link that queue would become part of the minimum.
		if a.now.limited && a.rtt[0] > a.rtt[1] {
			a.drain = 2
		} else {
			a.forget(now)
		}
	}
	if minimum != adaptiveNoRTT {
		bdp := int64(min(a.fastest()*float64(minimum), float64(adaptiveUnlimited/2)))
		a.target = bdp + a.slack.grant(a.fastest(), bdp, a.mtu)
		if a.drain > 0 {
			a.target = bdp / 2
		}
	}
}

func (a *Adaptive) forget(now Instant) {
	a.rttSince = now
	if a.rtt[0] != adaptiveNoRTT {
		a.rtt[1] = a.rtt[0]
		a.rtt[0] = adaptiveNoRTT
	}
}

// judge moves the two limits that depend on loss.
func (a *Adaptive) judge() {
	if a.overload == 0 {
		a.excess = adaptiveTally{}
	}
	a.excess.acked += a.now.acked
	a.excess.lost += a.now.lost
	a.excess.peak = max(a.excess.peak, a.now.peak)
	switch {
	case a.overload > adaptiveAlarmFrames*adaptiveHeavyOutOf:
		e := a.excess
		a.cap = int64(adaptiveCapKeeps * float64(e.peak) * float64(e.acked) / float64(max(e.acked+e.lost, 1)))
		a.cap = max(a.cap, adaptiveMinimumFrames*a.mtu)
		a.excess = adaptiveTally{}
		a.overload = 0
		a.recovered = a.sent
		a.search = adaptiveProbe{step: adaptiveProbeFrames * a.mtu}
	case !a.now.limited:
	case a.open < min(a.cap, a.target):
		if a.overload <= a.now.overload {
			a.open *= 2
		}
	case a.cap < a.target:
		a.probe()
	}
	a.setWindow()
}

func (a *Adaptive) setWindow() {
	a.window = max(min(a.target, a.cap, a.open), adaptiveMinimumFrames*a.mtu)
	a.full = a.window - a.window/8
}

// probe raises the cap every few rounds, by more each time. When much of the
// tolerated loss is there already it goes slowly, lest it grow into heavy loss,
// but still goes: random loss beyond all promises must not starve the sender.
func (a *Adaptive) probe() {
	p := &a.search
	p.acked += a.now.acked
	p.lost += a.now.lost
	if p.rounds++; p.rounds < adaptiveProbeRounds {
		return
	}
	if float64(p.lost) > adaptiveProbeMaxLoss*float64(p.acked+p.lost) {
		a.cap += adaptiveProbeFrames * a.mtu
		*p = adaptiveProbe{step: adaptiveProbeFrames * a.mtu, rounds: -3 * adaptiveProbeRounds}
		return
	}
	a.cap += p.step
	*p = adaptiveProbe{step: 2 * p.step}
}
