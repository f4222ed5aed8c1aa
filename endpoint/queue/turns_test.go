package queue

import (
	"fmt"
	"slices"
	"testing"
)

// TestTurnsAreWhole checks that a flow has all of its turn, whatever of it the one before it left, and
// no more.
func TestTurnsAreWhole(t *testing.T) {
	for _, used := range []int{0, 1000, Quantum - 1} {
		for _, others := range []bool{false, true} {
			r := rig{T: t}
			var short, f, g Flow[item]
			var x, y *item
			push := func() {
				x, y = r.push(&f, "x", 10*Quantum), r.push(&g, "y", 10*Quantum)
			}
			var s *item
			if used > 0 {
				s = r.push(&short, "short", Quantum)
			}
			if others {
				push()
			}
			if s != nil {
				r.build(s, used)
				r.remove(s) // its turn ends
			}
			if !others {
				push()
			}
			for i, x := range []*item{x, y, x} {
				for left := Quantum; left > 0; left -= Quantum / 4 {
					if r.Next() != x || r.Left(&x.entry) != left {
						t.Fatalf("%d bytes used, turn %d is over with %d bytes left, or not with none", used, i, left)
					}
					r.build(x, Quantum/4)
				}
			}
		}
	}
}

// TestTurnsAreFair checks that flows that always have something get the same share, but for the frame by which a turn may overrun,
// however long their items are, and that a flow that has something from time to time waits for one turn of each of the others.
func TestTurnsAreFair(t *testing.T) {
	const frame = 1440
	sizes := []int{64, 1000, 7000, 60_000, 1 << 20}
	r := rig{T: t}
	var little Flow[item]
	flows, moved := make([]Flow[item], len(sizes)), make([]int, len(sizes))
	push := func(i int) { r.push(&flows[i], fmt.Sprint(i), sizes[i]) }
	for i := range sizes {
		push(i)
		push(i)
	}
	const pause = 10 * Quantum // before little has something again
	turns, since := 0, -pause
	for total := 0; total < 20<<20; {
		x := r.Next()
		n := min(frame, x.left)
		r.build(x, n)
		if x.left == 0 {
			r.remove(x)
		}
		if x.name == "little" {
			turns, since = turns+1, -pause
			continue
		}
		i := int(x.name[0] - '0')
		if x.left == 0 {
			push(i)
		}
		moved[i] += n
		total += n
		before := since
		if since += n; since > len(sizes)*(Quantum+frame) {
			t.Fatalf("an item waits for %d bytes of %d others", since, len(sizes))
		} else if before < 0 && since >= 0 {
			since = 0
			r.push(&little, "little", 1)
		}
	}
	if least, most := slices.Min(moved), slices.Max(moved); (least+2*Quantum)*(Quantum+frame) < most*Quantum || turns < 80 {
		t.Errorf("the flows got %d bytes; little had %d turns", moved, turns)
	}
}

// TestLeftIsInARow checks that all of what Left says is of one item, as long as nothing else is pushed.
func TestLeftIsInARow(t *testing.T) {
	r := rig{T: t}
	var flows [3]Flow[item]
	for i := range flows {
		r.push(&flows[i], fmt.Sprint(i), 100*Quantum)
	}
	for frame := 1; frame < 2*Quantum; frame += 777 {
		x := r.Next()
		for left := r.Left(&x.entry); left > 0; left -= frame {
			if r.Next() != x || r.Left(&x.entry) != left {
				t.Fatalf("frames of %d bytes: %v is next with %d bytes left, want %v with %d", frame, r.Next(), r.Left(&x.entry), x, left)
			}
			r.build(x, frame)
		}
		if r.Next() == x {
			t.Fatalf("frames of %d bytes: %v goes on after its turn", frame, x)
		}
		if x.left < 3*Quantum {
			r.remove(x)
			x.left = 100 * Quantum
			r.Push(&flows[x.name[0]-'0'], &x.entry)
		}
	}
}

// TestTurnsInARow checks that an item may have all its bytes in a row where no other flow has a turn, or as it is urgent, and else those of its turn.
func TestTurnsInARow(t *testing.T) {
	r := rig{T: t}
	var f, g Flow[item]
	x := r.push(&f, "x", 10*Quantum)
	r.build(x, 100)
	if n := r.InARow(&x.entry); n < 1<<30 || r.Left(&x.entry) != Quantum-100 {
		t.Errorf("alone it may have %d bytes in a row, of a turn with %d left", n, r.Left(&x.entry))
	}
	y := r.push(&g, "y", 1)
	if n := r.InARow(&x.entry); n != Quantum-100 {
		t.Errorf("beside another one it may have %d bytes in a row", n)
	}
	r.build(x, Quantum-100)
	r.build(y, 1)
	r.push(&f, "now", 3, urgent)
	if n := r.InARow(&r.Next().entry); n < 1<<30 {
		t.Errorf("what is urgent may have %d bytes in a row", n)
	}
}
