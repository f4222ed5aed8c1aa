package dgrdma

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// duringBulk runs a bulk flow of one connection over a link, and concurrently small writes of
// another one. It returns which share of the link the flow has, in bytes of its frames, and how
// long the writes take to arrive.
func duringBulk(t *testing.T, noHelp bool, l simnet.Link) (share float64, median, most time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		const size, count, bulk = 4 << 20, 8, 1 << 18
		p := newPair(t, pairConfig{link: l, size: size, a: Config{NoHelp: noHelp}, b: Config{NoHelp: noHelp}})
		defer p.close()
		other := p.connect(p.a, Peer{ID: 2, Addr: addrB, Size: size, As: 3})
		p.connect(p.b, Peer{ID: 3, Addr: addrA})
		for i := range count {
			tx := write(uint32(4096+i*bulk), pattern(i, bulk), 0, 1)
			tx.Done = func(tx *Transaction, err error) {
				if err == nil {
					p.toB.Post(tx) // in vain when it is over
				}
			}
			if err := p.toB.Post(tx); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(150 * time.Millisecond) // what slack it needs it knows by then
		began, before := time.Now(), p.toA.Stats().BytesReceived
		var took []time.Duration
		for i := uint32(1); time.Since(began) < 100*time.Millisecond; i++ {
			at := time.Now()
			if err := other.Post(write(64, pattern(1, 64), 1024, i)); err != nil {
				t.Fatal(err)
			}
			if err := p.memB.WaitFor(context.Background(), 1024, i); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(at))
			time.Sleep(377 * time.Microsecond)
		}
		share = float64(p.toA.Stats().BytesReceived-before) * 8 / float64(l.Rate) / time.Since(began).Seconds()
		slices.Sort(took)
		median, most = took[len(took)/2], took[len(took)-1]
		t.Logf("share %.3f, median %v, most %v, window %d", share, median, most, p.toB.Stats().Window)
	})
	return share, median, most
}

// TestQueueDuringBulk checks that a small write waits for no long queue in the network during a
// bulk flow of one connection, and that the flow has the whole link.
func TestQueueDuringBulk(t *testing.T) {
	all := []time.Duration{20 * time.Microsecond, 0, 100 * time.Microsecond}
	for _, latency := range fewer(all, all[:1]) {
		for _, noHelp := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v/nohelp=%v", latency, noHelp), func(t *testing.T) {
				share, median, most := duringBulk(t, noHelp, simnet.Link{Rate: 1e9, Latency: latency})
				limit := 450 * time.Microsecond
				if !noHelp {
					limit = 700 * time.Microsecond // where no goroutine receives for a while between two waits
				}
				if most > limit {
					t.Errorf("a small write takes %v, at most %v, want %v", median, most, limit)
				}
				if share < 0.995 {
					t.Errorf("the flow has %.3f of the link", share)
				}
			})
		}
	}
}
