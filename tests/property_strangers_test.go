package tests

import (
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/worlds"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Strangers send what they like, also under the addresses of peers, and guests come
// and go at nodes that take anyone. Nothing of that may make a difference to the others.

// propertyFirstGuest is the least id of guests and of strangers under addresses of
// their own.
const propertyFirstGuest = 200

// propertyForgery is a frame that somebody makes up.
type propertyForgery struct {
	at   time.Duration
	to   int
	from int // the peer for which it passes; negative: none
	kind worlds.Forgery
}

// propertyGuest is an endpoint that comes, writes a little, and goes.
type propertyGuest struct {
	at, stay time.Duration
	to       int
	crash    bool
}

// planStrangers draws from numbers of its own, so that the rest of a schedule does
// not depend on it.
func (p *propertyPlan) planStrangers(d worlds.Dice) {
	if p.kind != "native" {
		return
	}
	for i := range p.each {
		p.each[i].accept = d.Chance(0.3)
	}
	if d.Chance(0.5) {
		for range d.Between(1, 60) {
			f := propertyForgery{
				at: d.Span(10*time.Microsecond, p.duration) | 1, to: d.IntN(p.nodes), from: -1,
				kind: worlds.Forgery(d.IntN(int(worlds.Forgeries))),
			}
			if f.kind != worlds.ForgedData && d.Chance(0.5) {
				f.from = (f.to + d.Between(1, p.nodes-1)) % p.nodes
			}
			p.forged = append(p.forged, f)
		}
		p.note("strangers")
	}
	if d.Chance(0.3) {
		for range d.Between(1, 5) {
			p.guests = append(p.guests, propertyGuest{
				at: d.Span(10*time.Microsecond, p.duration) | 1, stay: d.Span(time.Millisecond, time.Second) | 1,
				to: d.IntN(p.nodes), crash: d.Chance(0.5),
			})
		}
		p.note("guests")
	}
}

func (w *propertyWorld) addStrangers(add func(at time.Duration, do func())) {
	d := worlds.NewDice(w.plan.seed, 3)
	for _, f := range w.plan.forged {
		from, id := simnet.Addr(propertyFirstGuest), frame.EndpointID(propertyFirstGuest)
		if f.from >= 0 {
			from, id = w.nodes[f.from].addr, w.nodes[f.from].id
		}
		b := worlds.Forge(d, f.kind, id, w.nodes[f.to].id, w.plan.mtu)
		add(f.at, func() { w.net.Inject(from, w.nodes[f.to].addr, b) })
	}
	for i, g := range w.plan.guests {
		var wire *simnet.Conn
		var e *dgrdma.Endpoint
		add(g.at, func() {
			wire = w.net.Attach(simnet.Addr(uint32(propertyFirstGuest+1+i)), simnet.Config{MTU: w.plan.mtu})
			e = w.visit(wire, frame.EndpointID(propertyFirstGuest+1+i), w.nodes[g.to])
		})
		add(g.at+g.stay, func() {
			if g.crash {
				wire.Close()
			}
			e.Close()
		})
	}
}

// visit opens an endpoint that writes a little, wherever and whether or not it is let.
func (w *propertyWorld) visit(wire *simnet.Conn, id frame.EndpointID, to *propertyNode) *dgrdma.Endpoint {
	e, err := dgrdma.New(wire, &dgrdma.Config{ID: id, GiveUp: w.plan.giveUp})
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := e.Connect(dgrdma.Peer{ID: to.id, Addr: to.addr})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range 5 {
		if err := c.Post(&dgrdma.Transaction{
			Segments:   []dgrdma.Segment{{Addr: 0, Bytes: worlds.Table[i : i+1+100*i]}},
			Completion: dgrdma.Word(0, 1),
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	return e
}
