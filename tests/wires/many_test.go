package wires

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestManyProcesses: processes on one interface, all sending to all.
func TestManyProcesses(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size, n = 8, 20_000, 100
		type member struct {
			*child
			url string
		}
		var left, right []member
		for i := range 2 {
			for side, list := range []*[]member{&left, &right} {
				c := spawn(t, pair[side], nil)
				id := 1 + 2*i + side
				a := c.must(order{Open: with(w.local(side), "accept=any"), ID: id, Slots: 2 * slots, Size: size})
				*list = append(*list, member{c, a.URL})
			}
		}
		var waiting []func() answer
		for i := range left {
			for _, m := range []struct{ from, to member }{{left[i], right[i]}, {right[i], left[1-i]}} {
				m.from.must(order{Dial: m.to.url, First: 0, Slots: slots, Size: size})
				waiting = append(waiting, m.from.start(order{Send: n}))
			}
		}
		for i, wait := range waiting {
			if a := wait(); a.Err != "" {
				t.Errorf("sender %d: %s", i, a.Err)
			}
		}
		for i := range left {
			right[i].must(order{Verify: true, Want: counts(left[i].id, n)})
			left[1-i].must(order{Verify: true, Want: counts(right[i].id, n)})
		}
	})
}

// TestManyEndpoints: several endpoints of one process on each side, every one
// sending to every one on the other side.
func TestManyEndpoints(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 9000)
		const slots, size, each, n = 4, 20_000, 3, 60
		var ends [2][]*end
		for side := range ends {
			for i := range each {
				ends[side] = append(ends[side], open(t, pair[side], w.local(side), 1+2*i+side, each*slots, size))
			}
		}
		flows := make(map[*end][]*flow)
		var sends []func() error
		for side := range ends {
			for i, from := range ends[side] {
				for _, to := range ends[1-side] {
					f := from.flow(from.dial(to.URL()), i*slots, slots, size)
					flows[to] = append(flows[to], f)
					sends = append(sends, func() error {
						if err := f.send(n); err != nil {
							return fmt.Errorf("%v to %v: %w", from.URL(), to.URL(), err)
						}
						return nil
					})
				}
			}
		}
		atOnce(t, sends...)
		for e, list := range flows {
			e.verify(list...)
		}
	})
}

// TestEverythingAtOnce: all wires of one cable, two pairs of endpoints on each,
// both directions.
func TestEverythingAtOnce(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	const slots, size = 8, 40_001
	n := quick(150, 30)
	var sends []func() error
	var checks []func()
	for i := range 2 * len(wires) {
		w := wires[i/2]
		a := open(t, pair[0], w.local(0), 10+2*i, slots, size)
		b := open(t, pair[1], w.local(1), 11+2*i, slots, size)
		there, back := a.flow(a.dial(b.URL()), 0, slots, size), b.flow(b.dial(a.URL()), 0, slots, size)
		for _, f := range []*flow{there, back} {
			sends = append(sends, func() error {
				if err := f.send(n); err != nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
				return nil
			})
		}
		checks = append(checks, func() { b.verify(there); a.verify(back) })
	}
	atOnce(t, sends...)
	for _, check := range checks {
		check()
	}
}

// TestPeersComeAndGo: an endpoint has one peer, then two, then one again, and
// data goes both ways with whoever is there.
func TestPeersComeAndGo(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size, n = 4, 20_000, 30
		a := open(t, pair[0], w.local(0), 1, 2*slots, size)
		var other [2]*end
		var there, back [2]*flow
		come := func(i int) {
			t.Helper()
			toI := a.dial(other[i].URL())
			next := uint32(1)
			if there[i] != nil {
				next = there[i].next
			}
			there[i] = a.flow(toI, 0, slots, size)
			there[i].next = next
		}
		for i := range other {
			other[i] = open(t, pair[1], w.local(1), 2+i, slots, size)
			back[i] = other[i].flow(other[i].dial(a.URL()), i*slots, slots, size)
		}
		exchange := func(with ...int) {
			t.Helper()
			var sends []func() error
			for _, i := range with {
				sends = append(sends, func() error { return there[i].send(n) }, func() error { return back[i].send(n) })
			}
			atOnce(t, sends...)
		}
		come(0)
		exchange(0)
		come(1)
		exchange(0, 1)
		there[0].conn.Close()
		exchange(1)
		come(0)
		// Its peer learns that it is another life, which what it posts before that
		// would not survive.
		if err := there[0].send(n); err != nil {
			t.Fatal(err)
		}
		exchange(1, 0)
		for i := range other {
			other[i].verify(there[i])
		}
		a.verify(back[:]...)
	})
}

// TestSeveralIDs: an endpoint is several peers to another one, beside a neighbour
// whose id lies between its own.
func TestSeveralIDs(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size, n = 4, 20_000, 60
		b := open(t, pair[1], with(w.local(1), "accept=any"), 2, 4*slots, size)
		a := open(t, pair[0], w.local(0), 10, 3*slots, size)
		neighbour := open(t, pair[0], w.local(0), 11, slots, size)
		toB, err := dgrdma.ParsePeer(b.URL())
		if err != nil {
			t.Fatal(err)
		}
		var to, from []*flow
		var sends []func() error
		add := func(f *flow, list *[]*flow) {
			*list = append(*list, f)
			sends = append(sends, func() error { return f.send(n) })
		}
		for i, id := range []frame.EndpointID{0, 7, 12} {
			toB.As = id
			c, err := a.Connect(toB)
			if err != nil {
				t.Fatal(err)
			}
			if id == 0 {
				id = a.ID()
			}
			if c.Peer().As != id {
				t.Errorf("connected as %d, want %d", c.Peer().As, id)
			}
			add(newFlow(id, c, i*slots, slots, size), &to)
		}
		if _, err := a.Connect(toB); !errors.Is(err, dgrdma.ErrPeerExists) {
			t.Errorf("connected twice under one id: %v", err)
		}
		add(neighbour.flow(neighbour.dial(b.URL()), 3*slots, slots, size), &to)
		eventually(t, patience, "four peers", func() bool { return len(b.Conns()) == 4 })
		for _, c := range b.Conns() {
			for i, id := range []frame.EndpointID{10, 7, 12} {
				if c.Peer().ID == id {
					f := b.flow(c, i*slots, slots, size)
					f.next += uint32(i * n) // to the ledger they are one source
					add(f, &from)
				}
			}
		}
		atOnce(t, sends...)
		b.verify(to...)
		if err := a.ledger.verify(counts(b.ID(), 3*n)); err != nil || len(from) != 3 {
			t.Errorf("%d peers are one endpoint: %v", len(from), err)
		}
		neighbour.verify()
	})
}
