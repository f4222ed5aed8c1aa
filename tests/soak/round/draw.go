package round

import (
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// The parts of a plan, each of which has dice of its own.
const (
	drawBasics = 100 + iota
	drawNodes
	drawNetwork
	drawFlows
	drawLinks
	drawActions
	drawStrangers
	drawWrap
	drawKeys
	drawXDP
)

// What is drawn in the course of a round.
const (
	rollEntropy   = 200 + iota // of a node's lives
	rollFlow                   // of a flow
	rollLink                   // of a sequence of links
	rollStrangers              // of what they send
	rollDamage                 // of what the memory of switches does
)

// Draw draws the plan of a round that lasts no longer than that, and the time until all is
// answered.
func Draw(seed uint64, wire Wire, longest time.Duration) *Plan {
	d := worlds.NewDice(seed, drawBasics)
	p := &Plan{Seed: seed, Wire: wire, Kind: worlds.Native, GiveUp: 30 * time.Second, Between: make(map[[2]int]simnet.Link)}
	switch x := d.Float64(); {
	case x < 0.08:
		p.Kind = worlds.OpenCPI
	case x < 0.14:
		p.Kind = worlds.Legacy
	case x < 0.18:
		p.Kind = worlds.OpenCPI2
	case x < 0.22:
		p.Kind = worlds.FPGA
	}
	least := min(5*time.Second, longest)
	p.MTU = d.Pick(1280, 1500, 1500, 1500, 4000, 9000)
	if wire == Simnet {
		least = min(100*time.Millisecond, longest)
		longest = min(longest, 10*time.Second)
		p.MTU = d.Pick(64, 128, 510, 510, 1490, 1490, 9000)
		if !p.Kind.Native() {
			p.MTU = d.Pick(128, 510, 1488)
		}
	}
	p.Duration = d.Span(least, longest)
	p.IPv6 = d.Chance(0.3)
	nodes := 2
	if p.Kind.Native() {
		nodes = d.Pick(2, 2, 3, 4, 5)
		if d.Chance(0.15) {
			p.GiveUp, p.MayFail = d.Span(300*time.Millisecond, 2*time.Second), true
		}
	}
	p.drawNodes(worlds.NewDice(seed, drawNodes), nodes)
	p.drawNetwork(worlds.NewDice(seed, drawNetwork))
	p.drawFlows(worlds.NewDice(seed, drawFlows))
	p.drawLinks(worlds.NewDice(seed, drawLinks))
	p.drawActions(worlds.NewDice(seed, drawActions))
	slices.SortStableFunc(p.Actions, func(a, b Action) int { return int(a.At - b.At) })
	if d := worlds.NewDice(seed, drawStrangers); p.Kind.Native() && d.Chance(0.6) {
		p.Stranger = d.Span(200*time.Microsecond, 50*time.Millisecond)
		if wire == Simnet {
			p.Stranger = max(p.Stranger, p.Duration/200)
		}
	}
	if d := worlds.NewDice(seed, drawWrap); wire == Simnet && p.Kind.Native() && d.Chance(0.004) {
		p.wrap(d)
	}
	p.drawKeys(worlds.NewDice(seed, drawKeys))
	d = worlds.NewDice(seed, drawXDP)
	for i := range p.Nodes {
		p.Nodes[i].NoXDP = d.Chance(0.3)
	}
	return p
}

// wrap makes of a plan one in which so many frames pass while copies of frames are held back that ids of 16 bits
// would wrap.
func (p *Plan) wrap(d worlds.Dice) {
	*p = Plan{Seed: p.Seed, Wire: p.Wire, Kind: p.Kind, MTU: settings.LeastFrame, Duration: time.Second, GiveUp: 30 * time.Second, Between: make(map[[2]int]simnet.Link)}
	for i := range 2 {
		p.Nodes = append(p.Nodes, Node{Window: d.Pick(1024, 4000, 16383), First: frame.Seq(d.Between(1, 65535))})
		// 58 bytes in 4.6 us: 65536 frames pass in about 304 ms.
		p.Between[[2]int{i, 1 - i}] = simnet.Link{
			Latency: time.Duration(40001 + 100*i), Rate: 100e6, Queue: 20000, Loss: 0.02 * d.Float64(),
			HoldBack: 0.01, HoldFor: d.Span(200*time.Millisecond, 400*time.Millisecond),
		}
	}
	p.Flows = []Flow{
		{Way: Way{0, 1}, Slots: 4, Size: 16 * 7500, Cuts: 1, Start: 1, Burst: 1, Most: 20},
		{Way: Way{0, 1}, Slots: 1, Size: 28, Cuts: 2, Start: 1, Burst: 1, Most: 300},
		{Way: Way{1, 0}, Slots: 1, Size: 36, Cuts: 1, Start: 1, Burst: 1, Most: 300},
	}
	if d.Chance(0.3) {
		p.Flows[2] = Flow{Way: Way{1, 0}, Slots: 4, Size: 16 * 7000, Cuts: 1, Start: 1, Burst: 1, Most: 20}
	}
}

// leastToTell is how long frames have to be for an endpoint to tell which services it has, and
// a little more.
const leastToTell = 200

func (p *Plan) drawNodes(d worlds.Dice, nodes int) {
	native := p.Kind.Native()
	for i := range nodes {
		var n Node
		if d.Chance(0.5) {
			n.Window = d.Pick(1, 2, 8, 32, 200, 1000, 16383)
			if !native {
				n.Window = min(n.Window, p.profile(i).Window)
			}
		}
		if native && d.Chance(0.2) {
			n.MTU = d.Between(settings.LeastFrame, p.MTU)
			if p.MTU >= leastToTell {
				n.MTU = max(n.MTU, leastToTell)
			}
		}
		if d.Chance(0.2) {
			n.Queue = d.Pick(2, 4, 10)
		}
		if d.Chance(0.2) {
			n.Coalesce = d.Span(10*time.Microsecond, 5*time.Millisecond)
		}
		if d.Chance(0.3) {
			n.First = frame.Seq(d.Between(65000, 65535))
		}
		n.RepeatFirst = d.Chance(0.5)
		switch {
		case !p.carefully() && p.Wire.Real() && d.Chance(0.3):
			n.Buffer = d.Pick(4096, 16<<10, 64<<10, 200<<10)
		case native && !p.Wire.Real() && d.Chance(0.15):
			n.Buffer = d.Pick(2, 5, 20)
		}
		n.NoOffload, n.NoRing = d.Chance(0.3), d.Chance(0.3)
		n.Manual, n.NoHelp = d.Chance(0.15), d.Chance(0.4)
		n.Accept = native && d.Chance(0.3)
		p.Nodes = append(p.Nodes, n)
	}
}

// carefully reports whether peers of the kind do not survive that frames to them are lost.
func (p *Plan) carefully() bool { return !p.Kind.Faults(0).Loss }

func (p *Plan) drawNetwork(d worlds.Dice) {
	if p.Wire.Real() {
		for side := range p.Switch {
			p.Switch[side] = p.drawFaults(d, side)
		}
		return
	}
	for i := range p.Nodes {
		for j := range p.Nodes {
			if Joined(i, j) {
				p.Between[[2]int{i, j}] = worlds.DrawLink(d, p.Kind, i, j)
			}
		}
	}
}

// damage is how many of the frames that come to a node were changed behind the checksum of the wire, of that share. Where
// some are, all have a checksum of ours.
func (p *Plan) damage() float64 {
	const room = 200 // for introductions with all that is in them
	for i := range p.Nodes {
		if m := p.Nodes[i].MTU; m != 0 && m < room {
			return 0
		}
	}
	d := worlds.NewDice(p.Seed, rollDamage)
	if !p.Kind.Native() || p.MTU < room || !d.Chance(0.4) {
		return 0
	}
	return 0.1 * d.Float64()
}

// drawFaults draws what the switch does to frames from a side.
func (p *Plan) drawFaults(d worlds.Dice, side int) (f netns.Faults) {
	may := p.Kind.Faults(side)
	if may.Loss && d.Chance(0.6) {
		f.Drop = 0.3 * d.Float64() * d.Float64()
	}
	if may.Loss && d.Chance(0.3) {
		f.Corrupt = 0.05 * d.Float64()
	}
	if may.Duplicate && d.Chance(0.4) {
		f.Duplicate = 0.3 * d.Float64()
	}
	if may.Reorder && d.Chance(0.4) {
		f.Reorder = 0.3 * d.Float64()
	}
	if d.Chance(0.5) {
		f.Delay = d.Span(20*time.Microsecond, 20*time.Millisecond)
	}
	if may.Loss && d.Chance(0.2) {
		f.Rate = int(d.Span(500_000, 50_000_000))
	}
	return f
}

func (p *Plan) drawWay(d worlds.Dice) Way {
	if p.Kind == worlds.FPGA {
		return Way{0, 1}
	}
	from := d.IntN(len(p.Nodes))
	for {
		if to := d.IntN(len(p.Nodes)); Joined(from, to) {
			return Way{from, to}
		}
	}
}

func (p *Plan) drawFlows(d worlds.Dice) {
	largest := 200 << 10
	if p.Wire == Simnet {
		largest = min(p.MTU*100, 20<<10)
	}
	for range d.Between(1, 2+len(p.Nodes)) {
		f := Flow{Way: p.drawWay(d), Slots: d.Pick(1, 2, 4, 8, 16), Cuts: d.Pick(0, 1, 1, 1, 2, 3, 8, 30)}
		f.Size = 4 * int(d.Span(4, time.Duration(largest/4)))
		f.Ordered = d.Chance(0.15) && p.Kind != worlds.OpenCPI2 // whose acknowledgements nobody waits for
		f.Swallowed = p.Kind.Native() && d.Chance(0.05)
		f.Urgent = !f.Ordered && d.Chance(0.2)
		f.Start = d.Span(1, max(2, p.Duration/2))
		f.Burst = d.Pick(1, 4, 16, 64, 256)
		if d.Chance(0.4) {
			f.Pause = d.Span(50*time.Microsecond, 20*time.Millisecond)
		}
		if p.carefully() { // what its buffers hold
			f.Size, f.Burst, f.Pause = min(f.Size, 8<<10), 1, max(f.Pause, 2*time.Millisecond)
		}
		if p.Wire == Simnet {
			f.Most = d.Pick(3, 30, 100, 300)
			f.Most = max(1, min(f.Most, (256<<10)/(f.Size+64)))
		}
		p.Flows = append(p.Flows, f)
	}
}

func (p *Plan) drawLinks(d worlds.Dice) {
	if !p.Kind.Native() || p.MTU < leastToTell {
		return // they know no letters, or cannot say that they do
	}
	for range d.IntN(3) {
		l := Link{Way: p.drawWay(d), Both: d.Chance(0.5), Buffers: d.Between(1, 16), Messages: d.Pick(1, 20, 200, 1000)}
		l.Size = int(d.Span(16, 32<<10))
		if d.Chance(0.5) {
			l.Pause = d.Span(time.Millisecond, 30*time.Millisecond)
		}
		if p.Wire == Simnet {
			l.Size, l.Messages, l.Most = min(l.Size, 2000), min(l.Messages, 100), 4
		}
		p.Links = append(p.Links, l)
	}
	for range d.IntN(3) {
		p.Letters = append(p.Letters, p.drawWay(d))
	}
	slices.SortFunc(p.Letters, func(a, b Way) int { return a.From<<8 + a.To - b.From<<8 - b.To })
	p.Letters = slices.Compact(p.Letters)
}

func (p *Plan) drawActions(d worlds.Dice) {
	moment := func() time.Duration { return d.Span(p.Duration/100+1, p.Duration) | 1 }
	long := func(most time.Duration) time.Duration {
		return d.Span(time.Millisecond, min(most, max(2*time.Millisecond, p.Duration/2))) | 1
	}
	times := func(chance float64, most int) int {
		if !d.Chance(chance) {
			return 0
		}
		return d.Between(1, most)
	}
	add := func(a Action) { p.Actions = append(p.Actions, a) }
	if p.carefully() {
		return // on a way that becomes shorter, too, frames overtake others
	}
	for range times(0.6, 6) {
		a := Action{At: moment(), Verb: Weather, Way: p.drawWay(d)}
		if p.Wire.Real() {
			a.From %= 2
			a.Switch = p.drawFaults(d, a.From)
		} else {
			a.Link = worlds.DrawLink(d, p.Kind, a.From, a.To)
		}
		add(a)
	}
	for range times(0.35, 3) {
		add(Action{At: moment(), For: long(3 * time.Second), Verb: Flap, Way: Way{From: d.IntN(2)}})
	}
	for range times(0.4, 4) {
		add(Action{At: moment(), For: long(3 * time.Second), Verb: Pause, Way: p.drawWay(d)})
	}
	if !p.Kind.Native() {
		return
	}
	for range times(0.2, 4) {
		add(Action{At: moment(), For: long(2 * time.Second), Verb: Guest, Way: p.drawWay(d)})
	}
	for _, x := range []struct {
		verb   Verb
		chance float64
	}{{Restart, 0.35}, {Leave, 0.15}, {Drop, 0.1}, {Reset, 0.15}} {
		for range times(x.chance, 4) {
			add(Action{At: moment(), For: long(2 * time.Second), Verb: x.verb, Way: p.drawWay(d)})
			p.MayFail = true
		}
	}
}
