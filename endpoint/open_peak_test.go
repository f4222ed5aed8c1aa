package endpoint

import (
	"runtime"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// TestOpenTableShrinks: a peer that opened many transactions and ended all but one keeps no
// more than what it is charged for, and a few times that (attack A6, SECURITY.md).
func TestOpenTableShrinks(t *testing.T) {
	const peers, most = 100, 4096
	inUse := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	var p pool
	tables := make([]openTable, peers)
	held := make([]holding, peers)
	before := inUse()
	for i := range tables {
		x := &tables[i]
		held[i].pool = &p
		x.held = &held[i]
		for id := range uint32(most) {
			x.add(&frame.Message{Txn: id, Count: 2})
		}
		for id := range uint32(most) {
			if in := x.find(id); id != most/2 && in != nil {
				x.remove(in)
			}
		}
		if x.len() != 1 || x.find(most/2) == nil || held[i].bytes != openSize {
			t.Fatalf("%d are open in %d bytes, want one in %d", x.len(), held[i].bytes, openSize)
		}
	}
	if kept := inUse() - before; kept > peers*4<<10 {
		t.Errorf("%d bytes are kept for %d peers with one open transaction each", kept, peers)
	}
	runtime.KeepAlive(tables)
}
