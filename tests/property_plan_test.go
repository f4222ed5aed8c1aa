package tests

import (
	"fmt"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// propertyPlan is everything that happens in one schedule. It follows from the
// seed alone.
type propertyPlan struct {
	seed     uint64
	kind     string // of peers: a profile, or a special course
	nodes    int
	mtu      int // of the wire
	duration time.Duration
	giveUp   time.Duration
	settle   time.Duration // until no copy is under way any more
	mayFail  bool          // transactions may fail
	star     bool          // only node 0 is connected to the others
	each     []propertyNodePlan
	links    map[[2]int]simnet.Link
	lost     int // frames that scripts of links lose, or have come late
	flows    []propertyFlowPlan
	actions  []propertyAction
	forged   []propertyForgery
	guests   []propertyGuest
	notes    []string
}

// sealed reports whether all connections are sealed: where the kind of peers can, and the wire carries what that takes.
func (p *propertyPlan) sealed() bool {
	for _, n := range p.each {
		if n.mtu != 0 && n.mtu < 200 {
			return false
		}
	}
	return p.profile(0).Session && p.mtu >= 200 && worlds.NewDice(p.seed, 7).Chance(0.3)
}

// checks reports whether a node wants checksums: where some do, mostly all.
func (p *propertyPlan) checks(node int) bool {
	d := worlds.NewDice(p.seed, 8)
	if p.sealed() || !d.Chance(0.4) {
		return false
	}
	return d.Chance(0.8) || worlds.NewDice(p.seed, uint64(80+node)).Chance(0.5)
}

// damage is how many frames a network changes, of that share, behind the checksum of the wire: only where all are guarded.
func (p *propertyPlan) damage() float64 {
	for i := range p.each {
		if !p.sealed() && !(p.native() && p.checks(i)) {
			return 0
		}
	}
	if d := worlds.NewDice(p.seed, 9); d.Chance(0.6) {
		return 0.2 * d.Float64()
	}
	return 0
}

type propertyNodePlan struct {
	window, mtu, queue, open int
	coalesce                 time.Duration
	first                    frame.Seq // of the first life
	repeatFirst              bool      // and of all others
	poison                   bool
	recvQueue                int
	accept                   bool // takes anyone, and connects to nobody before it has something to send
}

type propertyFate uint8

const (
	fateNormal propertyFate = iota
	fateRefused
	fateSwallowed
)

// propertyFlowPlan is a sequence of transactions from one node to another.
type propertyFlowPlan struct {
	from, to   int
	start      time.Duration
	count      int // transactions
	depth      int // posted at the same time
	segments   []int
	completion bool
	reuse      bool // all to the same addresses, one after the other
	unaligned  bool
	wait       bool // by Write, with contexts that expire
	fate       propertyFate
}

type propertyVerb uint8

const (
	verbKick propertyVerb = iota
	verbLink
	verbRestart
	verbReset
	verbReconnect
)

var propertyVerbs = [...]string{"kick", "link", "restart", "reset", "reconnect"}

type propertyAction struct {
	at       time.Duration
	verb     propertyVerb
	from, to int
	link     simnet.Link
	crash    bool
	gap      time.Duration
}

func (p *propertyPlan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *propertyPlan) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %d nodes, mtu %d, %v, give up after %v: %s\n", p.kind, p.nodes, p.mtu, p.duration, p.giveUp,
		strings.Join(p.notes, ", "))
	for i, n := range p.each {
		fmt.Fprintf(&s, "  node %d: %+v\n", i, n)
	}
	for i := range p.nodes {
		for j := range p.nodes {
			if l, ok := p.links[[2]int{i, j}]; ok {
				fmt.Fprintf(&s, "  link %d->%d: %s\n", i, j, worlds.Describe(l))
			}
		}
	}
	for i := range p.flows {
		fmt.Fprintf(&s, "  flow %d: %+v\n", i, p.flows[i])
	}
	for _, a := range p.actions {
		fmt.Fprintf(&s, "  at %v %s %d %d", a.at, propertyVerbs[a.verb], a.from, a.to)
		switch a.verb {
		case verbLink:
			fmt.Fprintf(&s, " %s", worlds.Describe(a.link))
		case verbRestart, verbReconnect:
			fmt.Fprintf(&s, " crash %v gap %v", a.crash, a.gap)
		}
		s.WriteByte('\n')
	}
	fmt.Fprintf(&s, "  forged: %+v\n  guests: %+v\n", p.forged, p.guests)
	return s.String()
}

// peers returns the kind of peers.
func (p *propertyPlan) peers() worlds.Kind { return worlds.Kind(p.kind) }

func (p *propertyPlan) profile(from int) dgrdma.Profile {
	return p.peers().Profile(from, p.mtu == 510)
}

func (p *propertyPlan) joined(i, j int) bool { return i != j && (!p.star || i == 0 || j == 0) }

func (p *propertyPlan) native() bool { return p.peers().Native() }
