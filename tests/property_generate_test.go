package tests

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

const propertyBytes = 96 << 10 // transferred per schedule, at most

// planFor derives a schedule from its seed.
func planFor(seed uint64) *propertyPlan {
	d := worlds.NewDice(seed, 0)
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
	if p.kind == "native" && d.Chance(0.2) {
		p.nodes = d.Between(3, 4)
	}
	p.duration = d.Span(20*time.Millisecond, 5*time.Second)
	p.giveUp = 60 * time.Second
	p.settle = 100 * time.Millisecond
	p.mtu = d.Pick(settings.LeastFrame, 64, 72, 100, 128, 256, 510, 510, 1490, 1490, 9000)
	if !p.native() {
		p.mtu = d.Pick(128, 256, 510, 1488)
	}
	if p.kind == "wrap" {
		p.planWrap(d)
		return p
	}
	p.planNodes(d)
	p.planLinks(d)
	p.planFlows(d)
	p.planActions(d)
	p.planStrangers(worlds.NewDice(seed, 2))
	return p
}

func (p *propertyPlan) planNodes(d worlds.Dice) {
	for range p.nodes {
		n := propertyNodePlan{poison: d.Chance(0.5)}
		if d.Chance(0.5) {
			n.window = d.Pick(1, 2, 3, 8, 32, 200, 1000, 16383)
			if !p.native() {
				n.window = min(n.window, p.profile(0).Window)
			}
		}
		switch {
		case d.Chance(0.3):
			n.first = frame.Seq(65500 + d.IntN(60))
		case d.Chance(0.2):
			n.first = 1
		}
		n.repeatFirst = d.Chance(0.5)
		if d.Chance(0.2) {
			n.queue = d.Pick(1, 2, 4, 10)
		}
		if d.Chance(0.2) {
			n.coalesce = d.Span(10*time.Microsecond, 10*time.Millisecond)
		}
		if p.native() && d.Chance(0.2) {
			n.mtu = d.Between(settings.LeastFrame, p.mtu)
		}
		if d.Chance(0.1) && p.native() {
			n.recvQueue = d.Pick(1, 2, 5, 20)
		}
		if p.native() && d.Chance(0.03) {
			n.open = d.Between(1, 3)
			p.giveUp = 2 * time.Second
			p.mayFail = true
			p.note("few open")
		}
		p.each = append(p.each, n)
	}
}

func (p *propertyPlan) drawLink(d worlds.Dice, from, to int) simnet.Link {
	l := worlds.DrawLink(d, p.peers(), from, to)
	if l.HoldBack > 0 && p.native() {
		// From dice of their own, so that the rest of a schedule does not depend on it.
		if late := worlds.NewDice(p.seed, uint64(200+10*from+to)); late.Chance(0.3) {
			l.HoldFor = late.Span(10*time.Second, 3*time.Minute)
		}
	}
	p.settle = max(p.settle, worlds.Settle(l))
	return l
}

func (p *propertyPlan) planLinks(d worlds.Dice) {
	for i := range p.nodes {
		for j := range p.nodes {
			if i != j {
				p.links[[2]int{i, j}] = p.drawLink(d, i, j)
			}
		}
	}
}

func (p *propertyPlan) planFlows(d worlds.Dice) {
	left := propertyBytes
	largest := min(p.mtu*200, 40<<10)
	both := d.Chance(0.7)
	for n := d.Between(1, 6); n > 0 && left > 0; n-- {
		f := propertyFlowPlan{completion: d.Chance(0.85), start: d.Span(1, p.duration)}
		if d.Chance(0.6) {
			f.start = d.Span(1, time.Millisecond)
		}
		if both && d.Chance(0.5) {
			f.from = d.Between(1, p.nodes-1)
		} else {
			f.to = d.Between(1, p.nodes-1)
		}
		if p.nodes > 2 && d.Chance(0.3) {
			f.from = d.IntN(p.nodes)
			f.to = (f.from + d.Between(1, p.nodes-1)) % p.nodes
		}
		total := p.drawSegments(d, &f, min(largest, left))
		f.count = max(1, min(d.Pick(1, 3, 10, 30, 100), left/(total+64)))
		left -= f.count * (total + 64)
		f.depth = f.count
		if d.Chance(0.5) {
			f.depth = d.Between(1, 8)
		}
		if !p.native() {
			f.completion = f.completion || p.kind != "opencpi"
			if p.kind == "fpga" {
				f.from, f.to = 0, 1
			}
		}
		f.unaligned = p.kind != "fpga" && d.Chance(0.3)
		if f.completion && p.native() && d.Chance(0.3) {
			f.reuse, f.depth = true, 1
		}
		if d.Chance(0.15) {
			f.wait, f.depth = true, 1
		}
		switch {
		case p.native() && d.Chance(0.05):
			f.fate = fateSwallowed
			p.note("swallowing")
		case p.native() && d.Chance(0.02):
			f.fate = fateRefused
			p.mayFail, p.giveUp = true, 2*time.Second
			p.note("refusing")
		}
		p.flows = append(p.flows, f)
	}
}

