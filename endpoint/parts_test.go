package endpoint

import "testing"

// TestPartsThatAreKept: of what is given back no more is kept than there is a bound for,
// and that is taken first.
func TestPartsThatAreKept(t *testing.T) {
	h := &holding{pool: new(pool)}
	const many = 3 * mostSpare
	var entries [many]*incoming
	var lists [many]*runs
	var pages [many]*closedPage
	for i := range many {
		entries[i], lists[i], pages[i] = h.newEntry(), h.newRuns(), h.newPage()
	}
	for i := range many {
		h.freeEntry(entries[i])
		h.freeRuns(lists[i])
		h.freePage(pages[i])
	}
	if p := h.pool; len(p.entries) != mostSpare || len(p.runs) != mostSpare || len(p.pages) != mostSpare {
		t.Errorf("of %d parts of each kind %d, %d and %d are kept, want %d", many, len(p.entries), len(p.runs), len(p.pages), mostSpare)
	}
	if h.bytes != 0 {
		t.Errorf("all was given back, and %d bytes are held", h.bytes)
	}
}

// TestRunsThatAreKept: few runs are kept with their room, many and a bitmap are not.
func TestRunsThatAreKept(t *testing.T) {
	for _, x := range []struct {
		name string
		r    *runs
		kept bool
	}{
		{"none", &runs{}, true},
		{"few", &runs{list: make([]run, 2, fewRuns)}, true},
		{"many", &runs{list: make([]run, 2, fewRuns+1)}, false},
		{"a bitmap", &runs{bits: make([]uint64, 1)}, false},
	} {
		h := &holding{pool: new(pool)}
		h.freeRuns(x.r)
		if got := h.newRuns(); (got == x.r) != x.kept || len(got.list) != 0 || got.bits != nil {
			t.Errorf("%s: kept %v, want %v; what is taken next is %+v", x.name, got == x.r, x.kept, got)
		}
	}
}

// TestWhatAPeerAffords: what all learned peers hold has a bound, but for what each may
// hold whatever the others do; who does not share has the bound alone.
func TestWhatAPeerAffords(t *testing.T) {
	const bound = 10 * reserve
	for _, x := range []struct {
		name   string
		h      holding
		others int
		more   int
	}{
		{"the first", holding{shares: true}, 0, bound},
		{"beside others", holding{shares: true, bytes: 2 * reserve}, 3 * reserve, 5 * reserve},
		{"holds what all may", holding{shares: true, bytes: bound}, 0, 0},
		{"holds nothing, others all", holding{shares: true}, bound, reserve},
		{"holds little, others all", holding{shares: true, bytes: 100}, bound, reserve - 100},
		{"holds its reserve, others all", holding{shares: true, bytes: reserve}, bound, 0},
		{"shares nothing", holding{bytes: 100}, bound, bound - 100},
	} {
		x.h.pool = &pool{learned: x.others}
		if x.h.shares {
			x.h.pool.learned += x.h.bytes
		}
		if !x.h.affords(x.more, bound) || x.h.affords(x.more+1, bound) {
			t.Errorf("%s: %d more: %v, want true; one more than that: %v, want false",
				x.name, x.more, x.h.affords(x.more, bound), x.h.affords(x.more+1, bound))
		}
	}
}
