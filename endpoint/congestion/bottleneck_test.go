package congestion

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

const testMTU = 1448

// bottleneck is a link that several flows share, in virtual time: a rate and a queue of so many bytes, of which what does not fit is dropped.
type bottleneck struct {
	rate   float64 // bytes per second
	queue  float64 // bytes
	loss   float64 // of what left the queue
	rng    *rand.Rand
	now    ack.Instant
	free   ack.Instant
	events eventQueue
	serial int
	flows  []*flow

	spikes float64 // how many frames are late by spike, of which none overtakes another
	spike  time.Duration
	last   ack.Instant // when the last one came

	offered, dropped int64
	delays           []time.Duration // in the queue, of each frame
}

// event is what happens at a moment: a frame of a flow is acknowledged, or what do does if there is one.
type event struct {
	at     ack.Instant
	serial int
	do     func()
	flow   *flow
	order  uint32
	sent   ack.Instant
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.serial < o.serial
}

// eventQueue is a binary heap. It is not container/heap because that allocates for every element, and there are millions.
type eventQueue []event

func (q *eventQueue) push(e event) {
	h := append(*q, e)
	*q = h
	i := len(h) - 1
	for ; i > 0 && e.before(&h[(i-1)/2]); i = (i - 1) / 2 {
		h[i] = h[(i-1)/2]
	}
	h[i] = e
}

// pop removes the first; there must be one.
func (q *eventQueue) pop() event {
	h := *q
	first, last := h[0], h[len(h)-1]
	h[len(h)-1] = event{} // with what do refers to
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return first
	}
	i := 0
	for child := 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&last) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
	return first
}

// newBottleneck makes one of so many bits per second.
func newBottleneck(seed uint64, bits float64, queueBytes float64) *bottleneck {
	return &bottleneck{rate: bits / 8, queue: queueBytes, rng: rand.New(rand.NewPCG(seed, 1))}
}

func (b *bottleneck) at(t ack.Instant, do func()) { b.add(t, event{do: do}) }

func (b *bottleneck) add(t ack.Instant, e event) {
	b.serial++
	e.at, e.serial = max(t, b.now), b.serial
	b.events.push(e)
}

// run goes on until a moment.
func (b *bottleneck) run(until time.Duration) {
	for len(b.events) > 0 && b.events[0].at <= ack.Instant(until) {
		e := b.events.pop()
		b.now = e.at
		if e.do != nil {
			e.do()
		} else {
			e.flow.acked(e.order, e.sent)
		}
	}
	b.now = ack.Instant(until)
}

// flow is a sender that always has something to send, or so many bytes, and its receiver.
type flow struct {
	b        *bottleneck
	ctl      ack.Controller
	rtt      time.Duration
	start    ack.Instant
	left     int64 // to send; < 0: without end
	order    uint32
	wire     []sentFrame // in order
	inFlight int64
	arrived  int64 // bytes
	dropped  int64
	sent     int64
	wake     ack.Instant
	smoothed time.Duration
	latest   time.Duration
	heard    ack.Instant
	reached  uint32      // the highest order that was acknowledged
	looks    ack.Instant // when it is looked at next what is lost
	done     ack.Instant
	ackEvery time.Duration
	unlucky  uint32 // so many frames are lost at first
	busy     bool   // it sends at these times, too: it gets a processor no more often
}

type sentFrame struct {
	order uint32
	at    ack.Instant
	gone  bool
}

func (b *bottleneck) flow(ctl ack.Controller, rtt, start time.Duration) *flow {
	f := &flow{b: b, ctl: ctl, rtt: rtt, start: ack.Instant(start), left: -1, smoothed: 0}
	b.flows = append(b.flows, f)
	b.at(f.start, f.send)
	return f
}

func (f *flow) send() {
	now := f.b.now
	for (f.left != 0) && (f.inFlight == 0 || f.inFlight < int64(f.ctl.Window())) {
		if at := f.ctl.NextSend(now, testMTU); at > now {
			if f.busy {
				at = f.late(at)
			}
			if f.wake <= now || at < f.wake {
				f.wake = at
				f.b.at(at, f.send)
			}
			return
		}
		f.transmit()
	}
	if f.left == 0 {
		f.ctl.OnAppLimited(now)
	}
}