// drawSegments gives a flow's transactions their shape and returns their size.
func (p *propertyPlan) drawSegments(d worlds.Dice, f *propertyFlowPlan, largest int) (total int) {
	many := 1
	switch x := d.Float64(); {
	case x < 0.1:
		many = 0
	case x < 0.3:
		many = d.Between(2, 40)
	}
	for range many {
		n := d.Between(1, 64)
		switch x := d.Float64(); {
		case x < 0.05:
			n = 0
		case x < 0.15:
			n = 4
		case x < 0.35:
			n = d.Between(1, max(1, largest/many))
		case x < 0.6:
			n = d.Between(1, 2*p.mtu)
		}
		n = min(n, largest-total)
		f.segments = append(f.segments, n)
		total += n
	}
	return total
}

func (p *propertyPlan) planActions(d worlds.Dice) {
	moment := func() time.Duration { return d.Span(10*time.Microsecond, p.duration) | 1 }
	add := func(a propertyAction) { p.actions = append(p.actions, a) }
	for range d.IntN(4) {
		add(propertyAction{at: moment(), verb: verbKick})
	}
	pair := func() (i, j int) {
		i = d.IntN(p.nodes)
		return i, (i + d.Between(1, p.nodes-1)) % p.nodes
	}
	if p.native() && d.Chance(0.3) {
		for range d.Between(1, 4) {
			i, j := pair()
			at := moment()
			add(propertyAction{at: at, verb: verbLink, from: i, to: j, link: simnet.Link{Down: true}})
			at += d.Span(100*time.Microsecond, 3*time.Second) | 1
			add(propertyAction{at: at, verb: verbLink, from: i, to: j, link: p.drawLink(d, i, j)})
		}
		p.note("blackouts")
		if d.Chance(0.3) {
			p.giveUp, p.mayFail = d.Span(20*time.Millisecond, 2*time.Second), true
			p.note("impatient")
		}
	}
	if !p.native() {
		return
	}
	if d.Chance(0.35) {
		for range d.Between(1, 4) {
			i, _ := pair()
			add(propertyAction{at: moment(), verb: verbRestart, from: i, crash: d.Chance(0.5), gap: d.Span(1, time.Second)})
		}
		p.note("restarts")
		p.mayFail = true
	}
	if d.Chance(0.15) {
		for range d.Between(1, 4) {
			i, j := pair()
			add(propertyAction{at: moment(), verb: verbReset, from: i, to: j})
		}
		p.note("resets")
		p.mayFail = true
	}
	if d.Chance(0.1) {
		for range d.Between(1, 3) {
			i, j := pair()
			add(propertyAction{at: moment(), verb: verbReconnect, from: i, to: j, gap: d.Span(1, 100*time.Millisecond)})
		}
		p.note("reconnects")
		p.mayFail = true
	}
}

// planWrap has so many frames pass while copies are held back that ids of 16 bits would wrap.
func (p *propertyPlan) planWrap(d worlds.Dice) {
	p.mtu = settings.LeastFrame
	p.duration = time.Second
	for i := range p.nodes {
		p.each = append(p.each, propertyNodePlan{window: d.Pick(1024, 4000, 16383), first: frame.Seq(d.Uint32())})
		// 58 bytes in 4.6 us: 65536 frames pass in about 304 ms.
		p.links[[2]int{i, 1 - i}] = simnet.Link{
			Latency: time.Duration(40001 + 100*i), Rate: 100e6, Queue: 20000, Loss: 0.02 * d.Float64(),
			HoldBack: 0.01, HoldFor: d.Span(200*time.Millisecond, 400*time.Millisecond),
		}
	}
	p.settle = 400 * time.Millisecond
	p.flows = []propertyFlowPlan{
		{to: 1, start: 1, count: 10, depth: 4, segments: []int{16 * 7500}, completion: true},
		{to: 1, start: 1, count: 300, depth: 1, reuse: true, segments: []int{16, 9}, completion: true},
		{from: 1, to: 0, start: 1, count: 300, depth: 1, reuse: true, segments: []int{33}, completion: true},
	}
	if d.Chance(0.3) {
		p.flows[2] = propertyFlowPlan{from: 1, start: 3, count: 10, depth: 4, segments: []int{16 * 7000}, completion: true}
	}
	p.note("longer than the window")
}
