package queue

import (
	"fmt"
	"slices"
	"testing"
)

// TestItemsOfAFlowBeginInOrder checks that the items of a flow are built in the order in which they were pushed, each as a whole before
// the next one begins, however many of their bytes a frame takes.
func TestItemsOfAFlowBeginInOrder(t *testing.T) {
	for _, frame := range []int{1, 700, 1000, 1 << 20} {
		r := rig{T: t}
		var f Flow[item]
		for i, name := range names("x", 20) {
			r.push(&f, name, 1+i*100)
		}
		r.is(fmt.Sprintf("frames of %d bytes", frame), r.order(frame), names("x", 20)...)
	}
}

// TestUrgentPasses checks that what is urgent passes all that is not and what is left of a partial item, in the order in which it was
// pushed, whatever flow it is of.
func TestUrgentPasses(t *testing.T) {
	r := rig{T: t}
	var f, g Flow[item]
	long := r.push(&f, "long", 100_000)
	r.push(&f, "f", 1)
	r.push(&g, "g", 1)
	r.build(long, 1)
	r.push(&f, "now", 3, urgent)
	r.push(&g, "and now", 3, urgent)
	r.push(&f, "too", 3, urgent)
	if got := r.Left(&r.Next().entry); got < 1<<30 {
		t.Errorf("what is urgent may have %d bytes in a row", got)
	}
	if f.Len() != 4 || g.Len() != 2 {
		t.Errorf("the flows have %d and %d items, want 4 and 2", f.Len(), g.Len())
	}
	r.is("urgent", r.order(1)[:3], "now", "and now", "too")
}

// TestUrgentIsBuiltAsAWhole checks that an urgent item that is partial goes on before anything else, also another urgent one.
func TestUrgentIsBuiltAsAWhole(t *testing.T) {
	r := rig{T: t}
	var f Flow[item]
	x := r.push(&f, "x", 3, urgent)
	r.build(x, 1)
	r.push(&f, "y", 1, urgent)
	r.push(&f, "z", 1)
	r.is("order", r.order(1), "x", "y", "z")
}

// TestStrict checks that a strict queue builds one item as a whole before another one begins, be that urgent or of another flow.
func TestStrict(t *testing.T) {
	for _, first := range []string{"plain", "urgent"} {
		r := rig{T: t}
		r.Strict = true
		var f, g Flow[item]
		x := r.push(&f, "x", 5*Quantum, func(e *Entry[item]) { e.Urgent = first == "urgent" })
		r.build(x, 1)
		r.push(&g, "other", 1)
		r.push(&g, "urgent", 1, urgent)
		r.is(first, r.order(1000), "x", "urgent", "other")
	}
}

// TestJoins checks that a frame holds items that began one after the other, and
// that one that has begun goes on only at the beginning of a frame.
func TestJoins(t *testing.T) {
	var q Queue[item]
	var f, g Flow[item]
	x := [4]item{}
	for i, f := range []*Flow[item]{&f, &g, &f, &g} {
		q.Push(f, &x[i].entry)
	}
	for begun := range 3 {
		if !q.Joins(nil, &x[0].entry) || !q.Joins(nil, &x[2].entry) {
			t.Error("an empty frame takes none")
		}
		for last := range begun {
			for next := range x {
				if want := next >= begun && last == begun-1; q.Joins(&x[last].entry, &x[next].entry) != want {
					t.Errorf("of %d, %d joins %d: %v", begun, next, last, !want)
				}
			}
		}
		q.Begin(&x[begun].entry)
	}
}

// TestBegunAreInOrder checks that Oldest and Entry.Next lead through what has begun in the order in which it did, whatever flow it is
// of, and that what is removed is not among it.
func TestBegunAreInOrder(t *testing.T) {
	r := rig{T: t}
	var flows [3]Flow[item]
	begun := func() (all []string) {
		for x := r.Oldest(); x != nil; x = x.entry.Next() {
			all = append(all, x.name)
		}
		return all
	}
	r.is("none", begun())
	var all []*item
	for i, name := range names("x", 7) {
		x := r.push(&flows[i%3], name, 1+i%2)
		r.build(x, 1)
		r.build(x, 1)
		all = append(all, x)
	}
	r.push(&flows[0], "waits", 1)
	r.is("all", begun(), names("x", 7)...)
	r.remove(all[3], all[0], all[6])
	r.is("without some", begun(), "x1", "x2", "x4", "x5")
	r.remove(all[5], all[1], all[4], all[2])
	r.is("without any", begun())
}

// TestWaiting checks that Waiting returns all that has not begun and nothing else, urgent or fenced, and ends when the loop does.
func TestWaiting(t *testing.T) {
	r := rig{T: t}
	var f, g, h Flow[item]
	x := r.push(&f, "begun", 2)
	r.build(x, 2)
	r.push(&f, "fenced", 1, fence)
	r.push(&f, "after", 1)
	r.push(&g, "g0", 1)
	r.push(&g, "g1", 1)
	r.push(&h, "h0", 1)
	r.push(&f, "u0", 1, urgent)
	r.push(&g, "u1", 1, urgent)
	want := []string{"u0", "u1", "g0", "g1", "h0", "fenced", "after"}
	for n := range len(want) + 1 {
		var all []string
		for x := range r.Waiting() {
			if len(all) == n {
				break
			}
			all = append(all, x.name)
		}
		r.is(fmt.Sprintf("of %d", n), all, want[:n]...)
	}
}

// TestRemoveAtEveryStage checks that an item is removed however much of it is built, that the others go on as if it had never been
// pushed, and that it may be pushed again.
func TestRemoveAtEveryStage(t *testing.T) {
	for _, kind := range []string{"plain", "fence", "urgent"} {
		for built := range 4 { // of three bytes
			for _, strict := range []bool{false, true} {
				r := rig{T: t}
				r.Strict = strict
				var f, g Flow[item]
				x := r.push(&f, "x", 3, func(e *Entry[item]) { e.Fence, e.Urgent = kind == "fence", kind == "urgent" })
				r.push(&f, "behind", 1)
				r.push(&f, "fenced", 1, fence)
				r.push(&g, "other", 1)
				for range built {
					r.build(x, 1)
				}
				if q := x.entry.IsQueued(); !q || r.Len() != 4 || f.Len() != 3 || x.entry.HasBegun() != (built > 0) {
					t.Errorf("%s, %d bytes built: queued %v, begun %v; %d items, %d of the flow", kind, built, q, x.entry.HasBegun(), r.Len(), f.Len())
				}
				r.remove(x)
				if q := x.entry.IsQueued(); q || r.Len() != 3 || f.Len() != 2 {
					t.Errorf("%s, %d bytes built, removed: queued %v; %d items, %d of the flow", kind, built, q, r.Len(), f.Len())
				}
				got := r.order(1)
				if slices.Sort(got); !slices.Equal(got, []string{"behind", "other"}) {
					t.Errorf("%s, %d bytes built, removed: the others are built as %v", kind, built, got)
				}
				r.remove(r.Oldest())
				r.remove(r.Oldest())
				r.is("the fence", r.order(1), "fenced")
				r.remove(r.Oldest())
				x.left = 1
				if next := r.Push(&g, &x.entry); !next || x.entry.HasBegun() || g.Len() != 1 {
					t.Errorf("%s, pushed again: next %v, begun %v, %d of the flow", kind, next, x.entry.HasBegun(), g.Len())
				}
				r.is("again", r.order(1), "x")
			}
		}
	}
}
