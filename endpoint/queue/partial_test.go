package queue

import (
	"fmt"
	"testing"
)

// TestMostPartial checks that so many flows may have a partial item, and that what is urgent may be
// partial beyond that.
func TestMostPartial(t *testing.T) {
	r := rig{T: t}
	var flows [MostPartial + 1]Flow[item]
	last := &flows[MostPartial]
	for i := range MostPartial {
		x := r.push(&flows[i], fmt.Sprint(i), 3)
		if !r.MayLeavePartial(&x.entry) {
			t.Fatalf("flow %d has to wait", i)
		}
		r.build(x, 1)
	}
	x := r.push(last, "one more", 2)
	if r.MayLeavePartial(&x.entry) {
		t.Errorf("one more than %d may be partial", MostPartial)
	}
	both := r.push(last, "fence", 2, fence, urgent)
	if r.MayLeavePartial(&both.entry) {
		t.Error("a fence may be partial as if it were urgent")
	}
	u := r.push(last, "urgent", 2, urgent)
	if r.next(u); !r.MayLeavePartial(&u.entry) {
		t.Error("what is urgent has to wait")
	}
	r.build(u, 1)
	goes := r.NextPartial()
	if goes == nil || goes.left != 2 {
		t.Fatalf("%v goes on of those that are partial", goes)
	}
	if r.build(goes, 1); r.NextPartial() != goes || r.MayLeavePartial(&x.entry) {
		t.Errorf("it goes on as %v", r.NextPartial())
	}
	if r.build(goes, 1); !r.MayLeavePartial(&x.entry) {
		t.Error("one is built as a whole, and no other may be partial")
	}
}

// TestPartialPlaces checks that those that are partial are known, whatever order they are built or removed in.
func TestPartialPlaces(t *testing.T) {
	for _, removed := range []bool{false, true} {
		r := rig{T: t}
		var flows [MostPartial]Flow[item]
		all := make(map[*item]bool)
		for i := range flows {
			x := r.push(&flows[i], fmt.Sprint(i), 2)
			r.build(x, 1)
			all[x] = true
		}
		if x := r.push(&flows[0], "urgent", 2, urgent); !removed {
			r.build(x, 1)
			r.build(x, 1)
		} else {
			r.build(x, 1)
			r.remove(x)
		}
		for x := range all { // in any order
			if removed {
				r.remove(x)
			} else {
				r.build(x, 1)
			}
			delete(all, x)
			if n := len(r.partial); n != len(all) {
				t.Errorf("%d flows have a partial item, want %d", n, len(all))
			}
			for i, f := range r.partial {
				if f.place != i+1 || !all[f.partial.Item] {
					t.Errorf("place %d has %v, which says %d", i+1, f.partial.Item, f.place)
				}
			}
		}
		if x := r.NextPartial(); x != nil {
			t.Errorf("%v is partial still", x)
		}
	}
}