func (f *flow) transmit() {
	now, b := f.b.now, f.b
	f.order++
	order := f.order
	if f.left > 0 {
		f.left = max(f.left-testMTU, 0)
	}
	if f.inFlight == 0 {
		f.heard = now
		f.arm()
	}
	f.wire = append(f.wire, sentFrame{order: order, at: now})
	f.inFlight += testMTU
	f.sent += testMTU
	f.ctl.OnSent(now, order, testMTU)

	b.offered += testMTU
	backlog := max(b.free.Sub(now), 0).Seconds() * b.rate
	if backlog+testMTU > b.queue+testMTU {
		b.dropped += testMTU
		f.dropped += testMTU
		return
	}
	b.free = max(b.free, now).Add(time.Duration(testMTU / b.rate * 1e9))
	b.delays = append(b.delays, b.free.Sub(now))
	if b.rng.Float64() < b.loss || order <= f.unlucky {
		return
	}
	back := b.free.Add(f.rtt)
	if b.spikes > 0 {
		if b.rng.Float64() < b.spikes {
			back = back.Add(b.spike)
		}
		back = max(back, b.last)
		b.last = back
	}
	if f.ackEvery > 0 {
		back = f.late(back)
	}
	b.add(back, event{flow: f, order: order, sent: now})
}

// late returns the next of the times at which acknowledgements are looked at.
func (f *flow) late(at ack.Instant) ack.Instant {
	return ack.Instant((time.Duration(at)/f.ackEvery + 1) * f.ackEvery)
}

func (f *flow) acked(order uint32, sent ack.Instant) {
	now := f.b.now
	i, ok := slices.BinarySearchFunc(f.wire, order, func(s sentFrame, o uint32) int { return int(int64(s.order) - int64(o)) })
	if !ok || f.wire[i].gone {
		return
	}
	f.wire[i].gone = true
	f.inFlight -= testMTU
	f.arrived += testMTU
	f.heard = now
	rtt := now.Sub(sent)
	f.latest = rtt
	if f.smoothed == 0 {
		f.smoothed = rtt
	}
	f.smoothed += (rtt - f.smoothed) / 8
	f.ctl.OnAcked(now, order, testMTU, rtt)
	f.reached = max(f.reached, order)
	f.findLost()
	f.compact()
	f.ctl.EndBatch(now)
	if f.left == 0 && f.inFlight == 0 && f.done == 0 {
		f.done = now
	}
	f.send()
}

// findLost finds what is lost as by RACK (RFC 8985): three frames overtook it, or one did and it is overdue.
func (f *flow) findLost() {
	for j := range f.wire {
		s := &f.wire[j]
		if s.gone || s.order >= f.reached {
			continue
		}
		overdue := s.at.Add(max(f.smoothed, f.latest) * 5 / 4)
		if s.order+3 <= f.reached || overdue <= f.b.now {
			f.lose(s, false)
			continue
		}
		if f.looks <= f.b.now {
			f.looks = overdue
			f.b.at(overdue, func() {
				f.findLost()
				f.compact()
				f.ctl.EndBatch(f.b.now)
				f.send()
			})
		}
		return
	}
}

func (f *flow) lose(s *sentFrame, timeout bool) {
	s.gone = true
	f.inFlight -= testMTU
	if f.left >= 0 {
		f.left += testMTU
	}
	f.ctl.OnLost(f.b.now, s.order, testMTU, timeout)
}

func (f *flow) compact() {
	for len(f.wire) > 0 && f.wire[0].gone {
		f.wire = f.wire[1:]
	}
}

// arm has a timeout looked for.
func (f *flow) arm() {
	wait := time.Second // RFC 6298 section 2
	if f.smoothed > 0 {
		wait = max(2*f.smoothed+50*time.Millisecond, 200*time.Millisecond)
	}
	f.b.at(f.heard.Add(wait), func() {
		if f.inFlight == 0 {
			return
		}
		if f.b.now.Sub(f.heard) >= wait {
			for i := range f.wire {
				if !f.wire[i].gone {
					f.lose(&f.wire[i], true)
				}
			}
			f.compact()
			f.ctl.EndBatch(f.b.now)
			f.heard = f.b.now
			f.send()
			return
		}
		f.arm()
	})
}

