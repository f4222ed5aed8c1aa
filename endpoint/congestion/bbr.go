package congestion

import (
	"fmt"
	"math"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// The numbers of BBR, from section 2 of the document that package congestion names. Amounts are in frames of mtu bytes.
const (
	bbrInitialFrames = 10               // RFC 6928
	bbrMinimumFrames = 4                // MinPipeCwnd
	bbrInitialRTT    = time.Millisecond // for the pacing rate while no round trip is known

	bbrStartupPacingGain = 2.77 // 4 ln 2
	bbrStartupWindowGain = 2.0
	bbrDrainPacingGain   = 0.5
	bbrDownPacingGain    = 0.9
	bbrUpPacingGain      = 1.25
	bbrWindowGain        = 2.0
	bbrUpWindowGain      = 2.25
	bbrPacingMargin      = 0.99

	// startupWindows is how many windows leave in a round trip of Startup at least: a little more than 2 ln 2, with which the window doubles in each
	// when frames leave evenly. The document has the rate follow the measured bandwidth alone, which lags: it is that of the round before, and the
	// first rounds are shorter than those that double for long. To pace as Linux paces slow start, by 2, drops more at short queues and is hardly faster.
	startupWindows = 1.5

	bbrUnknown = int64(math.MaxInt64 / 4) // an amount that nothing bounds
)

// State is what a [BBR] does.
type State uint8

// The states of a [BBR]. Their names are the document's.
const (
	Startup  State = iota // the rate doubles each round trip, until the path is full
	Drain                 // the queue that Startup made drains
	Down                  // less is sent than is delivered, so that others find room
	Cruise                // as much is sent as is delivered
	Refill                // for a round trip, the path is filled before more is tried
	Up                    // more is tried
	ProbeRTT              // little is in flight, so that the round trip of the empty path is seen
)

var stateNames = [...]string{"Startup", "Drain", "ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeBW_REFILL", "ProbeBW_UP", "ProbeRTT"}

func (s State) String() string { return stateNames[s] }

// BBR is a Controller for paths that others use too.
type BBR struct {
	mtu   int64
	state State
	rates deliveryRates
	round rounds
	pace  pacing

	window     int64 // C.cwnd
	saved      int64 // of before ProbeRTT; 0: none
	pacingGain float64
	windowGain float64

	bandwidth   bandwidthModel
	path        minimumRTT
	aggregation extraAcked
	full        fullBandwidth
	loss        lossModel
	probe       bandwidthProbe

	startup     startupLosses
	spread      bool // a round trip is known
	idleRestart bool // sending began again after nothing was in flight
	unproven    int  // round until which what is known is of before that
	random      uint64
}

var (
	_ ack.Controller = (*BBR)(nil)
	_ ack.Resting    = (*BBR)(nil)
	_ ack.Distant    = (*BBR)(nil)
	_ ack.Inspected  = (*BBR)(nil)
	_ ack.Heeding    = (*BBR)(nil)
)

// NewBBR returns a BBR for frames of up to mtu bytes. Flows with other seeds probe at other moments.
func NewBBR(mtu int, seed uint64) *BBR {
	b := &BBR{mtu: int64(max(mtu, 1)), random: (seed+1)*0x9e3779b97f4a7c15 | 1}
	b.window = bbrInitialFrames * b.mtu
	b.bandwidth.low = math.Inf(1)
	b.loss.init()
	b.path.init()
	b.rates.latestRTT = -1
	b.rates.begin()
	b.enterStartup()
	b.pace = pacing{rate: bbrStartupPacingGain * float64(b.window) / bbrInitialRTT.Seconds(), free: -ack.Instant(time.Hour)}
	return b
}

// Window returns how many bytes may be in flight.
func (b *BBR) Window() int { return int(b.window) }

// NextSend returns when a frame may leave.
func (b *BBR) NextSend(now ack.Instant, _ int) ack.Instant { return b.pace.next(now) }

func (b *BBR) String() string {
	return fmt.Sprintf("bbr state=%v window=%d inflight=%d bw=%.0f pacing=%.0f minrtt=%v long=%s short=%s base-loss=%.1f%%",
		b.state, b.window, b.rates.inFlight, b.bandwidth.bounded(), b.pace.rate, b.path.known(), bound(b.loss.longTerm), bound(b.loss.shortTerm), 100*b.loss.base.share())
}

func bound(n int64) string {
	if n == bbrUnknown {
		return "none"
	}
	return fmt.Sprint(n)
}

// Inspect implements [ack.Inspected].
func (b *BBR) Inspect() ack.ControllerState {
	bound := func(n int64) int {
		if n == bbrUnknown {
			return 0
		}
		return int(n)
	}
	return ack.ControllerState{
		Controller: "bbr", State: b.state.String(), Bandwidth: b.bandwidth.bounded(), PacingRate: b.pace.rate, MinRTT: b.path.known(),
		InflightLongTerm: bound(b.loss.longTerm), InflightShortTerm: bound(b.loss.shortTerm),
	}
}

// OnSent notes a frame that is put on the wire.
func (b *BBR) OnSent(now ack.Instant, order uint32, bytes int) {
	if b.rates.inFlight == 0 && b.rates.limitedUntil != 0 {
		b.restart(now)
	}
	b.rates.sent(now, order, int64(bytes), b.learns())
	b.pace.sent(now, bytes)
}

const (
	// idleHalf is how long nothing was in flight when what may be is half as much: RFC 2861 takes a retransmission timeout, of which RFC 6298 has a second at least.
	idleHalf = time.Second
	// idleRounds is how many rounds what was known before idleness is unproven: that of the first acknowledgements, and the one in which losses are found.
	idleRounds = 2
)

// restart begins again after idleness, with no burst (section 5.4.1). The document leaves the window as it is, which floods a path that became slower: here it is
// halved for each second, and grows again with what is acknowledged.
func (b *BBR) restart(now ack.Instant) {
	b.idleRestart = true
	for idle := now.Sub(b.rates.deliveredAt); idle >= idleHalf && b.window > bbrInitialFrames*b.mtu; idle -= idleHalf {
		b.window = max(b.window/2, bbrInitialFrames*b.mtu)
		b.unproven = b.round.count + idleRounds
		b.probe.began, b.round.since = now, 0 // as after ProbeRTT
	}
	b.aggregation.began, b.aggregation.acked = now, 0
	switch b.state {
	case Down, Cruise, Refill, Up:
		b.setPacing(1)
	case ProbeRTT:
		b.endProbeRTT(now)
	}
}

// OnAppLimited notes that nothing waits to be sent, though more may be in flight.
func (b *BBR) OnAppLimited(ack.Instant) { b.rates.appLimited(); b.pace.idle() }

// OnAcked notes a delivered frame.
func (b *BBR) OnAcked(now ack.Instant, order uint32, bytes int, rtt time.Duration) {
	sent := b.rates.acked(now, order, int64(bytes), rtt)
	if rtt >= 0 {
		b.loss.acked(int64(bytes), b.met(rtt), sent != nil && sent.calm)
	}
}

// OnLost notes a frame taken for lost.
func (b *BBR) OnLost(now ack.Instant, order uint32, bytes int, timeout bool) {
	sent := b.rates.lostFrame(order, int64(bytes))
	b.noteLoss()
	if !timeout {
		b.loss.lost(sent, int64(bytes), b.met(b.rates.near(order)), sent != nil && sent.calm)
	}
	b.startup.lost(order)
	if sent != nil && b.probe.samples {
		b.judgeLost(now, sent, int64(bytes))
	}
}

// HeedsMarks implements [ack.Heeding].
func (b *BBR) HeedsMarks() bool { return true }

// OnMarked implements [ack.Heeding]. Any mark is congestion, as the document asks of those who send ECT(0), and RFC 3168 at least once for each round trip.
func (b *BBR) OnMarked(_ ack.Instant, frames int) { b.loss.batchMarked += frames }

// EndBatch draws the conclusions of the calls since the last one.
func (b *BBR) EndBatch(now ack.Instant) {
	s := b.rates.sample(b.path.known())
	if s.acked == 0 && s.lost == 0 {
		return
	}
	b.round.update(&s)
	b.loss.base.age(now, !b.path.alike())
	b.loss.heedMarks(&s)
	b.loss.update(b, &s)
	b.bandwidth.update(&s)
	b.adaptToLoss(&s)
	b.aggregation.update(now, &s, b.bandwidth.bounded(), b.window, b.round.count, b.full.reached)
	b.full.update(&s, b.round.began)
	b.checkStartup()
	b.checkDrain(now)
	b.cycle(now, &s)
	b.path.update(now, s.rtt)
	b.checkProbeRTT(now, &s)
	b.loss.advance(&s)
	b.setPacing(b.pacingGain)
	b.setWindow(&s)
	b.loss.batchMarked = 0
	b.rates.begin()
}

// bdp returns the bandwidth-delay product, times a gain.
func (b *BBR) bdp(gain float64) int64 {
	rtt := b.path.known()
	if rtt == 0 {
		return int64(gain * float64(bbrInitialFrames*b.mtu))
	}
	return int64(gain * b.needed() * rtt.Seconds())
}

// needed returns how many bytes per second have to leave so that as many arrive as the path can deliver.
func (b *BBR) needed() float64 { return b.bandwidth.bounded() / (1 - b.loss.base.share()) }

// inflight returns how much has to be in flight to use the path, times a gain (BBRInflight): three bursts wait in the
// senders and receivers.
func (b *BBR) inflight(gain float64) int64 {
	n := max(b.bdp(gain), 3*int64(b.pace.quantum()), bbrMinimumFrames*b.mtu)
	if b.state == Up {
		n += 2 * b.mtu
	}
	return n
}

// setPacing sets the pacing rate. Until the path is full it never falls, but with the first round trip, which says over how long the first flight
// is to be spread (BBRInitPacingRate).
func (b *BBR) setPacing(gain float64) {
	rate, rtt := gain*b.needed()*bbrPacingMargin, b.path.known()
	if b.state == Startup && rtt > 0 {
		rate = max(rate, startupWindows*float64(b.window)/rtt.Seconds())
	}
	if !b.spread && rtt > 0 {
		b.spread = true
		b.pace.rate = bbrStartupPacingGain * float64(b.window) / rtt.Seconds()
	}
	if rate > b.pace.rate || b.full.reached && rate > 0 {
		b.pace.rate = rate
	}
	if rtt > 0 {
		// A frame each round trip harms nobody. Where nothing gets through for a time, what is measured is how rarely frames were tried.
		b.pace.rate = max(b.pace.rate, float64(b.mtu)/rtt.Seconds())
		b.pace.most = min(rtt/2, mostMissed)
	}
}

// setWindow sets how many bytes may be in flight (section 5.6.4).
func (b *BBR) setWindow(s *sample) {
	most := b.inflight(b.windowGain) + b.aggregation.most()
	switch {
	case b.full.reached:
		b.window = min(b.window+s.acked, most)
	case b.window < most || b.rates.delivered < bbrInitialFrames*b.mtu:
		b.window += s.acked
	}
	if b.state == ProbeRTT {
		b.window = min(b.window, b.probeRTTWindow())
	}
	b.window = max(min(b.window, b.windowBound()), bbrMinimumFrames*b.mtu)
}

// windowBound is what losses bound the window to.
func (b *BBR) windowBound() int64 {
	most := bbrUnknown
	switch b.state {
	case Down, Refill, Up:
		most = b.loss.longTerm
	case Cruise, ProbeRTT:
		most = b.loss.withHeadroom(b.mtu)
	}
	return min(most, b.loss.shortTerm)
}

// IsFar implements [ack.Distant].
func (b *BBR) IsFar() bool { return true }

// adopt takes over what is in flight from another controller.
func (b *BBR) adopt(now ack.Instant, inFlight int64) {
	b.rates.inFlight, b.rates.firstAt, b.rates.deliveredAt = inFlight, now, now
}

// Rest gives back the memory for frames in flight. Nothing is in flight.
func (b *BBR) Rest() { b.rates.frames = nil }

// chance returns a random number below n.
func (b *BBR) chance(n uint64) uint64 {
	b.random ^= b.random << 13
	b.random ^= b.random >> 7
	b.random ^= b.random << 17
	return b.random % n
}
