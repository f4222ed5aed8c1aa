package congestion

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// Of a probe for bandwidth, as in section 5.3.3 of the document.
const (
	probeWait       = 2 * time.Second // the least between two
	probeWaitChance = time.Second     // what chance adds at most
	mostProbeRounds = 63              // a flow of Reno on a path that is not longer grows within as many
	mostUpRounds    = 30
)

// bandwidthProbe is the cycle that looks for more bandwidth, and lets others in.
type bandwidthProbe struct {
	began    ack.Instant // the phase
	wait     time.Duration
	stopping bool  // what is acknowledged now is of a probe that ended
	samples  bool  // losses are judged, as more was tried
	upRounds uint  // of growth
	upCount  int64 // bytes that are acknowledged for each frame of growth
	upAcked  int64
}

func (b *BBR) startDown(now ack.Instant) {
	b.state, b.pacingGain, b.windowGain = Down, bbrDownPacingGain, bbrWindowGain
	b.bandwidth.latest, b.loss.deliveredLatest = 0, 0
	b.probe.upCount = bbrUnknown
	b.round.since = int(b.chance(2))
	b.probe.wait = probeWait + time.Duration(b.chance(uint64(probeWaitChance)))
	b.probe.began, b.probe.stopping = now, true
	b.round.start(b.rates.delivered)
}

func (b *BBR) startCruise() {
	b.state, b.pacingGain, b.windowGain = Cruise, 1, bbrWindowGain
	b.loss.cruiseFrom = b.rates.delivered
}

func (b *BBR) startRefill() {
	b.state, b.pacingGain, b.windowGain = Refill, 1, bbrWindowGain
	b.resetShortTerm()
	b.probe.upRounds, b.probe.upAcked = 0, 0
	b.probe.stopping = false
	b.round.start(b.rates.delivered)
}

func (b *BBR) startUp(now ack.Instant, s *sample) {
	b.state, b.pacingGain, b.windowGain = Up, bbrUpPacingGain, bbrUpWindowGain
	b.probe.began, b.probe.stopping = now, false
	b.round.start(b.rates.delivered)
	b.full.reset(s.rate)
	b.growFaster()
}

// cycle goes on with the cycle (section 5.3.3.6).
func (b *BBR) cycle(now ack.Instant, s *sample) {
	if !b.full.reached {
		return
	}
	if b.adaptLongTerm(now, s) {
		return
	}
	switch b.state {
	case Down:
		if !b.timeToProbe(now) && b.rates.inFlight <= min(b.loss.withHeadroom(b.mtu), b.inflight(1)) {
			b.startCruise()
		}
	case Cruise:
		b.timeToProbe(now)
	case Refill:
		if b.round.began {
			b.probe.samples = true
			b.startUp(now, s)
		}
	case Up:
		if b.rates.inFlight >= b.loss.longTerm && b.window >= b.loss.longTerm {
			b.full.reset(s.rate) // the bound, not the path, held it back
		} else if b.full.now {
			b.startDown(now)
		}
	}
}

// timeToProbe begins a probe if it is time, and reports that.
func (b *BBR) timeToProbe(now ack.Instant) bool {
	frames := min(b.bdp(1), b.window) / b.mtu
	if now.Sub(b.probe.began) <= b.probe.wait && int64(b.round.since) < min(frames, mostProbeRounds) {
		return false
	}
	b.startRefill()
	return true
}

// adaptLongTerm makes the long-term bound what the acknowledgements call for (section 5.5.10.2). It reports whether they ended the probe.
func (b *BBR) adaptLongTerm(now ack.Instant, s *sample) (ended bool) {
	if b.probe.stopping && b.round.began {
		b.probe.samples, b.probe.stopping = false, false
		if b.state != ProbeRTT && !s.appLimited {
			b.bandwidth.advance()
		}
	}
	if s.some && (b.loss.batchMarked > 0 || b.tooHigh(s.lostSince, s.inFlight)) {
		was := b.state
		if b.probe.samples {
			b.tooMuchInFlight(now, s.inFlight, s.appLimited)
		}
		return was != b.state
	}
	if b.loss.longTerm == bbrUnknown {
		return false
	}
	b.loss.longTerm = max(b.loss.longTerm, s.inFlight)
	if b.state == Up {
		b.probeUpward(s)
	}
	return false
}

// growFaster doubles how fast the long-term bound grows.
func (b *BBR) growFaster() {
	growth := b.mtu << b.probe.upRounds
	b.probe.upRounds = min(b.probe.upRounds+1, mostUpRounds)
	b.probe.upCount = max(b.window/growth, 1) * b.mtu
}

// probeUpward raises the long-term bound, if it is what bounds the window.
func (b *BBR) probeUpward(s *sample) {
	if b.rates.inFlight+s.acked+b.mtu < b.window || b.window < b.loss.longTerm {
		return
	}
	b.probe.upAcked += s.acked
	if n := b.probe.upAcked / b.probe.upCount; n > 0 {
		b.probe.upAcked -= n * b.probe.upCount
		b.loss.longTerm += n * b.mtu
	}
	if b.round.began {
		b.growFaster()
	}
}