// rates returns what arrives of each flow from now for a time, in bits per second.
func (b *bottleneck) rates(d time.Duration) []float64 {
	before := make([]int64, len(b.flows))
	for i, f := range b.flows {
		before[i] = f.arrived
	}
	b.run(time.Duration(b.now) + d)
	r := make([]float64, len(b.flows))
	for i, f := range b.flows {
		r[i] = float64(f.arrived-before[i]) * 8 / d.Seconds()
	}
	return r
}

// jain is how even shares are: 1 if all are equal.
func jain(rates []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, r := range rates {
		sum += r
		squares += r * r
	}
	return sum * sum / (float64(len(rates)) * squares)
}

func mbit(rates []float64) []float64 {
	out := make([]float64, len(rates))
	for i, r := range rates {
		out[i] = float64(int(r/1e4)) / 100
	}
	return out
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Clone(d)
	slices.Sort(s)
	return s[int(q*float64(len(s)-1))]
}

// cubic is a rival: RFC 9438, without pacing, with a slow start that ends at the first loss or when round trips grow: when the shortest of the first
// eight of a round did (RFC 9406).
type cubic struct {
	window, threshold, most, k, origin float64
	epoch                              ack.Instant
	recovery                           uint32
	last                               uint32
	minRTT                             time.Duration
	roundEnd                           uint32 // the frame that left last when this round of the slow start began
	samples                            int    // of this round
	shortest                           time.Duration
	est                                float64
}

func newCubic() *cubic { return &cubic{window: 10, threshold: 1e9} }

func (c *cubic) Window() int                                 { return int(c.window * testMTU) }
func (c *cubic) NextSend(now ack.Instant, _ int) ack.Instant { return now }
func (c *cubic) OnSent(_ ack.Instant, order uint32, _ int)   { c.last = order }
func (c *cubic) OnAppLimited(ack.Instant)                    {}
func (c *cubic) OnSpurious(ack.Instant)                      {}
func (c *cubic) EndBatch(ack.Instant)                        {}
func (c *cubic) OnAcked(now ack.Instant, order uint32, _ int, rtt time.Duration) {
	if c.minRTT == 0 || rtt < c.minRTT {
		c.minRTT = rtt
	}
	if c.window < c.threshold {
		c.window++
		if int32(order-c.roundEnd) > 0 {
			c.roundEnd, c.samples, c.shortest = c.last, 0, rtt
		}
		c.samples++
		c.shortest = min(c.shortest, rtt)
		if grow := min(max(c.minRTT/8, 4*time.Millisecond), 16*time.Millisecond); c.samples == 8 && c.shortest > c.minRTT+grow && c.window > 16 {
			c.threshold = c.window
		}
		return
	}
	if c.epoch == 0 {
		c.epoch = now
		if c.most < c.window {
			c.k, c.origin = 0, c.window
		} else {
			c.k, c.origin = cbrt((c.most-c.window)/0.4), c.most
		}
		c.est = c.window
	}
	t := (now.Sub(c.epoch) + c.minRTT).Seconds() - c.k
	target := min(max(c.origin+0.4*t*t*t, c.window), 1.5*c.window)
	c.est += 0.529 / c.window
	if target > c.window {
		c.window += (target - c.window) / c.window
	}
	c.window = max(c.window, c.est)
}

func (c *cubic) OnLost(_ ack.Instant, order uint32, _ int, timeout bool) {
	if int32(order-c.recovery) <= 0 {
		return
	}
	c.recovery = c.last
	if c.window < c.most {
		c.most = c.window * (1 + 0.7) / 2 // fast convergence, section 4.7
	} else {
		c.most = c.window
	}
	c.window = max(c.window*0.7, 2)
	c.threshold = c.window
	c.epoch = 0
	if timeout {
		c.window = 2
	}
}

func cbrt(x float64) float64 {
	y := 1.0
	for range 60 {
		y = (2*y + x/(y*y)) / 3
	}
	return y
}

func TestBottleneckAlone(t *testing.T) {
	b := newBottleneck(1, 20e6, 100_000)
	b.flow(newCubic(), 40*time.Millisecond, 0)
	b.run(5 * time.Second)
	if r := b.rates(20 * time.Second); r[0] < 0.9*20e6 || r[0] > 20.1e6 {
		t.Errorf("cubic alone carries %v Mbit/s of 20", mbit(r))
	}
}
