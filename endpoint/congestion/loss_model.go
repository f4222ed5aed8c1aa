package congestion

import (
	"math"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

const (
	lossThreshold = 0.02 // LossThresh: of what was in flight; less is no sign
	lossBeta      = 0.7  // Beta: what remains of a bound after losses
	lossHeadroom  = 0.15 // Headroom: what is left to others
	// lossAlways is how much loss is a sign of congestion without a queue. A policer drops without one; no path loses that much by chance. Arbitrary.
	lossAlways = 0.2
	// lossUnknown is how much loss is a sign where round trips say nothing. Arbitrary: to send a quarter more than arrives loses twice as much, and
	// a path that loses half of it by chance gets a queue, by which it is known.
	lossUnknown = 0.1
	// fullLosses is how many losses of a round end Startup (BBRStartupFullLossCnt).
	fullLosses = 6
)

// lossModel is what losses say of how much may be in flight.
//
// It departs from the document in three things. Radio links and bad cables lose some of all frames, whatever is in flight. A
// controller that takes that for congestion gives up a path that nobody else uses. A queue that overflows tells by the round trips of the
// frames beside the one that it dropped. So what is lost beside frames that met no queue is what the path loses anyhow, and
// losses count only as far as they exceed that; or when they are many, as those of a policer, which has no queue. Where round trips are all alike, nothing
// is known of queues: all losses count.
//
// As losses by chance are set apart, those that are left are answered as CUBIC answers them. The document bounds the rate to what was
// delivered in the round of the loss, which a queue that is full does not reduce: a flow that cruises would leave it to others to give way. Here a
// loss of a frame that left in Cruise takes 0.3 of the rate until the next probe, once for those of a window. What a probe of its own overflows
// is answered as in the document, but for how much of the queue is kept after it: see tooMuchInFlight.
type lossModel struct {
	longTerm  int64 // inflight_longterm
	shortTerm int64 // inflight_shortterm

	deliveredLatest int64 // inflight_latest: the most of a sample of this loss round
	roundEnd        int64 // delivered from which on a frame belongs to the next loss round
	roundBegan      bool
	now             roundLosses // of this loss round
	congested       bool        // the last round had losses that count, or marks
	batchMarked     int         // frames of this batch that a queue marked (ECN)
	heedFrom        int64       // delivered from which on a mark counts: to those of frames that left before there was a response

	before     beforeLosses
	cruiseFrom int64 // delivered from which on a frame left in Cruise, and after the last response

	base baseLoss
}

func (l *lossModel) init() {
	l.longTerm, l.shortTerm = bbrUnknown, bbrUnknown
}

// roundLosses are the bytes of a round, and those of them that met a queue.
type roundLosses struct {
	acked, lost, queuedAcked, queuedLost int64
	cruiseLost                           int64 // beside frames that met a queue, of what left after cruiseFrom
	marked                               int   // frames that a queue marked (ECN)
}

// heedMarks decides whether the marks of a batch count. There is one response to those of a window (RFC 3168, section 6.1.2).
func (l *lossModel) heedMarks(s *sample) {
	if s.some && s.prior < l.heedFrom {
		l.batchMarked = 0
	}
	l.now.marked += l.batchMarked
}

// responded notes that less is sent, because of marks or losses.
func (b *BBR) responded() { b.loss.heedFrom, b.loss.cruiseFrom = b.rates.delivered, b.rates.delivered }

func (l *lossModel) acked(bytes int64, q queueing, learn bool) {
	l.now.acked += bytes
	if q != empty {
		l.now.queuedAcked += bytes
	} else if learn {
		l.base.note(bytes, 0)
	}
}

func (l *lossModel) lost(sent *transmission, bytes int64, q queueing, learn bool) {
	l.now.lost += bytes
	if q != empty {
		l.now.queuedLost += bytes
		if q == filled && sent != nil && sent.delivered >= l.cruiseFrom {
			l.now.cruiseLost += bytes
		}
	} else if learn {
		l.base.note(0, bytes)
	}
}

// learns reports whether what is lost of what leaves now, beside an empty queue, says what the path loses by chance: not in a probe for bandwidth, nor while its queue
// drains, nor when more leaves than was ever delivered. A policer, which has no queue, drops all that is more: taken for chance that would be made up for, and dropped again.
func (b *BBR) learns() bool {
	switch b.state {
	case Startup:
		return true
	case Drain, Refill, Up:
		return false
	}
	return b.pace.rate <= b.bandwidth.max()
}

// baseLoss is which share of frames the path loses while its queue is empty.
type baseLoss struct {
	acked, lost [2]float64  // bytes: before, and now
	since       ack.Instant // when now began
}

const (
	// baseMemory is how many bytes become before at once. Arbitrary: at 1 % of loss ten losses.
	baseMemory = 1 << 20
	// baseDoubt is how many bytes are taken to have arrived before anything is known. Arbitrary: a loss or two of few frames say nothing.
	baseDoubt = 32 << 10
	// baseMost is the most that is believed: more is no path that somebody uses. Arbitrary.
	baseMost = 0.15
)

func (p *baseLoss) note(acked, lost int64) {
	p.acked[1] += float64(acked)
	p.lost[1] += float64(lost)
}

// age forgets what is old, also where little is learned: who sees queues, and none that is empty, knows as little of the losses without one as of the round trip
// without one. Where no queue is seen at all, what was known goes on: all losses would count, little would be sent, and no queue would ever be seen.
func (p *baseLoss) age(now ack.Instant, queues bool) {
	if !queues {
		p.since = now
	}
	if p.acked[1]+p.lost[1] > baseMemory || now.Sub(p.since) > minRTTMemory {
		p.acked, p.lost, p.since = [2]float64{p.acked[1], 0}, [2]float64{p.lost[1], 0}, now
	}
}

func (p *baseLoss) forget() { p.acked, p.lost = [2]float64{}, [2]float64{} }

func (p *baseLoss) share() float64 {
	lost := p.lost[0] + p.lost[1]
	return min(lost/(p.acked[0]+p.acked[1]+lost+baseDoubt), baseMost)
}

// baseKnown is from which share on a path is known to lose frames. Arbitrary.
const baseKnown = 0.002

// exceeds reports whether more was lost than a share of all, and than what the path loses anyhow makes likely. Where it is known to lose
// frames, one alone is no sign.
func (l *lossModel) exceeds(share float64, lost, all, mtu int64) bool {
	base := l.base.share()
	expected := base * float64(all)
	most := share*float64(all) + expected + 2*math.Sqrt(expected*float64(mtu))
	if base > baseKnown {
		most += float64(mtu)
	}
	return float64(lost) > most
}

// update looks at a batch, and at the end of a round of losses at all of it.
func (l *lossModel) update(b *BBR, s *sample) {
	if s.some {
		b.bandwidth.latest = max(b.bandwidth.latest, s.rate)
		l.deliveredLatest = max(l.deliveredLatest, s.delivered)
	}
	l.roundBegan = s.some && s.prior >= l.roundEnd
	if !l.roundBegan {
		return
	}
	l.roundEnd = s.total
	n := &l.now
	l.congested = n.marked > 0 || n.queuedLost > 0 && l.exceeds(0, n.queuedLost, n.queuedLost+n.queuedAcked, b.mtu) || l.exceeds(lossAlways, n.lost, n.lost+n.acked, b.mtu)
}

// queueing is what a round trip says of queues.
type queueing uint8

const (
	unknown queueing = iota // round trips are all alike, or there is none
	empty
	filled
)

// span returns by how much round trips differ.
func (m *minimumRTT) span() time.Duration { return max(m.longest[0], m.longest[1]) - m.rtt }

// alike reports whether round trips are too much alike, or too few are known, to tell queues by.
func (m *minimumRTT) alike() bool { return m.rtt < 0 || m.span() < max(m.rtt/16, time.Millisecond/2) }

// met returns whether a frame of that round trip met a queue.
func (m *minimumRTT) met(rtt time.Duration) queueing {
	switch {
	case rtt <= 0 || m.alike():
		return unknown
	case rtt > m.rtt+min(m.span()/4, max(m.rtt/16, time.Millisecond)): // one frame that a radio held back for long says nothing of the queue
		return filled
	}
	return empty
}

// fewFrames is how many frames a path at least holds by which its queue is known: that of a shorter one is a frame or two. Arbitrary.
const fewFrames = 8

// met returns whether a frame of that round trip met a queue, as far as that can be known of the path.
func (b *BBR) met(rtt time.Duration) queueing {
	if b.bdp(1) < fewFrames*b.mtu {
		return unknown
	}
	return b.path.met(rtt)
}

// advance begins a round of losses, after all was drawn from the one before.
func (l *lossModel) advance(s *sample) {
	if !l.roundBegan {
		return
	}
	l.now = roundLosses{}
	l.deliveredLatest = s.delivered
}

// withHeadroom returns the long-term bound less what is left to others.
func (l *lossModel) withHeadroom(mtu int64) int64 {
	if l.longTerm == bbrUnknown {
		return bbrUnknown
	}
	room := max(int64(lossHeadroom*float64(l.longTerm)), mtu)
	return max(l.longTerm-room, bbrMinimumFrames*mtu)
}

// adaptToLoss makes the short-term bounds smaller after a round with losses or marks, unless more was tried in it (section 5.5.10.3).
func (b *BBR) adaptToLoss(s *sample) {
	if !b.loss.roundBegan {
		return
	}
	defer func() { b.bandwidth.latest = s.rate }()
	if !b.loss.congested {
		return
	}
	switch b.state {
	case Startup, Refill, Up:
		return
	}
	if math.IsInf(b.bandwidth.low, 1) {
		b.bandwidth.low = b.bandwidth.max()
	}
	if b.loss.shortTerm == bbrUnknown {
		b.loss.shortTerm = b.window
	}
	if b.round.count <= b.unproven {
		b.bandwidth.low, b.loss.shortTerm = b.bandwidth.latest, b.loss.deliveredLatest // what was before idleness counts for nothing
		b.responded()
		return
	}
	b.bandwidth.low *= lossBeta
	if n := &b.loss.now; b.state != Cruise || !b.loss.exceeds(0, n.cruiseLost, n.queuedLost+n.queuedAcked, b.mtu) {
		b.bandwidth.low = max(b.bandwidth.low, b.bandwidth.latest)
	}
	b.loss.shortTerm = max(b.loss.deliveredLatest, int64(lossBeta*float64(b.loss.shortTerm)))
	b.responded()
}

// tooHigh reports whether so much was lost of what was in flight that less may be in flight (BBRIsInflightTooHigh). A frame alone is no sign.
func (b *BBR) tooHigh(lost, inFlight int64) bool {
	share := lossAlways
	switch b.path.met(b.rates.latestRTT) {
	case filled:
		share = lossThreshold
	case unknown:
		share = lossUnknown
	}
	return b.loss.exceeds(share, lost, inFlight, b.mtu)
}

// judgeLost makes the long-term bound smaller if a lost frame says that too much was in flight.
func (b *BBR) judgeLost(now ack.Instant, t *transmission, bytes int64) {
	lost := b.rates.lost - t.lost
	if !b.tooHigh(lost, t.inFlight) {
		return
	}
	// What was in flight when losses reached the threshold: BBRInflightHiFromLostPacket.
	before, lostBefore := t.inFlight-bytes, lost-bytes
	threshold := lossThreshold + b.loss.base.share()
	within := max((threshold*float64(before)-float64(lostBefore))/(1-threshold), 0)
	b.tooMuchInFlight(now, before+int64(within), t.appLimited)
}

// tooMuchInFlight is BBRHandleInflightTooHigh. The document keeps what was in flight when the queue overflowed: that of path and queue together, so that the
// queue stands nearly full while the flow cruises, and who has less cannot try more. Here 0.7 of it remain, as of CUBIC's window, but
// no less than fills the path in Cruise, with the headroom that is left there.
func (b *BBR) tooMuchInFlight(now ack.Instant, inFlight int64, appLimited bool) {
	b.probe.samples = false // once for each probe
	b.responded()
	if !appLimited {
		target := min(b.bdp(1), b.window)
		needs := min(inFlight, int64(float64(target)/(1-lossHeadroom)))
		b.loss.longTerm = max(needs, int64(lossBeta*float64(max(inFlight, target))), bbrMinimumFrames*b.mtu)
	}
	if b.state == Up {
		b.startDown(now)
	}
}

// startupLosses counts in how many runs frames were lost in a round of Startup (section 5.3.1.3).
type startupLosses struct {
	runs int
	last uint32
}

func (l *startupLosses) lost(order uint32) {
	if l.runs == 0 || order != l.last+1 {
		l.runs++
	}
	l.last = order
}

// tooMany reports whether the losses of the round so far end Startup. The document waits for the end of the round, in which a queue that is
// full loses two of three frames.
func (l *startupLosses) tooMany(b *BBR) bool {
	n := &b.loss.now
	all := n.lost + n.acked
	tooMany := n.marked > 0 || l.runs >= fullLosses && b.path.met(b.rates.latestRTT) == filled && b.loss.exceeds(lossThreshold, n.lost, all, b.mtu) ||
		b.loss.roundBegan && b.loss.exceeds(lossAlways, n.lost, all, b.mtu)
	if b.loss.roundBegan {
		l.runs = 0
	}
	return tooMany
}
