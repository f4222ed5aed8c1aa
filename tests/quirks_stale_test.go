package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// stale ends our endpoint and begins another one, while the card goes on.
func (r *rig) stale() {
	r.redial(dgrdma.FPGA(), dgrdma.Config{GiveUp: 3 * time.Second})
	r.txns = 0
}

// refusedByStale posts transactions to a card that is stale: none may be done, and
// the card must take none.
func (r *rig) refusedByStale(d *peers.FPGA, n int) error {
	r.t.Helper()
	before := len(d.Completions())
	results := make(chan error, n)
	for i := range n {
		if err := r.conn.Post(&dgrdma.Transaction{
			Segments:   []dgrdma.Segment{{Addr: rigSlot(i, 64), Bytes: rigPattern(i+500, 64)}},
			Completion: dgrdma.Word(rigFlag, uint32(i+1)),
			Done:       func(_ *dgrdma.Transaction, err error) { results <- err },
		}); err != nil {
			r.t.Fatal(err)
		}
	}
	var first error
	for range n {
		err := <-results
		if err == nil {
			r.t.Fatal("success was reported of what the card did not take")
		}
		if first == nil {
			first = err
		}
	}
	if got := len(d.Completions()); got != before {
		r.t.Errorf("the card completed %d of them", got-before)
	}
	return first
}

// Observation V2 (docs/peers.md): a card that was not disabled and enabled since
// an earlier run of ours drops our first ids, and acknowledges later ones. That is
// never success, and the error says what to do.
func TestStaleCardIsNoSuccess(t *testing.T) {
	for _, used := range []int{1, 2, 3, 8, 20, 31, 32, 33, 500} {
		for _, n := range []int{1, 60} {
			t.Run(fmt.Sprintf("%d used, %d posted", used, n), func(t *testing.T) {
				rigTest(t, uint64(used), func(t *testing.T, r *rig) {
					d := r.fpga(peers.FPGAConfig{})
					r.dial(dgrdma.FPGA(), dgrdma.Config{})
					for range used {
						r.send(1, 64)
					}
					r.stale()
					err := r.refusedByStale(d, n)
					if used < 5 && !errors.Is(err, dgrdma.ErrStaleCard) || !errors.Is(err, dgrdma.ErrStaleCard) && !errors.Is(err, dgrdma.ErrPeerDown) {
						t.Errorf("the error is: %v", err)
					}
					d.Reset()
					if err := r.conn.Reset(0); err != nil {
						t.Fatal(err)
					}
					r.send(40, 2000)
				})
			})
		}
	}
}

// Observation V2: nor is it under loss, whatever of the card's frames arrives.
func TestStaleCardIsNoSuccessUnderLoss(t *testing.T) {
	for seed := range uint64(60) {
		rigTest(t, seed, func(t *testing.T, r *rig) {
			d := r.fpga(peers.FPGAConfig{})
			r.dial(dgrdma.FPGA(), dgrdma.Config{})
			for range 1 + seed%6 {
				r.send(1, 64)
			}
			r.link(simnet.Link{Loss: 0.3, Duplicate: 0.2, Reorder: 0.2}, simnet.Link{Loss: 0.3, Duplicate: 0.2, Reorder: 0.2})
			r.stale()
			r.refusedByStale(d, 10)
		})
	}
}

// Observation V2: a card that is stale and sends by itself is heard as before: only
// what we send to it fails.
func TestStaleCardIsHeard(t *testing.T) {
	rigTest(t, 1, func(t *testing.T, r *rig) {
		d := r.fpga(peers.FPGAConfig{})
		r.dial(dgrdma.FPGA(), dgrdma.Config{})
		r.send(4, 64)
		r.stale()
		for i := range 20 {
			d.Write(rigSlot(i, 64), rigPattern(i, 64), 0x100, uint32(i+1))
			time.Sleep(50 * time.Millisecond)
		}
		r.await(0x100, 20)
		err := r.conn.Write(context.Background(), &dgrdma.Transaction{Completion: dgrdma.Word(rigFlag, 1)})
		if err == nil || r.conn.Stats().Completions != 20 {
			t.Errorf("%v, %d completed", err, r.conn.Stats().Completions)
		}
	})
}

// Observation V2: a fresh card's first acknowledgement may be overtaken by what it
// sends after it. If it is lost, nothing tells that card from a stale one: that
// fails, and says so.
func TestFreshCardProvesIt(t *testing.T) {
	t.Run("overtaken", func(t *testing.T) {
		rigTest(t, 1, func(t *testing.T, r *rig) {
			d := r.fpga(peers.FPGAConfig{})
			r.link(simnet.Link{}, simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
				if i == 0 {
					return simnet.Delay(5 * time.Millisecond)
				}
				return simnet.Deliver()
			}})
			r.dial(dgrdma.FPGA(), dgrdma.Config{})
			go func() {
				time.Sleep(3 * time.Millisecond)
				d.Doorbell(0x100, 1)
			}()
			r.send(1, 64)
			r.send(40, 64)
			r.await(0x100, 1)
		})
	})
	t.Run("lost", func(t *testing.T) {
		rigTest(t, 1, func(t *testing.T, r *rig) {
			r.fpga(peers.FPGAConfig{})
			r.link(simnet.Link{}, simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
				if i == 0 {
					return simnet.Drop()
				}
				return simnet.Deliver()
			}})
			r.dial(dgrdma.FPGA(), dgrdma.Config{})
			err := r.conn.Write(context.Background(), &dgrdma.Transaction{Completion: dgrdma.Word(rigFlag, 1)})
			if !errors.Is(err, dgrdma.ErrStaleCard) {
				t.Error(err)
			}
		})
	})
}
