package dgrdma

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// heapAfterGC returns the bytes in use, without what earlier tests left that finalizers and pools hold back for a while.
func heapAfterGC() uint64 {
	least := uint64(math.MaxUint64)
	for {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapAlloc+1024 > least {
			return m.HeapAlloc
		}
		least = m.HeapAlloc
	}
}

// TestIdlePeerMemory checks that a peer that moved a lot in both directions, and then nothing,
// costs little, also if frames came out of order.
func TestIdlePeerMemory(t *testing.T) {
	for name, wire := range map[string]simnet.Link{
		"in order": {}, "out of order": {Latency: 200 * time.Microsecond, Reorder: 0.01, ReorderBy: 100 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) { checkIdlePeerMemory(t, wire) })
	}
}

func checkIdlePeerMemory(t *testing.T, wire simnet.Link) {
	const size, most = 1 << 20, 6 << 10
	peers := fewer(100, 25)
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		open := func(id frame.EndpointID) *Endpoint {
			mem, err := NewRegion(size + 4096)
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(n.Attach(simnet.Addr(uint32(id)), simnet.Config{}), &Config{ID: id, Memory: mem})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		center := open(1)
		defer center.Close()
		data := pattern(1, size)
		for i := range frame.EndpointID(peers) {
			e := open(2 + i)
			defer e.Close()
			n.Link(simnet.Addr(1), simnet.Addr(uint32(2+i)), wire)
			n.Link(simnet.Addr(uint32(2+i)), simnet.Addr(1), wire)
			there, err := center.Connect(Peer{ID: 2 + i, Addr: simnet.Addr(uint32(2 + i)), Size: size + 4096})
			if err != nil {
				t.Fatal(err)
			}
			back, err := e.Connect(Peer{ID: 1, Addr: simnet.Addr(1), Size: size + 4096})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []*Conn{there, back} {
				if err := c.Write(context.Background(), write(4096, data, 0, 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for i := range frame.EndpointID(peers) {
			n.Link(simnet.Addr(1), simnet.Addr(uint32(2+i)), simnet.Link{Loss: 1}) // what they keep of an end is not counted
		}
		before := heapAfterGC()
		for _, c := range center.Conns() {
			c.Close()
		}
		synctest.Wait()
		each := (int64(before) - int64(heapAfterGC())) / int64(peers)
		t.Logf("%d bytes for an idle peer", each)
		if each <= 0 || each > most {
			t.Errorf("%d bytes for an idle peer, want at most %d", each, most)
		}
	})
}
