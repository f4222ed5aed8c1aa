package endpoint

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// pacing lets one frame go per gap.
type pacing struct {
	ack.FixedWindow
	gap  time.Duration
	next ack.Instant
}

func (p *pacing) OnSent(now ack.Instant, _ int) { p.next = now.Add(p.gap) }

func (p *pacing) NextSend(now ack.Instant, _ int) ack.Instant { return max(now, p.next) }

// TestPacedRetransmission: a lost frame that the controller holds back leaves
// when it may, although nothing else is queued.
func TestPacedRetransmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{NewController: func(int) ack.Controller {
			return &pacing{gap: 50 * time.Millisecond}
		}}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		p.net.Link(addrA, addrB, simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
			return simnet.Verdict{Drop: i == 0}
		}})
		begin := time.Now()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 2)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 200*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// TestPaceOfWhoNeverAcknowledges: what leaves for the second driver at once fills half of
// the socket buffer that Linux gives who does not ask, and later leave half as many frames
// as it was seen to drain, 43,000 a second (observation V10, docs/peers.md).
func TestPaceOfWhoNeverAcknowledges(t *testing.T) {
	const buffer, takes, drained, forTime = 212_992, 2304, 43_000, 100 * time.Millisecond
	r := newHalfRig(t, 1, OpenCPI2(), Config{MTU: 1500})
	r.come(0)
	r.posts(slices.Repeat([]int{4000}, 5000)...)
	sent := func() int { return int(r.c.tx.counters.FramesSent) }
	if n := sent(); n > buffer/2/takes || n < buffer/4/takes {
		t.Errorf("%d frames at once, of which each takes %d bytes of %d", n, takes, buffer)
	}
	first, began := sent(), r.now
	for r.now.Sub(began) < forTime {
		r.waits()
	}
	if rate := float64(sent()-first) / r.now.Sub(began).Seconds(); rate > drained/2*1.05 || rate < drained/2*0.95 {
		t.Errorf("%.0f frames a second", rate)
	}
}
