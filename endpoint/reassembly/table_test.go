package reassembly

import (
	"runtime"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// TestTableShrinks: a peer that opened many transactions and ended all but one keeps no
// more than what it is charged for, and a few times that (attack A6, SECURITY.md).
func TestTableShrinks(t *testing.T) {
	const peers, most = 100, 4096
	inUse := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	var p Pool
	tables := make([]Table, peers)
	held := make([]Holding, peers)
	before := inUse()
	for i := range tables {
		x := &tables[i]
		held[i].pool = &p
		x.held = &held[i]
		for id := range uint32(most) {
			x.Add(&frame.Message{Txn: id, Count: 2})
		}
		for id := range uint32(most) {
			if in := x.Find(id); id != most/2 && in != nil {
				x.Remove(in)
			}
		}
		if x.Len() != 1 || x.Find(most/2) == nil || held[i].bytes != Size {
			t.Fatalf("%d are open in %d bytes, want one in %d", x.Len(), held[i].bytes, Size)
		}
	}
	if kept := inUse() - before; kept > peers*4<<10 {
		t.Errorf("%d bytes are kept for %d peers with one open transaction each", kept, peers)
	}
	runtime.KeepAlive(tables)
}
