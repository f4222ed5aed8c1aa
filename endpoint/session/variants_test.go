package session

import (
	"strings"
	"testing"
)

// tag is what a frame names.
type tag uint8

const (
	bothEpochs tag = iota
	receiversEpoch
	noEpoch
)

// variant switches a rule off, to show what it is for. The zero value is the protocol.
type variant struct {
	name   string
	tag    tag
	sticky bool // the end of a session does not change what the peer is told next
	move   bool // what was sent and not acknowledged is sent again in the next session
	drawn  bool // a connection draws its epoch, other than what the peer was told as an unknown source
	early  bool // the epoch of an attempt that ended serves again
	again  bool // a pair that was rejected may begin again
	hasty  bool // an endpoint that takes no unknown source rejects a CONFIRM
	silent bool // a frame of an unknown session is not answered
	cells  func(*[kinds][states]cell)
	// generations is how many the explorer has; 0: as always. The protocol itself heals with as few.
	generations uint8
}

// lostReset and lostReject believe what comes of a session, whatever frame it quotes.
func lostReset(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.QuotedTag == m.Tag() {
		m.lost(at, e, o)
	}
}

func lostReject(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Sender == m.Local && f.Receiver == m.Remote {
		m.lost(at, e, o)
	}
}

// replace ends what there is, and begins the session that f, a CONFIRM, names.
func replace(m *Machine, e Epochs, f *Frame, o *Output) {
	m.end(e, PeerRestarted, o)
	m.begin(f.Receiver, f.Sender, o)
}

// confirmNext is a cell of CONFIRM in state Confirming: it takes another session if next says that this one may follow.
func confirmNext(next func(m *Machine, e Epochs, f *Frame) bool, otherwise cell) cell {
	return func(m *Machine, at At, e Epochs, f *Frame, o *Output) {
		if !(f.Receiver == m.Local && f.Sender == m.Remote) && next(m, e, f) {
			replace(m, e, f, o)
			return
		}
		otherwise(m, at, e, f, o)
	}
}

func isNext(_ *Machine, e Epochs, f *Frame) bool { return e.IsNext(f.Receiver) }

// eagerly has REJECT in state Confirming take a new epoch.
func eagerly(c *[kinds][states]cell) {
	c[Reject][Confirming] = lostReject
	c[Hello][Confirming] = helloNext
	c[Confirm][Confirming] = confirmNext(isNext, func(m *Machine, at At, e Epochs, f *Frame, o *Output) {
		if f.Receiver == m.Local && f.Sender == m.Remote {
			confirmConfirming(m, at, e, f, o)
		} else {
			o.Reply = f.rejection()
		}
	})
}

// helloNext has HELLO in state Confirming answered as in Up.
func helloNext(m *Machine, at At, e Epochs, f *Frame, o *Output) {
	if f.Sender == m.Remote {
		m.confirm(at, o)
	} else {
		o.Reply = welcome(e.Next(), f.Sender, e)
	}
}

