package reassembly

import "testing"

// TestPartsThatAreKept: of what is given back no more is kept than there is a bound for,
// and that is taken first.
func TestPartsThatAreKept(t *testing.T) {
	h := &Holding{pool: new(Pool)}
	const many = 3 * mostSpare
	var entries [many]*Transaction
	for i := range many {
		entries[i] = h.newTransaction()
	}
	for i := range many {
		h.free(entries[i])
	}
	if n := len(h.pool.spare); n != mostSpare {
		t.Errorf("of %d entries %d are kept, want %d", many, n, mostSpare)
	}
	if h.bytes != 0 {
		t.Errorf("all was given back, and %d bytes are held", h.bytes)
	}
}

// TestWhatAPeerAffords: what all learned peers hold has a bound, but for what each may
// hold whatever the others do; who does not share has the bound alone.
func TestWhatAPeerAffords(t *testing.T) {
	const bound = 10 * Reserve
	for _, x := range []struct {
		name   string
		h      Holding
		others int
		more   int
	}{
		{"the first", Holding{shares: true}, 0, bound},
		{"beside others", Holding{shares: true, bytes: 2 * Reserve}, 3 * Reserve, 5 * Reserve},
		{"holds what all may", Holding{shares: true, bytes: bound}, 0, 0},
		{"holds nothing, others all", Holding{shares: true}, bound, Reserve},
		{"holds little, others all", Holding{shares: true, bytes: 100}, bound, Reserve - 100},
		{"holds its reserve, others all", Holding{shares: true, bytes: Reserve}, bound, 0},
		{"shares nothing", Holding{bytes: 100}, bound, bound - 100},
	} {
		x.h.pool = &Pool{learned: x.others}
		if x.h.shares {
			x.h.pool.learned += x.h.bytes
		}
		if !x.h.Affords(x.more, bound) || x.h.Affords(x.more+1, bound) {
			t.Errorf("%s: %d more: %v, want true; one more than that: %v, want false",
				x.name, x.more, x.h.Affords(x.more, bound), x.h.Affords(x.more+1, bound))
		}
	}
}
