package bench

import (
	"runtime"
	"strings"
	"testing"
)

// TestSlotsAreBounded checks that whatever plan is allowed has a server keep at most as much as is said for each slot, and that no numbers
// of peers and depth, however large, get around the bound.
func TestSlotsAreBounded(t *testing.T) {
	const memory = 1 << 40
	for _, c := range []struct {
		peers, depth uint32
		refused      bool
	}{
		{1, mostSlots, false}, {mostSlots, 1, false}, {1 << 9, mostSlots >> 9, false},
		{1, mostSlots + 1, true}, {mostSlots + 1, 1, true}, {1 << 10, mostSlots >> 9, true},
		{1 << 31, 1 << 31, true}, {1<<32 - 1, 1<<32 - 1, true}, {1 << 16, 1 << 31, true},
	} {
		p := Plan{Size: 1, Peers: c.peers, Depth: c.depth, Active: 1}
		if err := p.Check(memory); (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), "peers times depth at most 262144") {
			t.Errorf("peers %d, depth %d: %v", c.peers, c.depth, err)
		}
	}
	allocated := func() uint64 { // it only grows, whatever else is collected at the same time
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	const slots = 1 << 12
	_, c := sides(t, Plan{Size: 1, Peers: 1})
	c.Endpoint.Close()
	before := allocated()
	p := Plan{Size: 1, Peers: 1, Depth: slots, Active: slots}
	newArrivals(p)
	to := &transactions{p, c.Conns}
	l := NewLoad(p, to, nil)
	for i := range l.ops {
		to.Post(&l.ops[i]) // fails, and leaves what it would post
	}
	took := (allocated() - before) / slots
	t.Logf("%d bytes for each slot", took)
	if took > perSlot {
		t.Errorf("%d bytes for each slot, want at most %d", took, perSlot)
	}
}
