package space

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// entry is a run of addresses and whose it is.
type entry[O comparable] struct {
	Span
	owner O
}

// Table is what a peer may write, by address, and whose it is. The zero Table has
// nothing. Find belongs to one goroutine at a time, that which receives; the others may
// be called at the same time as it.
type Table[O comparable] struct {
	list atomic.Pointer[[]entry[O]] // replaced, never changed
	last int                        // where Find found the one before
}

func byAddress[O comparable](x entry[O], at uint64) int { return cmp.Compare(x.At, at) }

// Add enters addresses that are nobody's so far.
func (t *Table[O]) Add(s Span, owner O) {
	t.replace(func(l []entry[O]) []entry[O] {
		i, _ := slices.BinarySearchFunc(l, s.At, byAddress)
		return slices.Insert(slices.Clone(l), i, entry[O]{s, owner})
	})
}

// Remove takes out what begins at an address, if it is that owner's.
func (t *Table[O]) Remove(at uint64, owner O) {
	t.replace(func(l []entry[O]) []entry[O] {
		i, found := slices.BinarySearchFunc(l, at, byAddress)
		if !found || l[i].owner != owner {
			return l
		}
		return slices.Delete(slices.Clone(l), i, i+1)
	})
}

// Len returns how many entries there are.
func (t *Table[O]) Len() int {
	if l := t.list.Load(); l != nil {
		return len(*l)
	}
	return 0
}

func (t *Table[O]) replace(change func([]entry[O]) []entry[O]) {
	for {
		old := t.list.Load()
		var l []entry[O]
		if old != nil {
			l = *old
		}
		l = change(l)
		if t.list.CompareAndSwap(old, &l) {
			return
		}
	}
}

// Find returns whose an address is. Not ok: nobody's.
func (t *Table[O]) Find(addr uint64) (owner O, ok bool) {
	p := t.list.Load()
	if p == nil {
		return owner, false
	}
	l := *p
	if i := t.last; i < len(l) && l[i].At <= addr && addr < l[i].At+l[i].N {
		return l[i].owner, true
	}
	i, found := slices.BinarySearchFunc(l, addr, byAddress)
	if !found {
		i--
	}
	if i < 0 || addr >= l[i].At+l[i].N {
		return owner, false
	}
	t.last = i
	return l[i].owner, true
}
