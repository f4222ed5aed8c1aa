package queue

import (
	"slices"
	"testing"
)

// TestUrgentYields checks that urgent items without end hold up a flow no longer than for MostPassing of them, and that nothing else counts:
// neither those that passed while nothing waited, nor those before the last frame of a flow.
func TestUrgentYields(t *testing.T) {
	r := rig{T: t}
	var f, g Flow[item]
	post := func() { r.push(&g, "urgent", 1, urgent) }
	for range 2 * MostPassing {
		post()
		r.build(r.Next(), 1)
	}
	r.push(&f, "long", 3)
	post()
	var all []string
	for range 3 * (MostPassing + 1) {
		x := r.Next()
		all = append(all, x.name)
		if r.build(x, 1); x.name == "urgent" {
			post()
		}
	}
	want := append(slices.Repeat([]string{"urgent"}, MostPassing), "long")
	r.is("order", all, slices.Repeat(want, 3)...)
	r.next(r.urgent.first().Item)
}

// TestUrgentIsNotLeftPartial checks that an urgent item that is partial goes on, however many have passed.
func TestUrgentIsNotLeftPartial(t *testing.T) {
	r := rig{T: t}
	var f Flow[item]
	r.push(&f, "plain", 1)
	for range MostPassing - 1 {
		r.build(r.push(&f, "urgent", 1, urgent), 1)
	}
	x := r.push(&f, "long", 3, urgent)
	r.build(x, 1)
	r.push(&f, "last", 1, urgent)
	r.is("order", r.order(1), "long", "plain", "last")
}

// TestPassAgain checks that urgent items go on where the flow that is next may not leave, and that nothing changes where it is not next.
func TestPassAgain(t *testing.T) {
	r := rig{T: t}
	var f Flow[item]
	plain := r.push(&f, "plain", 1)
	for range MostPassing {
		r.build(r.push(&f, "urgent", 1, urgent), 1)
	}
	if r.next(plain); r.PassAgain() {
		t.Error("something else is next, of nothing urgent")
	}
	for range MostPassing {
		r.build(r.push(&f, "urgent", 1, urgent), 1)
	}
	last := r.push(&f, "last", 1, urgent)
	if r.next(plain); !r.PassAgain() || r.NextOfFlows() != plain {
		t.Errorf("%v is next, and %v of the flows", r.Next(), r.NextOfFlows())
	}
	if r.next(last); r.PassAgain() {
		t.Error("something else is next, though urgent items pass")
	}
}
