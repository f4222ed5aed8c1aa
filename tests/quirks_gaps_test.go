package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// missed adds up what events said of frames that never came.
func (r *rig) missed() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		n += e.Frames
	}
	return n
}

// Observation V9 (docs/peers.md): what a card sends is never repeated. That frames
// did not come is counted and said, while others come and when none does any more.
func TestFramesThatNeverCameAreTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		lost  func(i int) bool
		pause time.Duration // between two transactions of two frames
		want  int
	}{
		{"none", func(int) bool { return false }, 10 * time.Millisecond, 0},
		{"one in the midst", func(i int) bool { return i == 100 }, 10 * time.Millisecond, 1},
		{"one in the midst of a slow stream", func(i int) bool { return i == 100 }, 300 * time.Millisecond, 1},
		{"one in the midst of a quick stream", func(i int) bool { return i == 100 }, 10 * time.Microsecond, 1},
		{"the first five", func(i int) bool { return i < 5 }, 10 * time.Millisecond, 5},
		{"one of ten", func(i int) bool { return i%10 == 3 }, 10 * time.Millisecond, 40},
		{"the last but one", func(i int) bool { return i == 398 }, 10 * time.Millisecond, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			rigTest(t, 9, func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{})
				r.link(simnet.Link{}, simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
					if c.lost(i) {
						return simnet.Drop()
					}
					return simnet.Deliver()
				}, Duplicate: 0.2, Reorder: 0.2, ReorderBy: 5 * time.Millisecond})
				r.dial(dgrdma.FPGA(), dgrdma.Config{})
				for i := range 200 {
					d.Write(rigSlot(i, 2800), rigPattern(i, 2800), 0x100, uint32(i+1))
					time.Sleep(c.pause)
				}
				time.Sleep(3 * time.Second)
				for range 3 { // and is not told twice
					d.Doorbell(0x104, 1)
					time.Sleep(3 * time.Second)
				}
				s := r.conn.Stats()
				if r.missed() != c.want || int(s.FramesMissed) != c.want || int(r.ep.Stats().FramesMissed) != c.want {
					t.Errorf("told of %d missing frames, counted %d, want %d", r.missed(), s.FramesMissed, c.want)
				}
				if c.want > 0 && s.Open == 0 {
					t.Error("no transaction stayed open: nothing was tested")
				}
			})
		})
	}
}

// Observation V9: of a second driver that does send again when it is told to, only
// what it does not is missing; and one jump of the ids is no more work than a step.
func TestFramesThatComeAgainAreNotMissed(t *testing.T) {
	for _, loss := range []float64{0.05, 0.2} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			rigTest(t, 9, func(t *testing.T, r *rig) {
				d := r.dg2(peers.DG2Config{Retransmit: true})
				r.link(simnet.Link{}, simnet.Link{Loss: loss})
				r.dial(dgrdma.OpenCPI2(), dgrdma.Config{})
				for i := range 60 {
					d.Post(0x80+4*uint32(i), uint32(i+1), rigSlot(i, 3000), rigPattern(i, 3000))
					d.Flush()
					dg1Until(r, func() bool { return d.Outstanding() == 0 })
				}
				time.Sleep(3 * time.Second)
				if n := r.conn.Stats().FramesMissed; n != 0 || r.missed() != 0 {
					t.Errorf("%d frames are missing, told of %d", n, r.missed())
				}
			})
		})
	}
}
