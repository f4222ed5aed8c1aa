package dgrdma

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// sequence is memory that notes the completion values in the order in which they came.
type sequence struct {
	*Region
	values []uint32
}

func (s *sequence) Complete(src frame.EndpointID, m *frame.Message) {
	s.values = append(s.values, m.CompletionValue)
	s.Region.Complete(src, m)
}

// TestFence checks that a fence keeps a counter in one word from going backwards. It does when the
// transactions that write it are under way together, and not after a fence; between fences they
// still are under way together.
func TestFence(t *testing.T) {
	count := fewer(400, 150)
	for _, x := range []struct {
		name  string
		fence func(i int) bool
		prof  Profile
	}{
		{"none", func(int) bool { return false }, Native()},
		{"each", func(int) bool { return true }, Native()},
		{"every tenth", func(i int) bool { return i%10 == 0 }, Native()},
		{"each, of OpenCPI", func(int) bool { return true }, OpenCPI(false)},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				region, _ := NewRegion(1 << 16)
				mem := &sequence{Region: region}
				p := newPair(t, pairConfig{
					size: 1 << 16, a: Config{Profile: &x.prof}, b: Config{Profile: &x.prof, Memory: mem},
					link: simnet.Link{Latency: 200 * time.Microsecond, Reorder: 0.2, ReorderBy: time.Millisecond, Loss: 0.05},
				})
				defer p.close()
				most := 0
				for i := range count {
					tx := write(uint32(4096+64*(i%100)), pattern(i, 64*(1+i%3)), 0, uint32(i+1))
					tx.Fence = x.fence(i)
					tx.Done = func(_ *Transaction, err error) {
						if err != nil {
							t.Error(err)
						}
					}
					if err := p.toB.Post(tx); err != nil {
						t.Fatal(err)
					}
				}
				for p.toB.Stats().Queued > 0 {
					time.Sleep(50 * time.Microsecond)
					most = max(most, p.toB.Stats().InFlight)
				}
				switch {
				case len(mem.values) != count:
					t.Errorf("%d of %d completions", len(mem.values), count)
				case x.fence(0) && x.fence(1):
					if !slices.IsSorted(mem.values) || mem.Load32(0) != uint32(count) {
						t.Errorf("the counter went backwards: %v, and stays at %d", mem.values, mem.Load32(0))
					}
				case !x.fence(0) && slices.IsSorted(mem.values):
					t.Error("the counter never went backwards: this test says nothing")
				case x.fence(0):
					for i, v := range mem.values {
						if int(v-1)/10 != i/10 {
							t.Errorf("completion %d came as the %d-th: a fence was passed", v, i+1)
						}
					}
					if most < 2 {
						t.Error("there was never more than one frame under way between fences")
					}
				}
			})
		})
	}
}

// TestFenceWithNothingBefore checks that a fence does not keep anything back from a connection at
// rest, nor after what failed.
func TestFenceWithNothingBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		for i := range uint32(3) {
			tx := write(64, pattern(1, 100_000), 0, i+1)
			tx.Fence = true
			if err := p.toB.Write(context.Background(), tx); err != nil || p.memB.Load32(0) != i+1 {
				t.Errorf("%v, word %d", err, p.memB.Load32(0))
			}
		}
		p.net.Link(addrA, addrB, simnet.Link{Down: true})
		p.toB.Post(write(64, nil, 0, 9))
		if err := p.toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		p.net.Link(addrA, addrB, simnet.Link{})
		tx := write(64, nil, 0, 10)
		tx.Fence = true
		if err := p.toB.Write(context.Background(), tx); err != nil || p.memB.Load32(0) != 10 {
			t.Errorf("after a reset: %v, word %d", err, p.memB.Load32(0))
		}
	})
}
