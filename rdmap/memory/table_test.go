package memory_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// TestSTagsAreSparse (RDMAP-104): no index twice, in no order, all over the 32 bits.
func TestSTagsAreSparse(t *testing.T) {
	table := memory.NewTable()
	domain := table.NewDomain()
	const n = 1 << 15
	indexes := make(map[uint32]bool)
	var tops, keys [256]int
	near, last := 0, uint32(0)
	for range n {
		stag := register(t, domain, nil, 0, nil).STag()
		index := stag >> 8
		if index == 0 || indexes[index] {
			t.Fatalf("STag %#x: index 0, or twice", stag)
		}
		indexes[index] = true
		tops[stag>>24]++
		keys[stag&0xff]++
		if d := int64(index) - int64(last); d > -1000 && d < 1000 {
			near++
		}
		last = index
	}
	if near > 50 { // expected: n * 2000 / 2^24 = 4
		t.Errorf("%d STags follow close on another", near)
	}
	for _, counts := range [][256]int{tops, keys} {
		chi := 0.0
		for _, c := range counts {
			d := float64(c) - n/256.0
			chi += d * d / (n / 256.0)
		}
		// 255 degrees of freedom: 255 expected, deviation 22.6. Chance gets here once in 10^12.
		if chi > 255+8*math.Sqrt(2*255) {
			t.Errorf("chi squared %v: unevenly distributed: %v", chi, counts)
		}
	}
	if table.Len() != n {
		t.Errorf("the table has %d of %d", table.Len(), n)
	}
}

// TestLookupUnderChurn: who searches finds all that is there, whatever others register and
// invalidate, and nothing of that once it is gone.
func TestLookupUnderChurn(t *testing.T) {
	table := memory.NewTable()
	domain := table.NewDomain()
	stable := make([]*memory.Region, 500)
	for i := range stable {
		stable[i] = register(t, domain, make([]byte, i), memory.RemoteRead, nil)
	}
	var stop atomic.Bool
	var looked, changed atomic.Int64
	var all sync.WaitGroup
	for w := range 2 {
		all.Go(func() { // grows, shrinks, grows
			stream := domain.NewStream()
			var mine []*memory.Region
			for n := w; !stop.Load(); n++ {
				if n/3000%2 == 0 || len(mine) == 0 {
					mine = append(mine, register(t, domain, nil, memory.RemoteRead, nil))
					if _, v := stream.Find(mine[len(mine)-1].STag(), 0, 0, memory.RemoteRead); v != memory.None {
						t.Errorf("just registered: %v", v)
						return
					}
				} else {
					r := mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					r.Invalidate()
					if _, v := stream.Find(r.STag(), 0, 0, memory.RemoteRead); v != memory.STag {
						t.Errorf("just invalidated: %v", v)
						return
					}
				}
				changed.Add(1)
			}
			for _, r := range mine {
				r.Invalidate()
			}
		})
		all.Go(func() {
			stream := domain.NewStream()
			for i := w; !stop.Load(); i++ {
				r := stable[i%len(stable)]
				span, v := stream.Find(r.STag(), 0, uint32(r.Len()), memory.RemoteRead)
				if v != memory.None || len(span.Bytes) != r.Len() {
					t.Errorf("region %d: %v", i%len(stable), v)
					return
				}
				if _, v := stream.Find(r.STag()^0x80, 0, 0, 0); v != memory.STag {
					t.Errorf("another key: %v", v)
					return
				}
				looked.Add(1)
			}
		})
	}
	until(func() bool { return looked.Load() > 30_000 && changed.Load() > 30_000 || t.Failed() })
	stop.Store(true)
	all.Wait()
	if table.Len() != len(stable) {
		t.Errorf("the table has %d of %d", table.Len(), len(stable))
	}
}
