package link

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestLittleWithBulkOnASharedPath checks that, while a bulk link fills a path of 20 Mbit/s, 40 ms and a queue of as much, a message of 64 bytes of another link between
// the same hosts waits in its own host for no more than the other link's turn: nearly all arrive within 1.25 round trips and a quantum. The others meet a queue that is full, as it is for a few round
// trips while BBR looks whether there is more rate (draft-ietf-ccwg-bbr, 5.3.3.3), and take half a round trip, the queue and a quantum. The bulk link keeps the path.
func TestLittleWithBulkOnASharedPath(t *testing.T) {
	const (
		rate    = 20_000_000
		trip    = 40 * time.Millisecond
		quantum = 12 * 1518 * 8 * time.Second / rate // frames of a turn
	)
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		for _, d := range [][2]uint32{{1, 2}, {2, 1}} {
			slow := n.sim.NewBottleneck(bottleneck.Config{Rate: rate, Queue: int(rate / 8 * trip.Seconds()), Overhead: 28})
			n.sim.Link(simnet.Addr(d[0]), simnet.Addr(d[1]), simnet.Link{Through: slow, Latency: trip / 2})
		}
		a, b := n.host(1, nil), n.host(2, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		bulk, bulkIn := join(t, a, b, "bulk", nil, &Options{Buffers: 64, Size: 64 << 10})
		little, littleIn := join(t, a, b, "little", nil, &Options{Buffers: 8, Size: 64})
		var delivered atomic.Uint64
		go func() {
			for m, err := range bulkIn.In.Messages(ctx) {
				if err != nil {
					return
				}
				delivered.Add(uint64(len(m.Bytes)))
			}
		}()
		go func() {
			data := make([]byte, 64<<10)
			for bulk.Out.Send(ctx, 0, data) == nil {
			}
		}()
		arrived := make(chan time.Time, 1)
		go func() {
			for range littleIn.In.Messages(ctx) {
				arrived <- time.Now()
			}
		}()
		time.Sleep(3 * time.Second)
		began, before := time.Now(), delivered.Load()
		var took []time.Duration
		for time.Since(began) < fixture.Fewer(30*time.Second, 12*time.Second) {
			time.Sleep(37 * time.Millisecond)
			at := time.Now()
			if err := little.Out.Send(ctx, 0, make([]byte, 64)); err != nil {
				t.Fatal(err)
			}
			took = append(took, (<-arrived).Sub(at))
		}
		share := float64(delivered.Load()-before) * 8 / rate / time.Since(began).Seconds()
		slices.Sort(took)
		median, late, most := took[len(took)/2], took[len(took)*95/100], took[len(took)-1]
		t.Logf("%d messages: median %v, 95 of 100 %v, all %v; bulk has %.3f of the path", len(took), median, late, most, share)
		if late > trip+trip/4+quantum || median > trip {
			t.Errorf("95 of 100 messages took %v, half of them %v, want %v and %v", late, median, trip+trip/4+quantum, trip)
		}
		if limit := trip/2 + trip + quantum; most > limit {
			t.Errorf("a message took %v, want %v", most, limit)
		}
		if share < 0.85 {
			t.Errorf("bulk has %.3f of the path", share)
		}
	})
}
