package queue

import (
	"fmt"
	"slices"
	"testing"
)

// item is what is pushed in these tests.
type item struct {
	entry Entry[item]
	name  string
	left  int // bytes to be built
}

func (x *item) String() string {
	if x == nil {
		return "nothing"
	}
	return x.name
}

// rig is a queue with what its user does.
type rig struct {
	*testing.T
	Queue[item]
}

// push pushes an item of so many bytes.
func (r *rig) push(f *Flow[item], name string, bytes int, set ...func(*Entry[item])) *item {
	x := &item{name: name, left: bytes}
	x.entry.Item = x
	for _, set := range set {
		set(&x.entry)
	}
	next := r.Push(f, &x.entry)
	if is := r.Next() == x; next != is {
		r.Helper()
		r.Errorf("Push of %v says that it is next: %v; next is %v", x, next, r.Next())
	}
	return x
}

func fence(e *Entry[item])  { e.Fence = true }
func urgent(e *Entry[item]) { e.Urgent = true }

// build builds that many bytes of an item, or what is left of it.
func (r *rig) build(x *item, bytes int) {
	if !x.entry.HasBegun() {
		r.Begin(&x.entry)
	}
	bytes = min(bytes, x.left)
	x.left -= bytes
	r.Built(&x.entry, bytes, x.left == 0)
}

// next expects the item that is next.
func (r *rig) next(want *item) {
	r.Helper()
	if got := r.Next(); got != want {
		r.Fatalf("next is %v, want %v", got, want)
	}
}

// order builds all of what is next, one frame after the other, and returns the names of the items in the order in which frames hold
// them.
func (r *rig) order(frame int) (names []string) {
	for x := r.Next(); x != nil; x = r.Next() {
		names = append(names, x.name)
		r.build(x, frame)
	}
	return slices.Compact(names)
}

// is expects an order.
func (r *rig) is(what string, got []string, want ...string) {
	r.Helper()
	if !slices.Equal(got, want) {
		r.Errorf("%s: %v, want %v", what, got, want)
	}
}

// remove removes items.
func (r *rig) remove(all ...*item) {
	for _, x := range all {
		r.Remove(&x.entry)
	}
}

// names returns those of items that begin with that word.
func names(word string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(word, i))
	}
	return all
}
