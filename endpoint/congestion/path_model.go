package congestion

import (
	"math"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

const (
	minRTTMemory     = 10 * time.Second       // MinRTTFilterLen
	probeRTTInterval = 5 * time.Second        // ProbeRTTInterval
	probeRTTDuration = 200 * time.Millisecond // ProbeRTTDuration
	extraAckedRounds = 10                     // ExtraAckedFilterLen
	sameRTT          = 64                     // round trips that differ by less of one are the same
	fullGrowth       = 1.25                   // less growth than that for fullRounds rounds: the path is full
	fullRounds       = 3
)

// bandwidthModel is how fast the path delivers: the highest rate of this and of the previous probe for bandwidth, bounded by what
// losses say (sections 5.5.5 to 5.5.7).
type bandwidthModel struct {
	highest [2]float64 // bytes per second: before, and in this cycle
	low     float64    // bw_shortterm
	latest  float64    // bw_latest: the highest of this loss round
}

func (m *bandwidthModel) max() float64     { return max(m.highest[0], m.highest[1]) }
func (m *bandwidthModel) bounded() float64 { return min(m.max(), m.low) }

func (m *bandwidthModel) update(s *sample) {
	if s.rate > 0 && (s.rate >= m.max() || !s.appLimited) {
		m.highest[1] = max(m.highest[1], s.rate)
	}
}

// advance begins a cycle.
func (m *bandwidthModel) advance() {
	if m.highest[1] > 0 {
		m.highest = [2]float64{m.highest[1], 0}
	}
}

// minimumRTT is the round trip of the empty path (section 5.5.2).
type minimumRTT struct {
	rtt        time.Duration // < 0: unknown
	seen       ack.Instant
	probed     time.Duration // the shortest since the last ProbeRTT
	probedAt   ack.Instant
	expired    bool        // it is time to probe
	done       ack.Instant // when ProbeRTT may end; 0: too much is in flight
	roundEnded bool

	longest [2]time.Duration // of longestMemory: before, and now
	since   ack.Instant
}

// longestMemory is half of the time that a longest round trip is remembered: two probes for bandwidth, which make queues, are within it.
const longestMemory = 5 * time.Second

func (m *minimumRTT) init() { m.rtt, m.probed = -1, -1 }

// known returns it, 0: there was no sample.
func (m *minimumRTT) known() time.Duration { return max(m.rtt, 0) }

func (m *minimumRTT) update(now ack.Instant, rtt time.Duration) {
	if now.Sub(m.since) > longestMemory {
		m.longest, m.since = [2]time.Duration{m.longest[1], 0}, now
	}
	m.longest[1] = max(m.longest[1], rtt)
	m.expired = m.probed >= 0 && now.Sub(m.probedAt) > probeRTTInterval
	if rtt >= 0 && (m.probed < 0 || rtt < m.probed || m.expired) {
		m.probed, m.probedAt = max(rtt, 1), now
	}
	if m.rtt > 0 && rtt >= 0 && rtt <= m.rtt+m.rtt/sameRTT {
		// The document waits for a shorter one. A flow alone drains its queue in each cycle: there is nothing to probe for.
		m.seen, m.probedAt, m.expired = now, now, false
	}
	if m.probed >= 0 && (m.rtt < 0 || m.probed < m.rtt || now.Sub(m.seen) > minRTTMemory) {
		m.rtt, m.seen = m.probed, m.probedAt
	}
}

// extraAcked is how much more is acknowledged at once than the bandwidth explains (section 5.5.9): so much more has to be in flight.
type extraAcked struct {
	began ack.Instant
	acked int64
	peak  [2]int64 // in the last rounds: before, and now
	until int      // round in which now becomes before
}

func (e *extraAcked) most() int64 { return max(e.peak[0], e.peak[1]) }

func (e *extraAcked) update(now ack.Instant, s *sample, bandwidth float64, window int64, round int, full bool) {
	if round >= e.until {
		e.peak = [2]int64{e.peak[1], 0}
		if e.until = round + extraAckedRounds/2; !full {
			e.until = round + 1
		}
	}
	expected := int64(bandwidth * now.Sub(e.began).Seconds())
	if e.acked <= expected {
		e.began, e.acked, expected = now, 0, 0
	}
	e.acked += s.acked
	e.peak[1] = max(e.peak[1], min(e.acked-expected, window))
}

// fullBandwidth finds that more does not arrive, though more is sent (section 5.3.1.2).
type fullBandwidth struct {
	reached bool // once
	now     bool // since reset
	rate    float64
	rounds  int
}

// reset looks for it again, from a rate on.
func (f *fullBandwidth) reset(rate float64) { f.now, f.rate, f.rounds = false, rate, 0 }

func (f *fullBandwidth) update(s *sample, roundBegan bool) {
	if f.now || !roundBegan || s.appLimited || s.rate == 0 {
		return
	}
	if s.rate >= f.rate*fullGrowth {
		f.reset(s.rate)
		return
	}
	if f.rounds++; f.rounds >= fullRounds {
		f.now, f.reached = true, true
	}
}

// enterStartup begins to look for the bandwidth.
func (b *BBR) enterStartup() {
	b.state, b.pacingGain, b.windowGain = Startup, bbrStartupPacingGain, bbrStartupWindowGain
}

// checkStartup ends Startup when the path is full, or losses say so.
func (b *BBR) checkStartup() {
	if b.state != Startup {
		return
	}
	if !b.full.reached && b.startup.tooMany(b) {
		b.full.reached, b.full.now = true, true
		// The bursts of flows that begin together overflow a queue that was empty when the frames beside those that are lost passed it.
		b.loss.base.forget()
		b.loss.longTerm = max(b.bdp(1), b.loss.deliveredLatest)
		b.responded()
	}
	if b.full.reached {
		b.state, b.pacingGain, b.windowGain = Drain, bbrDrainPacingGain, bbrWindowGain
	}
}

// checkDrain ends Drain when the queue is empty.
func (b *BBR) checkDrain(now ack.Instant) {
	if b.state == Drain && b.rates.inFlight <= b.inflight(1) {
		b.startDown(now)
	}
}

// checkProbeRTT begins ProbeRTT when the round trip of the empty path was not seen for long, and ends it (section 5.3.4).
func (b *BBR) checkProbeRTT(now ack.Instant, s *sample) {
	if b.state != ProbeRTT && b.path.expired && !b.idleRestart {
		b.saved = b.window
		b.state, b.pacingGain, b.windowGain = ProbeRTT, 1, 0.5
		b.path.done, b.path.roundEnded = 0, false
		b.probe.stopping = true
		b.round.start(b.rates.delivered)
	}
	if b.state == ProbeRTT {
		b.rates.appLimited() // what is measured now says nothing of the bandwidth
		switch {
		case b.path.done == 0:
			if b.rates.inFlight <= b.probeRTTWindow() {
				b.path.done, b.path.roundEnded = now.Add(probeRTTDuration), false
				b.round.start(b.rates.delivered)
			}
		default:
			b.path.roundEnded = b.path.roundEnded || b.round.began
			if b.path.roundEnded {
				b.endProbeRTT(now)
			}
		}
	}
	if s.acked > 0 {
		b.idleRestart = false
	}
}

func (b *BBR) probeRTTWindow() int64 { return max(b.bdp(0.5), bbrMinimumFrames*b.mtu) }

func (b *BBR) endProbeRTT(now ack.Instant) {
	if b.path.done == 0 || now <= b.path.done {
		return
	}
	b.path.probedAt = now
	b.window = max(b.window, b.saved)
	b.saved = 0
	b.resetShortTerm()
	if b.full.reached {
		b.startDown(now)
		b.startCruise()
		return
	}
	b.enterStartup()
}

func (b *BBR) resetShortTerm() {
	b.bandwidth.low, b.loss.shortTerm = math.Inf(1), bbrUnknown
}
