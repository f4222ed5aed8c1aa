package emulator

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// direction is one way of the path: a machine that is told the time.
type direction struct {
	cfg   *Config
	queue *bottleneck.Queue[*packet]
	chain bottleneck.Chain
	rng   *rand.Rand

	flows map[FlowKey]*bottleneck.Flow
	other *bottleneck.Flow // of all flows beyond mostFlows

	least time.Duration // of the delays

	under underWay
	order uint64
	last  map[time.Duration]time.Duration // when the last one in order arrives, by its delay
	clock time.Duration                   // of what came last
	lost  uint64
	free  []*packet
}

// mostFlows is arbitrary.
const mostFlows = 1000

type packet struct {
	frame []byte
	delay time.Duration
	due   time.Duration
	order uint64
}

func newDirection(cfg *Config, seed uint64) *direction {
	d := &direction{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, seed)),
		flows: make(map[FlowKey]*bottleneck.Flow), last: make(map[time.Duration]time.Duration),
	}
	d.queue = bottleneck.New(cfg.Bottleneck, func(p *packet, _ bottleneck.Reason) { d.recycle(p) })
	d.other = d.queue.NewFlow()
	d.least = cfg.leastTrip() / 2
	return d
}

// enter has a frame come, which is copied. Times that go back are taken for the last one.
func (d *direction) enter(at time.Duration, frame []byte) {
	at = max(at, d.clock)
	d.advance(at)
	p := d.packet(frame)
	key := keyOf(frame)
	p.delay = d.tripOf(key) / 2
	d.queue.Enter(at, d.flow(key), len(frame)-etherHeader, isCapable(frame), p)
}

func (d *direction) tripOf(k FlowKey) time.Duration {
	if trip, ok := d.cfg.Trips[k.From.Addr()]; ok {
		return trip
	}
	if trip, ok := d.cfg.Trips[k.To.Addr()]; ok {
		return trip
	}
	return d.cfg.Trip
}

func (d *direction) flow(k FlowKey) *bottleneck.Flow {
	f := d.flows[k]
	switch {
	case f != nil:
	case len(d.flows) == mostFlows:
		f = d.other
	default:
		f = d.queue.NewFlow()
		d.flows[k] = f
	}
	return f
}

// advance has all leave the bottleneck that is due. Nothing may come earlier after that.
func (d *direction) advance(now time.Duration) {
	d.clock = max(d.clock, now)
	for at, ok := d.queue.Due(); ok && at <= now; at, ok = d.queue.Due() {
		left := d.queue.Leave()
		p := left.What
		lost := d.chain.Lost(&d.cfg.Bursts, d.rng.Float64)
		if d.cfg.Loss > 0 && d.rng.Float64() < d.cfg.Loss || lost {
			d.lost++
			d.recycle(p)
			continue
		}
		if left.Marked {
			mark(p.frame)
		}
		p.due = at + p.delay
		if d.cfg.Jitter > 0 {
			p.due = max(d.last[p.delay], p.due+time.Duration(d.rng.Int64N(int64(d.cfg.Jitter))))
			d.last[p.delay] = p.due
		}
		if d.cfg.Reorder > 0 && d.rng.Float64() < d.cfg.Reorder {
			p.due += d.cfg.ReorderBy
		}
		d.order++
		p.order = d.order
		heap.Push(&d.under, p)
	}
}

// next returns a packet that has arrived, until recycle.
func (d *direction) next(now time.Duration) *packet {
	d.advance(now)
	if len(d.under) == 0 || d.under[0].due > now {
		return nil
	}
	return heap.Pop(&d.under).(*packet)
}

// due returns when the next packet arrives, at the earliest, or false for never. What leaves the bottleneck before is
// looked at then.
func (d *direction) due() (at time.Duration, ok bool) {
	at, ok = d.queue.Due()
	at += d.least
	if len(d.under) > 0 && (!ok || d.under[0].due < at) {
		return d.under[0].due, true
	}
	return at, ok
}

func (d *direction) packet(frame []byte) *packet {
	p := new(packet)
	if last := len(d.free) - 1; last >= 0 {
		p, d.free = d.free[last], d.free[:last]
	}
	p.frame = append(p.frame[:0], frame...)
	return p
}

func (d *direction) recycle(p *packet) { d.free = append(d.free, p) }

// underWay implements heap.Interface. Packets that arrive at the same time keep their order.
type underWay []*packet

func (u underWay) Len() int      { return len(u) }
func (u underWay) Swap(i, j int) { u[i], u[j] = u[j], u[i] }
func (u underWay) Less(i, j int) bool {
	return u[i].due < u[j].due || u[i].due == u[j].due && u[i].order < u[j].order
}
func (u *underWay) Push(x any) { *u = append(*u, x.(*packet)) }
func (u *underWay) Pop() any {
	last := len(*u) - 1
	p := (*u)[last]
	(*u)[last] = nil
	*u = (*u)[:last]
	return p
}
