package tests

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/frame"
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
				fmt.Fprintf(&s, "  link %d->%d: %s\n", i, j, describeLink(l))
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
			fmt.Fprintf(&s, " %s", describeLink(a.link))
		case verbRestart, verbReconnect:
			fmt.Fprintf(&s, " crash %v gap %v", a.crash, a.gap)
		}
		s.WriteByte('\n')
	}
	fmt.Fprintf(&s, "  forged: %+v\n  guests: %+v\n", p.forged, p.guests)
	return s.String()
}

func describeLink(l simnet.Link) string {
	if l.Down {
		return "down"
	}
	s := fmt.Sprintf("latency %v jitter %v", l.Latency, l.Jitter)
	if l.Rate > 0 {
		s += fmt.Sprintf(" rate %d queue %d", l.Rate, l.Queue)
	}
	for _, x := range []struct {
		name string
		p    float64
		d    any
	}{
		{"loss", l.Loss, l.Burst}, {"duplicate", l.Duplicate, ""}, {"reorder", l.Reorder, l.ReorderBy},
		{"corrupt", l.Corrupt, ""}, {"hold", l.HoldBack, l.HoldFor},
	} {
		if x.p > 0 {
			s += fmt.Sprintf(" %s %.3f %v", x.name, x.p, x.d)
		}
	}
	return s
}

// propertyDice draws from the seed.
type propertyDice struct{ *rand.Rand }

func (d propertyDice) chance(p float64) bool { return d.Float64() < p }

func (d propertyDice) between(low, high int) int { return low + d.IntN(high-low+1) }

func (d propertyDice) pick(of ...int) int { return of[d.IntN(len(of))] }

// span draws a duration so that small ones are as likely as large ones.
func (d propertyDice) span(low, high time.Duration) time.Duration {
	x := time.Duration(float64(low) * pow(float64(high)/float64(low), d.Float64()))
	return max(x, low)
}

func (p *propertyPlan) profile(from int) endpoint.Profile {
	switch p.kind {
	case "opencpi":
		return resentRarely(endpoint.OpenCPI(p.mtu == 510))
	case "opencpi-legacy":
		return resentRarely(endpoint.Legacy(p.mtu == 510))
	case "opencpi2":
		// Frames of such a peer carry their sender's id as destination.
		prof := endpoint.OpenCPI2()
		prof.OwnDestination = false
		return prof
	case "fpga":
		// The card's part is played by an endpoint that acknowledges.
		if from == 0 {
			prof := endpoint.FPGA()
			prof.Probe = false // only the card acknowledges frames without messages
			return prof
		}
		return resentRarely(endpoint.Legacy(false))
	}
	return endpoint.Native()
}

// resentRarely is a driver's profile for one of ours in its place: we wait longer
// each time before we send again, and would look like a new life.
func resentRarely(p endpoint.Profile) endpoint.Profile {
	p.CopyFor = 0
	return p
}

func (p *propertyPlan) joined(i, j int) bool { return i != j && (!p.star || i == 0 || j == 0) }

func (p *propertyPlan) native() bool { return p.profile(0).Session }
