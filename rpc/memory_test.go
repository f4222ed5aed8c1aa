package rpc

import "testing"

// TestMemory checks that memory is as long as it has to be, of a class up to the longest one and of just its length beyond, that it is shared as long as there is another user, and that
// it is used again only when the last one has released it.
func TestMemory(t *testing.T) {
	const least, most = 1 << leastClass, 1 << mostClass
	for n, want := range map[int]int{0: least, 1: least, least - 1: least, least: least, least + 1: 2 * least, most - 1: most, most: most, most + 1: most + 1, 2 * most: 2 * most, 4 * most: 4 * most} {
		m := takeMemory(n)
		if len(m.b) != want || m.shared() {
			t.Errorf("for %d octets there are %d, shared %v", n, len(m.b), m.shared())
		}
		m.share()
		if !m.shared() {
			t.Errorf("%d octets: two users share nothing", n)
		}
		m.release()
		if m.shared() {
			t.Errorf("%d octets: one user shares something", n)
		}
		if other := takeMemory(n); other == m {
			t.Errorf("%d octets are taken while they are in use", n)
		}
		m.release()
	}
	(*memory)(nil).release()
}
