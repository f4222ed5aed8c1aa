package dgrdma

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

func (p *pacing) OnSent(now ack.Instant, _ uint32, _ int) { p.next = now.Add(p.gap) }

func (p *pacing) NextSend(now ack.Instant, _ int) ack.Instant { return max(now, p.next) }

// TestPacedRetransmission checks that a lost frame that the controller holds back leaves
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

// TestPaceOfWhoNeverAcknowledges checks that what leaves for the second driver at once, and while it stands
// still for 50 ms, has room in the socket buffer that it has, the one that Linux makes or another (O2).
func TestPaceOfWhoNeverAcknowledges(t *testing.T) {
	const takes, still = 2304, 50 * time.Millisecond
	for _, buffer := range []int{0, 16384, 212_992, 1 << 20, 1 << 30} {
		r := newHalfRig(t, 1, OpenCPI2(), Config{MTU: 1500, PeerBuffer: buffer})
		if buffer == 0 {
			buffer = 212_992
		}
		r.come(0)
		r.posts(slices.Repeat([]int{4000}, 5000)...)
		sent := func() int { return int(r.c.tx.counters.FramesSent) }
		began, all := r.now, buffer == 1<<30 // all of it fits
		for r.now.Sub(began) < still && !all {
			r.waits()
		}
		room := buffer / takes
		if n := sent(); n > room || n < room*9/10-2 && !all {
			t.Errorf("%d frames in %v, and %d have room", n, still, room)
		}
		if p := r.c.tx.terms.profile; p.Drain > 50_000_000 {
			t.Errorf("%d bytes a second with a buffer of %d", p.Drain, buffer)
		}
	}
}
