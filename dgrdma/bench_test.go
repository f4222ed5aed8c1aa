package dgrdma

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// flow keeps depth transactions of one size posted on a connection and reposts
// them from Done, until a number of them is done.
type flow struct {
	conn *Conn
	left int
	live int
	over chan error
}

func (f *flow) run(size, depth, total int) error {
	f.left, f.live = total, min(depth, total)
	f.over = make(chan error, 1)
	for i := range f.live {
		tx := write(uint32(4096+i%16*65536), pattern(i, size), 0, 1)
		tx.Done = f.done
		f.left--
		if err := f.conn.Post(tx); err != nil {
			return err
		}
	}
	return <-f.over
}

// done runs on the sending endpoint's goroutines, one at a time per connection
// in these tests: nothing but acknowledgements finishes transactions.
func (f *flow) done(t *Transaction, err error) {
	if err == nil && f.left > 0 {
		f.left--
		if err = f.conn.Post(t); err == nil {
			return
		}
	}
	if f.live--; f.live == 0 || err != nil {
		select {
		case f.over <- err:
		default:
		}
	}
}

// TestZeroAllocations checks that a transaction in steady state allocates nothing, from Post over the wire and the placement to the
// acknowledgement and Done. In virtual time no timer fires because the machine is busy, so that nothing is sent again.
func TestZeroAllocations(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector allocates")
	}
	for _, size := range []int{0, 64, 1000, 20_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, pairConfig{size: 2 << 20})
				defer p.close()
				over := make(chan error, 1)
				txs := make([]*Transaction, 16)
				left := 0
				for i := range txs {
					txs[i] = write(uint32(4096+i*65536), pattern(i, size), 0, 1)
					txs[i].Done = func(_ *Transaction, err error) {
						if left--; left == 0 || err != nil {
							over <- err
						}
					}
				}
				round := func() {
					left = len(txs)
					for _, tx := range txs {
						if err := p.toB.Post(tx); err != nil {
							t.Fatal(err)
						}
					}
					if err := <-over; err != nil {
						t.Fatal(err)
					}
				}
				for range 200 {
					round()
				}
				if n := fixture.Allocations(100, round); n > 0 {
					t.Errorf("%d allocations for %d transactions", n, len(txs))
				}
			})
		})
	}
}

// BenchmarkSimnet moves data over a network in memory without faults: the cost
// of the engine and one copy on each side. ns/frame counts frames with
// messages; everything runs on one core.
func BenchmarkSimnet(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, size := range []int{0, 64, 1456, 65536, 1 << 20} {
		for _, directions := range []int{1, 2} {
			b.Run(fmt.Sprintf("size=%d/directions=%d", size, directions), func(b *testing.B) {
				p := newPair(b, pairConfig{size: 4 << 20})
				defer p.close()
				flows := []*flow{{conn: p.toB}, {conn: p.toA}}[:directions]
				depth := min(512, max(4, 1<<22/(size+1)))
				if size > 60_000 {
					depth = 4
				}
				for _, f := range flows {
					if err := f.run(size, depth, depth); err != nil {
						b.Fatal(err)
					}
				}
				before := p.a.Stats().FramesSent + p.b.Stats().FramesSent - p.a.Stats().AcksAlone - p.b.Stats().AcksAlone
				b.SetBytes(int64(size * directions))
				b.ReportAllocs()
				b.ResetTimer()
				results := make(chan error, directions)
				for _, f := range flows {
					go func() { results <- f.run(size, depth, max(b.N, depth)) }()
				}
				for range flows {
					if err := <-results; err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				sa, sb := p.a.Stats(), p.b.Stats()
				frames := sa.FramesSent + sb.FramesSent - sa.AcksAlone - sb.AcksAlone - before
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
				b.ReportMetric(float64(sa.AcksAlone+sb.AcksAlone)/float64(frames), "acks/frame")
			})
		}
	}
}
