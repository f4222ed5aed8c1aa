package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Observation V7 (docs/peers.md): when runs are as long as a frame can name, and
// when new ids alternate with copies, the acknowledgements that wait together
// still leave together.
func TestQuirkD1AcksTravelTogether(t *testing.T) {
	for _, double := range []float64{0, 0.1, 0.5, 1} {
		t.Run(fmt.Sprintf("doubled %v", double), func(t *testing.T) {
			rigTest(t, 1, func(t *testing.T, r *rig) {
				d := r.dg1(peers.DG1Config{})
				r.link(simnet.Link{}, simnet.Link{Duplicate: double})
				r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
				const frames = 4000
				for i := range frames {
					d.Post(0x100, uint32(i+1), peers.Part{Addr: 0x1000, Data: rigPattern(i, 1000)})
					time.Sleep(100 * time.Microsecond)
				}
				time.Sleep(20 * time.Millisecond)
				s, c := r.conn.Stats(), d.Counters()
				// One for each 16 frames, and one at once for each copy.
				if most := uint64(frames/16+10) + s.Duplicates; s.AcksAlone > most {
					t.Errorf("%d frames without messages for %d frames and %d copies, want at most %d", s.AcksAlone, frames, s.Duplicates, most)
				}
				if c.AcksGot != frames || c.Resent != 0 || c.LongestWait > 2*time.Millisecond+4*rigLatency {
					t.Errorf("%d of %d frames acknowledged, %d sent again, the slowest after %v", c.AcksGot, frames, c.Resent, c.LongestWait)
				}
			})
		})
	}
}

// The same for one that resends what is far behind: copies a window back
// alternate with what is new.
func TestQuirkD1AcksOfCopiesFarBehind(t *testing.T) {
	rigTest(t, 1, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		// Each frame comes again when 240 younger ones came: 256 behind begins another
		// life of such a peer (observation V4, docs/peers.md).
		r.link(simnet.Link{}, simnet.Link{HoldBack: 1, HoldFor: 24 * time.Millisecond})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		const frames = 4000
		for i := range frames {
			d.Post(0x100, uint32(i+1), peers.Part{Addr: 0x1000, Data: rigPattern(i, 1000)})
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(50 * time.Millisecond)
		s := r.conn.Stats()
		if s.Duplicates < frames*9/10 {
			t.Fatalf("%d copies: nothing was tested", s.Duplicates)
		}
		if most := s.Duplicates + frames/16 + 10; s.AcksAlone > most {
			t.Errorf("%d frames without messages for %d frames and %d copies, want at most %d", s.AcksAlone, frames, s.Duplicates, most)
		}
	})
}