var variants = []struct {
	variant
	p    *programs
	b    world
	want string // what is violated
	most int    // states
}{
	{variant{name: "frames name the receiver's epoch alone", tag: receiversEpoch}, &client, world{Post: 1, Crash: 1}, "I4", 100_000},
	{variant{name: "frames name no epoch", tag: noEpoch}, &mixed, world{Post: 1, Crash: 1}, "I4", 100_000},
	{variant{name: "what a peer is told remains when a session ends", sticky: true}, &client, world{Post: 1, GiveUp: 1}, "I1", 100_000},
	{variant{name: "a RESET is believed whatever it quotes", cells: func(c *[kinds][states]cell) {
		c[Reset][Confirming], c[Reset][Up] = lostReset, lostReset
	}}, &client, world{Post: 1, Crash: 1}, "I6", 100_000},
	{variant{name: "what was sent moves to the next session", move: true}, &client, world{Post: 1, Reset: 1}, "I1", 100_000},
	{variant{name: "Confirming follows another WELCOME", cells: func(c *[kinds][states]cell) {
		c[Welcome][Confirming] = func(m *Machine, at At, e Epochs, f *Frame, o *Output) {
			if f.Receiver == m.Local && f.Sender != m.Remote {
				e.End()
				m.State, m.Remote = Confirming, f.Sender
				o.Begins = true
				m.confirm(at, o)
			}
		}
	}}, &client, world{Post: 1, Close: 1}, "I1", 300_000},
	{variant{name: "Up answers HELLO with the epoch of its session", cells: func(c *[kinds][states]cell) {
		c[Hello][Up] = func(m *Machine, _ At, e Epochs, f *Frame, o *Output) {
			if f.Sender != m.Remote {
				o.Reply = welcome(m.Local, f.Sender, e)
			}
		}
		c[Confirm][Up] = confirmNext(func(m *Machine, _ Epochs, f *Frame) bool { return f.Receiver == m.Local }, confirmUp)
	}}, &client, world{Post: 1, Crash: 1}, "I", 300_000},
	{variant{name: "a connection draws its epoch", drawn: true, cells: func(c *[kinds][states]cell) {
		c[Hello][Asking] = helloDown
		c[Confirm][Asking] = confirmNext(func(_ *Machine, e Epochs, f *Frame) bool { return e.IsTold(f.Receiver) }, confirmAsking)
		told := func(m *Machine, e Epochs, f *Frame) bool { return f.Receiver != m.Local && e.IsTold(f.Receiver) }
		c[Confirm][Confirming] = confirmNext(told, confirmConfirming)
		c[Confirm][Up] = confirmNext(told, confirmUp)
	}}, &both, world{Post: 1, Crash: 1}, "I5", 300_000},
	{variant{name: "first design: an attempt that ends leaves its epoch", early: true, hasty: true, cells: eagerly}, &both, world{Post: 1, Close: 1}, "I6", 300_000},
	{variant{name: "second design: an endpoint that takes no unknown source rejects a CONFIRM", hasty: true, cells: eagerly}, &mixed, world{Post: 1, Toggle: 2}, "I6", 300_000},
	{variant{name: "third design: REJECT in Confirming takes a new epoch", cells: eagerly, generations: 4}, &both, world{Crash: 1}, "healing", 1_000_000},
	{variant{name: "fourth design: Confirming tells its next epoch", cells: func(c *[kinds][states]cell) {
		c[Hello][Confirming] = helloNext
		c[Confirm][Confirming] = confirmNext(isNext, confirmConfirming)
	}}, &both, world{Post: 1, Crash: 1}, "I6", 300_000},
	{variant{name: "fifth design: a pair that was rejected may begin again", again: true}, &client, world{Post: 2, GiveUp: 1}, "I3", 5_000_000},
	{variant{name: "a frame of an unknown session is not answered", silent: true}, &client, world{Post: 1, Crash: 1}, "healing", 100_000},
}

// TestVariants checks that the explorer finds what each rule of the session prevents.
func TestVariants(t *testing.T) {
	for _, c := range variants {
		t.Run(c.name, func(t *testing.T) {
			defer func(n uint8) { generations = n }(generations)
			if c.generations > 0 {
				generations = c.generations
				e := explorer{c.p, &variant{}}
				if r := e.explore(c.p.begin(c.b), c.most, true); r.bad != "" {
					t.Errorf("the protocol itself: %s", r.bad)
				}
			}
			table := cells
			defer func() { cells = table }()
			if c.cells != nil {
				c.cells(&cells)
			}
			e := explorer{c.p, &c.variant}
			r := e.explore(c.p.begin(c.b), c.most, c.want == "healing")
			t.Logf("%d states to depth %d: %s", r.states, r.depth, r.bad)
			if !strings.HasPrefix(r.bad, c.want) {
				for _, l := range r.trace {
					t.Log(l)
				}
				t.Errorf("found %q, want %s", r.bad, c.want)
			}
		})
	}
}
