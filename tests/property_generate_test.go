package tests

import (
	"math"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

func pow(x, y float64) float64 { return math.Pow(x, y) }

const propertyBytes = 96 << 10 // transferred per schedule, at most

// planFor derives a schedule from its seed.
func planFor(seed uint64) *propertyPlan {
	d := newPropertyDice(seed, 0)
	p := &propertyPlan{seed: seed, links: make(map[[2]int]simnet.Link)}
	switch x := d.Float64(); {
	case x < 0.004:
		p.kind = "wrap"
	case x < 0.75:
		p.kind = "native"
	case x < 0.84:
		p.kind = "opencpi"
	case x < 0.91:
		p.kind = "opencpi-legacy"
	case x < 0.95:
		p.kind = "opencpi2"
	default:
		p.kind = "fpga"
	}
	p.nodes = 2
	if p.kind == "native" && d.chance(0.2) {
		p.nodes = d.between(3, 4)
	}
	p.duration = d.span(20*time.Millisecond, 5*time.Second)
	p.giveUp = 60 * time.Second
	p.settle = 100 * time.Millisecond
	p.mtu = d.pick(50, 58, 64, 100, 128, 256, 510, 510, 1490, 1490, 9000)
	if !p.native() {
		p.mtu = d.pick(128, 256, 510, 1488)
	}
	if p.kind == "wrap" {
		p.planWrap(d)
		return p
	}
	p.planNodes(d)
	p.planLinks(d)
	p.planFlows(d)
	p.planActions(d)
	p.planStrangers(newPropertyDice(seed, 2))
	return p
}

func (p *propertyPlan) planNodes(d propertyDice) {
	for range p.nodes {
		n := propertyNodePlan{poison: d.chance(0.5)}
		if d.chance(0.5) {
			n.window = d.pick(1, 2, 3, 8, 32, 200, 1000, 16383)
			if !p.native() {
				n.window = min(n.window, p.profile(0).Window)
			}
		}
		switch {
		case d.chance(0.3):
			n.first = frame.Seq(65500 + d.IntN(60))
		case d.chance(0.2):
			n.first = 1
		}
		n.repeatFirst = d.chance(0.5)
		if d.chance(0.2) {
			n.queue = d.pick(1, 2, 4, 10)
		}
		if d.chance(0.2) {
			n.coalesce = d.span(10*time.Microsecond, 10*time.Millisecond)
		}
		if p.native() && d.chance(0.2) {
			n.mtu = d.between(50, p.mtu)
		}
		if d.chance(0.1) && p.native() {
			n.recvQueue = d.pick(1, 2, 5, 20)
		}
		if p.native() && d.chance(0.03) {
			n.open = d.between(1, 3)
			p.giveUp = 2 * time.Second
			p.mayFail = true
			p.note("few open")
		}
		p.each = append(p.each, n)
	}
}

// propertyFaults says what the network may do to a kind of peer.
type propertyFaults struct{ loss, duplicate, reorder, hold bool }

func (p *propertyPlan) faults(from int) propertyFaults {
	switch p.kind {
	case "opencpi2":
		return propertyFaults{duplicate: true}
	case "fpga":
		return propertyFaults{loss: from == 1, duplicate: from == 1, reorder: from == 1}
	case "opencpi", "opencpi-legacy":
		return propertyFaults{loss: true, duplicate: true, reorder: true}
	}
	return propertyFaults{true, true, true, true}
}

func (p *propertyPlan) drawLink(d propertyDice, from, to int) simnet.Link {
	l := simnet.Link{Latency: d.span(2*time.Microsecond, 10*time.Millisecond)}
	if d.chance(0.1) {
		l.Latency = d.span(10*time.Millisecond, 100*time.Millisecond)
	}
	l.Latency += time.Duration(17*from + 101*to) // no two directions act at the same instant
	may := p.faults(from)
	if d.chance(0.5) {
		l.Jitter = d.span(time.Microsecond, 2*l.Latency)
	}
	if may.loss && d.chance(0.7) {
		l.Loss = 0.4 * pow(d.Float64(), 2)
		if d.chance(0.15) {
			l.Loss = 0.4
		}
		if d.chance(0.3) {
			l.Burst = d.between(2, 20)
		}
	}
	if may.loss && d.chance(0.1) {
		l.Corrupt, l.DropCorrupt = 0.2*d.Float64(), true
	}
	if may.duplicate && d.chance(0.4) {
		l.Duplicate = d.Float64() * d.Float64()
	}
	if may.reorder && d.chance(0.5) {
		l.Reorder = d.Float64() * d.Float64()
		l.ReorderBy = d.span(l.Latency/10+1, 3*l.Latency+time.Millisecond)
		if !p.native() {
			l.ReorderBy = min(l.ReorderBy, 20*time.Millisecond)
		}
	}
	if may.hold && d.chance(0.4) {
		l.HoldBack = 0.5 * d.Float64() * d.Float64()
		l.HoldFor = d.span(time.Millisecond, 10*time.Second)
	}
	if may.loss && d.chance(0.2) {
		l.Rate = int64(d.span(1e6, 10e9))
		l.Queue = d.pick(0, 3, 10, 50, 200)
	}
	p.settle = max(p.settle, l.HoldFor, 4*(l.Latency+l.Jitter+l.ReorderBy))
	return l
}

func (p *propertyPlan) planLinks(d propertyDice) {
	for i := range p.nodes {
		for j := range p.nodes {
			if i != j {
				p.links[[2]int{i, j}] = p.drawLink(d, i, j)
			}
		}
	}
}

func (p *propertyPlan) planFlows(d propertyDice) {
	left := propertyBytes
	largest := min(p.mtu*200, 40<<10)
	both := d.chance(0.7)
	for n := d.between(1, 6); n > 0 && left > 0; n-- {
		f := propertyFlowPlan{completion: d.chance(0.85), start: d.span(1, p.duration)}
		if d.chance(0.6) {
			f.start = d.span(1, time.Millisecond)
		}
		if both && d.chance(0.5) {
			f.from = d.between(1, p.nodes-1)
		} else {
			f.to = d.between(1, p.nodes-1)
		}
		if p.nodes > 2 && d.chance(0.3) {
			f.from = d.IntN(p.nodes)
			f.to = (f.from + d.between(1, p.nodes-1)) % p.nodes
		}
		total := p.drawSegments(d, &f, min(largest, left))
		f.count = max(1, min(d.pick(1, 3, 10, 30, 100), left/(total+64)))
		left -= f.count * (total + 64)
		f.depth = f.count
		if d.chance(0.5) {
			f.depth = d.between(1, 8)
		}
		if !p.native() {
			f.completion = f.completion || p.kind != "opencpi"
			if p.kind == "fpga" {
				f.from, f.to = 0, 1
			}
		}
		f.unaligned = p.kind != "fpga" && d.chance(0.3)
		if f.completion && p.native() && d.chance(0.3) {
			f.reuse, f.depth = true, 1
		}
		if d.chance(0.15) {
			f.wait, f.depth = true, 1
		}
		switch {
		case p.native() && d.chance(0.05):
			f.fate = fateSwallowed
			p.note("swallowing")
		case p.native() && d.chance(0.02):
			f.fate = fateRefused
			p.mayFail, p.giveUp = true, 2*time.Second
			p.note("refusing")
		}
		p.flows = append(p.flows, f)
	}
}

// drawSegments gives a flow's transactions their shape and returns their size.
func (p *propertyPlan) drawSegments(d propertyDice, f *propertyFlowPlan, largest int) (total int) {
	many := 1
	switch x := d.Float64(); {
	case x < 0.1:
		many = 0
	case x < 0.3:
		many = d.between(2, 40)
	}
	for range many {
		n := d.between(1, 64)
		switch x := d.Float64(); {
		case x < 0.05:
			n = 0
		case x < 0.15:
			n = 4
		case x < 0.35:
			n = d.between(1, max(1, largest/many))
		case x < 0.6:
			n = d.between(1, 2*p.mtu)
		}
		n = min(n, largest-total)
		f.segments = append(f.segments, n)
		total += n
	}
	return total
}

func (p *propertyPlan) planActions(d propertyDice) {
	moment := func() time.Duration { return d.span(10*time.Microsecond, p.duration) | 1 }
	add := func(a propertyAction) { p.actions = append(p.actions, a) }
	for range d.IntN(4) {
		add(propertyAction{at: moment(), verb: verbKick})
	}
	pair := func() (i, j int) {
		i = d.IntN(p.nodes)
		return i, (i + d.between(1, p.nodes-1)) % p.nodes
	}
	if p.native() && d.chance(0.3) {
		for range d.between(1, 4) {
			i, j := pair()
			at := moment()
			add(propertyAction{at: at, verb: verbLink, from: i, to: j, link: simnet.Link{Down: true}})
			at += d.span(100*time.Microsecond, 3*time.Second) | 1
			add(propertyAction{at: at, verb: verbLink, from: i, to: j, link: p.drawLink(d, i, j)})
		}
		p.note("blackouts")
		if d.chance(0.3) {
			p.giveUp, p.mayFail = d.span(20*time.Millisecond, 2*time.Second), true
			p.note("impatient")
		}
	}
	if !p.native() {
		return
	}
	if d.chance(0.35) {
		for range d.between(1, 4) {
			i, _ := pair()
			add(propertyAction{at: moment(), verb: verbRestart, from: i, crash: d.chance(0.5), gap: d.span(1, time.Second)})
		}
		p.note("restarts")
		p.mayFail = true
	}
	if d.chance(0.15) {
		for range d.between(1, 4) {
			i, j := pair()
			add(propertyAction{at: moment(), verb: verbReset, from: i, to: j})
		}
		p.note("resets")
		p.mayFail = true
	}
	if d.chance(0.1) {
		for range d.between(1, 3) {
			i, j := pair()
			add(propertyAction{at: moment(), verb: verbReconnect, from: i, to: j, gap: d.span(1, 100*time.Millisecond)})
		}
		p.note("reconnects")
		p.mayFail = true
	}
}

// planWrap makes the ids wrap while copies are held back that long.
func (p *propertyPlan) planWrap(d propertyDice) {
	p.mtu = 50
	p.duration = time.Second
	for i := range p.nodes {
		p.each = append(p.each, propertyNodePlan{window: d.pick(1024, 4000, 16383), first: frame.Seq(d.Uint32())})
		// 50 bytes in 4 us: 65536 ids pass in about 262 ms.
		p.links[[2]int{i, 1 - i}] = simnet.Link{
			Latency: time.Duration(40001 + 100*i), Rate: 100e6, Queue: 20000, Loss: 0.02 * d.Float64(),
			HoldBack: 0.01, HoldFor: d.span(200*time.Millisecond, 400*time.Millisecond),
		}
	}
	p.settle = 400 * time.Millisecond
	p.flows = []propertyFlowPlan{
		{to: 1, start: 1, count: 10, depth: 4, segments: []int{16 * 7500}, completion: true},
		{to: 1, start: 1, count: 300, depth: 1, reuse: true, segments: []int{16, 9}, completion: true},
		{from: 1, to: 0, start: 1, count: 300, depth: 1, reuse: true, segments: []int{33}, completion: true},
	}
	if d.chance(0.3) {
		p.flows[2] = propertyFlowPlan{from: 1, start: 3, count: 10, depth: 4, segments: []int{16 * 7000}, completion: true}
	}
	p.note("longer than a wrap")
}
