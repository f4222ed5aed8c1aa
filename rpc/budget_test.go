package rpc

import (
	"slices"
	"testing"
)

// TestBudget checks that those who find too little wait, are served in the order in which they came, and that what was
// taken never exceeds what there is. A caller that does not wait any more gives back nothing, and is not in the way of others.
func TestBudget(t *testing.T) {
	b := budget{left: 100}
	var served []int
	var shares []*share
	take := func(n int) {
		i := len(shares)
		s := &share{n: n, granted: func() { served = append(served, i) }}
		shares = append(shares, s)
		if b.take(s) {
			served = append(served, i)
		}
	}
	expect := func(left int, want ...int) {
		t.Helper()
		if !slices.Equal(served, want) || b.left != left {
			t.Errorf("%v are served, %d octets are left: want %v and %d", served, b.left, want, left)
		}
	}
	take(60)
	take(50) // waits
	take(10) // and so does this one, which would fit
	take(70)
	expect(40, 0)
	b.put(shares[3]) // gives up
	expect(40, 0)
	b.put(shares[0])
	expect(40, 0, 1, 2)
	take(90) // waits
	take(40)
	expect(40, 0, 1, 2)
	b.put(shares[4]) // gives up, and no longer keeps the other one from what is there
	expect(0, 0, 1, 2, 5)
	for _, i := range []int{1, 2, 5} {
		b.put(shares[i])
	}
	if b.left != 100 || len(b.waiting) != 0 {
		t.Errorf("%d octets are left, %d shares wait", b.left, len(b.waiting))
	}
}
