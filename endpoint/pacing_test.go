package endpoint

import (
	"context"
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
