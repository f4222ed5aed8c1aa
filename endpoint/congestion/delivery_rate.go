package congestion

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// transmission is what was so when a frame left.
type transmission struct {
	order       uint32
	appLimited  bool
	live        bool
	calm        bool          // what it says of losses is learned: see learns
	rtt         time.Duration // 0: not acknowledged, or not measured
	at          ack.Instant
	firstAt     ack.Instant // when the frame left that was delivered last then: what is measured of sending begins there
	deliveredAt ack.Instant // when something was delivered last
	delivered   int64
	lost        int64
	inFlight    int64 // with this frame
}

// deliveryRates measures how fast frames are delivered (section 4.1 of the document). A sample spans what was delivered from the moment
// in which a frame left until the moment in which it is acknowledged.
type deliveryRates struct {
	frames []transmission // by order modulo a power of two

	inFlight, delivered, lost int64
	firstAt, deliveredAt      ack.Instant
	limitedUntil              int64 // what is delivered up to there says little of the path: the application had no more; 0: it has

	// Of the batch.
	newest     transmission // the frame that left last of those acknowledged
	some       bool         // there is one
	rtt        time.Duration
	ackedBytes int64
	lostBytes  int64

	latestRTT time.Duration // of the frame acknowledged last that has one; < 0: none
}

// most transmissions of which the state is kept: a power of two.
const mostTransmissions = 1 << 16

func (d *deliveryRates) slot(order uint32) *transmission {
	return &d.frames[int(order)&(len(d.frames)-1)]
}

// sent notes a frame that leaves. calm: it says what the path loses by chance.
func (d *deliveryRates) sent(now ack.Instant, order uint32, bytes int64, calm bool) {
	if d.inFlight == 0 {
		d.firstAt, d.deliveredAt = now, now
	}
	d.inFlight += bytes
	if len(d.frames) == 0 || d.slot(order).live && len(d.frames) < mostTransmissions {
		d.grow()
	}
	t := d.slot(order)
	t.order, t.live, t.calm, t.rtt, t.at, t.firstAt, t.deliveredAt = order, true, calm, 0, now, d.firstAt, d.deliveredAt
	t.delivered, t.lost, t.inFlight, t.appLimited = d.delivered, d.lost, d.inFlight, d.limitedUntil != 0
}

func (d *deliveryRates) grow() {
	old := d.frames
	d.frames = make([]transmission, max(32, 2*len(old)))
	for i := range old {
		if old[i].live {
			*d.slot(old[i].order) = old[i]
		}
	}
}

// take returns what is known of a transmission that left the network, nil: nothing.
func (d *deliveryRates) take(order uint32, bytes int64) *transmission {
	d.inFlight = max(d.inFlight-bytes, 0)
	if len(d.frames) == 0 {
		return nil
	}
	t := d.slot(order)
	if !t.live || t.order != order {
		return nil
	}
	t.live = false
	return t
}

// acked returns what is known of the frame, nil: nothing.
func (d *deliveryRates) acked(now ack.Instant, order uint32, bytes int64, rtt time.Duration) *transmission {
	d.delivered += bytes
	d.deliveredAt = now
	d.ackedBytes += bytes
	if rtt >= 0 {
		d.latestRTT = rtt
		if d.rtt < 0 || rtt < d.rtt {
			d.rtt = rtt
		}
	}
	t := d.take(order, bytes)
	if t != nil && rtt > 0 {
		t.rtt = rtt
	}
	if t != nil && (!d.some || int32(t.order-d.newest.order) > 0) {
		d.newest, d.some = *t, true
		d.firstAt = t.at
	}
	return t
}

func (d *deliveryRates) lostFrame(order uint32, bytes int64) *transmission {
	d.lost += bytes
	d.lostBytes += bytes
	return d.take(order, bytes)
}

// near returns the longest round trip of the frames that left just before and after one; 0: none is known.
func (d *deliveryRates) near(order uint32) (longest time.Duration) {
	if len(d.frames) == 0 {
		return 0
	}
	for _, o := range [...]uint32{order - 1, order + 1, order + 2} {
		if t := d.slot(o); t.order == o {
			longest = max(longest, t.rtt)
		}
	}
	return longest
}

func (d *deliveryRates) appLimited() { d.limitedUntil = max(d.delivered+d.inFlight, 1) }

// sample is what a batch of acknowledgements says.
type sample struct {
	acked, lost int64
	rtt         time.Duration // the shortest one; < 0: none
	some        bool          // something is known of a delivered frame: what follows is valid
	rate        float64       // bytes per second; 0: not measured
	prior       int64         // delivered when the newest frame left
	total       int64         // delivered now
	delivered   int64         // from then on
	lostSince   int64         // from then on
	inFlight    int64         // when that frame left
	appLimited  bool
}

func (d *deliveryRates) sample(minRTT time.Duration) sample {
	if d.limitedUntil != 0 && d.delivered > d.limitedUntil {
		d.limitedUntil = 0
	}
	s := sample{acked: d.ackedBytes, lost: d.lostBytes, rtt: d.rtt, total: d.delivered, some: d.some}
	if !d.some {
		return s
	}
	t := &d.newest
	s.prior, s.delivered, s.lostSince = t.delivered, d.delivered-t.delivered, d.lost-t.lost
	s.inFlight, s.appLimited = t.inFlight, t.appLimited
	took := max(t.at.Sub(t.firstAt), d.deliveredAt.Sub(t.deliveredAt))
	if took > 0 && took >= minRTT {
		s.rate = float64(s.delivered) / took.Seconds()
	}
	return s
}

// begin begins a batch.
func (d *deliveryRates) begin() { d.some, d.ackedBytes, d.lostBytes, d.rtt = false, 0, 0, -1 }

// rounds counts round trips: one ends when a frame is acknowledged that left after it began.
type rounds struct {
	next  int64 // delivered from which on a frame belongs to the next one
	count int
	began bool // with this batch
	since int  // rounds since the last probe for bandwidth
}

func (r *rounds) update(s *sample) {
	r.began = s.some && s.prior >= r.next
	if r.began {
		r.start(s.total)
		r.count++
		r.since++
	}
}

// start lets a round begin now.
func (r *rounds) start(delivered int64) { r.next = delivered }
