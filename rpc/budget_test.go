package rpc

import (
	"slices"
	"testing"
)

// TestBudget checks that those who find too little wait, are served in the order in which they came, and that what was
// taken never exceeds what there is.
func TestBudget(t *testing.T) {
	b := budget{left: 100}
	var served []int
	take := func(name, n int) { b.take(n, func() { served = append(served, name) }) }
	take(1, 60)
	take(2, 50) // waits
	take(3, 10) // and so does this one, which would fit
	if !slices.Equal(served, []int{1}) || b.left != 40 {
		t.Errorf("%v are served, %d octets are left", served, b.left)
	}
	b.put(60)
	if !slices.Equal(served, []int{1, 2, 3}) || b.left != 40 {
		t.Errorf("%v are served, %d octets are left", served, b.left)
	}
	b.put(50)
	b.put(10)
	if b.left != 100 {
		t.Errorf("%d octets are left", b.left)
	}
}
