package dgrdma

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestFlowsArriveWhole checks that a transaction that others interrupt, of other flows or urgent
// ones, arrives as whole as one that none does, whatever their lengths, which decide where in a
// frame one ends and the other goes on.
func TestFlowsArriveWhole(t *testing.T) {
	const flows, each, most = 4, 12, 80_000
	seeds := uint64(100)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			link := gigabit
			if seed%3 == 1 {
				link.Loss, link.Reorder, link.ReorderBy = 0.1*r.Float64(), 0.1*r.Float64(), 50*time.Microsecond
			}
			p := newPair(t, pairConfig{size: 8 << 20, link: link})
			defer p.close()
			size := uint64(MailSize + flows*each*most)
			here, there := newShelf("post", size), newShelf("post", size)
			serve(t, p.a, here)
			base := serve(t, p.b, there)
			time.Sleep(time.Second)
			want := make([]byte, len(there.bytes))
			ended := make(chan error, flows*each)
			for f := range flows {
				flow := here.channel(0).Flow()
				for k := range each {
					at := (f*each + k) * most
					x := write(base+MailSize+uint32(at), want[at:at+1+r.IntN([]int{100, 5000, most}[r.IntN(3)])], base+MailSize, 1)
					for i := range x.Segments[0].Bytes {
						x.Segments[0].Bytes[i] = byte(r.Uint32())
					}
					x.Urgent, x.Fence = r.IntN(6) == 0, r.IntN(10) == 0
					x.Done = func(_ *Transaction, err error) { ended <- err }
					if err := flow.Post(x); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond)
			}
			for range flows * each {
				if err := <-ended; err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			time.Sleep(time.Millisecond)
			there.mu.Lock()
			defer there.mu.Unlock()
			if !bytes.Equal(there.bytes, want) {
				t.Errorf("seed %d: not what was written", seed)
			}
		})
	}
}
