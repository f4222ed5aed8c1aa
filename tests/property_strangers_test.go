package tests

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Strangers send what they like, also under the addresses of peers, and guests come
// and go at nodes that take anyone. Nothing of that may make a difference to the others.

// propertyFirstGuest is the least id of guests and of strangers under addresses of
// their own.
const propertyFirstGuest = 200

type propertyForgeryKind uint8

const (
	forgedJunk propertyForgeryKind = iota
	forgedHello
	forgedStamp
	forgedEmpty
	forgedData // only under an address of its own: peers may not be taken for it
	forgedKinds
)

// propertyForgery is a frame that somebody makes up.
type propertyForgery struct {
	at   time.Duration
	to   int
	from int // the peer for which it passes; negative: none
	kind propertyForgeryKind
}

// propertyGuest is an endpoint that comes, writes a little, and goes.
type propertyGuest struct {
	at, stay time.Duration
	to       int
	crash    bool
}

// planStrangers draws from numbers of its own, so that the rest of a schedule does
// not depend on it.
func (p *propertyPlan) planStrangers(d propertyDice) {
	if p.kind != "native" {
		return
	}
	for i := range p.each {
		p.each[i].accept = d.chance(0.3)
	}
	if d.chance(0.5) {
		for range d.between(1, 60) {
			f := propertyForgery{
				at: d.span(10*time.Microsecond, p.duration) | 1, to: d.IntN(p.nodes), from: -1,
				kind: propertyForgeryKind(d.IntN(int(forgedKinds))),
			}
			if f.kind != forgedData && d.chance(0.5) {
				f.from = (f.to + d.between(1, p.nodes-1)) % p.nodes
			}
			p.forged = append(p.forged, f)
		}
		p.note("strangers")
	}
	if d.chance(0.3) {
		for range d.between(1, 5) {
			p.guests = append(p.guests, propertyGuest{
				at: d.span(10*time.Microsecond, p.duration) | 1, stay: d.span(time.Millisecond, time.Second) | 1,
				to: d.IntN(p.nodes), crash: d.chance(0.5),
			})
		}
		p.note("guests")
	}
}

func (w *propertyWorld) addStrangers(add func(at time.Duration, do func())) {
	d := newPropertyDice(w.plan.seed, 3)
	for _, f := range w.plan.forged {
		b := w.forge(d, f)
		from := simnet.Addr(propertyFirstGuest)
		if f.from >= 0 {
			from = w.nodes[f.from].addr
		}
		add(f.at, func() { w.net.Inject(from, w.nodes[f.to].addr, b) })
	}
	for i, g := range w.plan.guests {
		var wire *simnet.Conn
		var e *endpoint.Endpoint
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
func (w *propertyWorld) visit(wire *simnet.Conn, id frame.EndpointID, to *propertyNode) *endpoint.Endpoint {
	e, err := endpoint.New(wire, &endpoint.Config{ID: id, GiveUp: w.plan.giveUp})
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := e.Connect(endpoint.Peer{ID: to.id, Addr: to.addr})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range 5 {
		if err := c.Post(&endpoint.Transaction{
			Segments:   []endpoint.Segment{{Addr: 0, Bytes: propertyTable[i : i+1+100*i]}},
			Completion: endpoint.Word(0, 1),
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	return e
}

// forge makes up a frame.
func (w *propertyWorld) forge(d propertyDice, f propertyForgery) []byte {
	if f.kind == forgedJunk {
		b := make([]byte, d.IntN(w.plan.mtu+1))
		for i := range b {
			b[i] = byte(d.Uint32())
		}
		return b
	}
	h := frame.Header{Dst: w.nodes[f.to].id, Src: frame.EndpointID(propertyFirstGuest), Seq: frame.Seq(d.Uint32())}
	if f.from >= 0 {
		h.Src = w.nodes[f.from].id
	}
	if d.chance(0.5) {
		h.AckStart, h.AckCount = frame.Seq(d.Uint32()), uint8(d.Uint32())
	}
	b := make([]byte, frame.HeaderSize, 128)
	message := func(m frame.Message) {
		h.Flags = frame.FlagMessages
		b = b[:frame.HeaderSize+frame.MessageHeaderSize]
		m.Put(b[frame.HeaderSize:])
	}
	switch f.kind {
	case forgedHello:
		hello := frame.Hello{Life: d.Uint32() | 1, Tells: d.chance(0.3)}
		if d.chance(0.5) {
			hello.Peer = d.Uint32()
		}
		h.AckCount = 0
		h.SetHelloID(d.Uint32())
		message(hello.Message())
	case forgedStamp:
		b = b[:frame.HeaderSize+frame.StampSize]
		id, start := ack.Wide(d.Uint32()).Near(h.Seq), ack.Wide(d.Uint32()).Near(h.AckStart)
		frame.Stamp{Life: d.Uint32(), ID: uint32(id), Start: uint32(start)}.Put(b[frame.HeaderSize:])
	case forgedData:
		message(frame.Message{Txn: d.Uint32(), CompletionAddr: 0, CompletionValue: 1, Index: frame.NotHello})
	}
	h.Put(b)
	return b
}
