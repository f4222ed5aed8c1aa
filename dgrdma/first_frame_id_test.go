package dgrdma

import (
	"testing"
)

// TestFirstIDIsDrawn checks that the first frame id is drawn where the peer does not insist on one.
func TestFirstIDIsDrawn(t *testing.T) {
	const drawn = 31_000
	for _, p := range []Profile{OpenCPI(false), OpenCPI2(), FPGA()} {
		r := newHalfRig(t, 1, p, Config{Entropy: func() uint32 { return drawn }})
		want := firstForeignID(p, drawn)
		if got := r.c.tx.unacked.Next(); got != uint32(want) {
			t.Errorf("%s: ids begin at %d, want %d", p.Name, got, want)
		}
	}
}
