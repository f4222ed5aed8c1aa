package round

import (
	"fmt"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Wire is what a round runs over.
type Wire string

// The wires.
const (
	Simnet Wire = "simnet" // a simulated network in virtual time
	UDP    Wire = "udp"    // between two network namespaces, through a switch
	Ether  Wire = "ether"  // likewise
)

// Wires are all of them.
var Wires = []Wire{Simnet, UDP, Ether}

// Real reports whether the kernel carries it.
func (w Wire) Real() bool { return w != Simnet }

// Plan is everything that happens in a round.
type Plan struct {
	Seed     uint64
	Wire     Wire
	Kind     worlds.Kind
	Duration time.Duration
	MTU      int // of IP or Ethernet; over simnet of frames
	IPv6     bool
	GiveUp   time.Duration
	MayFail  bool // transactions may: peers restart, or are impatient
	Keys     Keys
	Nodes    []Node
	Flows    []Flow
	Links    []Link
	Letters  []Way
	Actions  []Action
	Between  map[[2]int]simnet.Link // over simnet, from node to node
	Switch   [2]netns.Faults        // else, of frames from a side
	Stranger time.Duration          // a frame comes from one so often; 0: never
}

// Node is an endpoint. Those with even numbers are on side 0, the others on side 1, and each
// is connected to those on the other side.
type Node struct {
	Window, MTU, Queue int
	Coalesce           time.Duration
	First              frame.Seq
	RepeatFirst        bool // also in its later lives
	Buffer             int  // bytes of the socket's, or datagrams of simnet's receive queue; 0: as usual
	NoOffload, NoRing  bool
	NoXDP              bool
	Manual, NoHelp     bool
	Accept             bool // takes anyone, and connects when it has something to send
}

// Way is from one node to another.
type Way struct{ From, To int }

// Flow is a sequence of transactions.
type Flow struct {
	Way
	Slots, Size, Cuts int
	Ordered           bool // each is fenced
	Swallowed         bool // the memory takes two of three
	Urgent            bool // some are
	Start, Pause      time.Duration
	Burst             int // transactions from one pause to the next
	Most              int // transactions; 0: any number
}

// Link is a sequence of links, one after the other.
type Link struct {
	Way
	Both          bool // messages go both ways
	Buffers, Size int
	Messages      int           // of each link, at most
	Pause         time.Duration // now and then, of producer and consumer
	Most          int           // links; 0: any number
}

// Verb is what an [Action] does.
type Verb string

// The verbs.
const (
	Restart Verb = "restart" // a node ends, and begins another life
	Leave   Verb = "leave"   // likewise, with a goodbye
	Drop    Verb = "drop"    // a connection is closed, and made again
	Reset   Verb = "reset"   // a connection is begun anew
	Flap    Verb = "flap"    // the interface of a side goes down and up
	Pause   Verb = "pause"   // a node does nothing for a while
	Weather Verb = "weather" // what the network does changes
	Guest   Verb = "guest"   // an endpoint comes, writes to a node, and goes
)

// firstGuest is the least id of guests and strangers.
const firstGuest = 200

// Action is something that happens at a time, and lasts.
type Action struct {
	At, For time.Duration
	Verb    Verb
	Way     // the node, or the way; of Flap and Weather From is the side
	Switch  netns.Faults
	Link    simnet.Link
}

// Joined reports whether nodes are connected.
func Joined(i, j int) bool { return i%2 != j%2 }

// profile returns what a node assumes of its peers.
func (p *Plan) profile(node int) dgrdma.Profile { return p.Kind.Profile(node, p.Wire == UDP) }

// String describes the plan.
func (p *Plan) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "seed %d: %s over %s, %d nodes, MTU %d, %v, give up after %v, may fail %v, keys %q, a stranger every %v\n",
		p.Seed, p.Kind, p.Wire, len(p.Nodes), p.MTU, p.Duration, p.GiveUp, p.MayFail, p.Keys, p.Stranger)
	for i := range p.Nodes {
		fmt.Fprintf(&s, "  node %d: %+v\n", i, p.Nodes[i])
	}
	for i := range p.Nodes {
		for j := range p.Nodes {
			if l, ok := p.Between[[2]int{i, j}]; ok {
				fmt.Fprintf(&s, "  from %d to %d: %s\n", i, j, worlds.Describe(l))
			}
		}
	}
	if p.Wire.Real() {
		fmt.Fprintf(&s, "  switch: %+v\n", p.Switch)
	}
	for _, list := range []any{p.Flows, p.Links, p.Letters} {
		fmt.Fprintf(&s, "  %T: %+v\n", list, list)
	}
	for i := range p.Actions {
		fmt.Fprintf(&s, "  at %v: %s %+v for %v\n", p.Actions[i].At, p.Actions[i].Verb, p.Actions[i].Way, p.Actions[i].For)
	}
	return s.String()
}
