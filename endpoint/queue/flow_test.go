package queue

import "testing"

// TestFenceWaits checks that a fence begins when all that its flow began before it is removed, and
// nothing of its flow before that; and that other flows do not wait for it, nor it for them.
func TestFenceWaits(t *testing.T) {
	r := rig{T: t}
	var f, g Flow[item]
	a, b := r.push(&f, "a", 1), r.push(&f, "b", 1)
	c := r.push(&f, "fence", 1, fence)
	d := r.push(&f, "behind", 1)
	r.push(&g, "other", 1)
	r.push(&g, "more", 1)
	r.build(a, 1)
	r.build(b, 1)
	r.is("before", r.order(1), "other", "more")
	r.remove(a)
	r.next(nil)
	r.remove(b)
	r.next(c)
	r.build(c, 1)
	r.next(d) // which is none
}

// TestFencesInARow checks that each fence waits for the one before it, and that one with nothing before it does not wait.
func TestFencesInARow(t *testing.T) {
	r := rig{T: t}
	var f Flow[item]
	var all []*item
	for _, name := range names("x", 4) {
		all = append(all, r.push(&f, name, 3, fence))
	}
	for _, x := range all {
		for range 3 {
			r.next(x)
			r.build(x, 1)
		}
		r.next(nil)
		r.remove(x)
	}
	r.next(nil)
}

// TestFenceTakenBack checks that a flow goes on when its fence is removed before it begins.
func TestFenceTakenBack(t *testing.T) {
	for _, second := range []bool{false, true} {
		r := rig{T: t}
		var f Flow[item]
		a := r.push(&f, "a", 1)
		x := r.push(&f, "fence", 1, fence)
		y := r.push(&f, "behind", 1, func(e *Entry[item]) { e.Fence = second })
		r.build(a, 1)
		r.next(nil)
		if r.remove(x); second {
			r.next(nil)
			r.remove(a)
		}
		r.next(y)
	}
}

// TestFenceAndUrgent checks that urgent items do not count as items of the flow that a fence waits for, that a fence does not hold
// them back, and that a fence is never urgent.
func TestFenceAndUrgent(t *testing.T) {
	r := rig{T: t}
	var f, g Flow[item]
	u := r.push(&f, "urgent", 1, urgent)
	both := r.push(&f, "both", 1, fence, urgent)
	r.build(u, 1)
	r.next(both)
	r.build(both, 1)
	r.push(&f, "second", 1, fence, urgent)
	r.next(nil)
	r.push(&g, "other", 1)
	v := r.push(&f, "passes", 1, urgent)
	r.next(v)
	r.build(v, 1)
	r.is("then", r.order(1), "other")
	r.remove(both)
	r.is("last", r.order(1), "second")
}
