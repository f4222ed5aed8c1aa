package congestion

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestLimitedRate checks that no more leaves than the rate, by each controller, what is sent again included, and that the rate is used.
func TestLimitedRate(t *testing.T) {
	const rate = 250_000 // bytes a second
	for name, inner := range map[string]func() ack.Controller{
		"bbr":      func() ack.Controller { return NewBBR(testMTU, 1) },
		"by path":  func() ack.Controller { return NewByPath(testMTU, 1, false) },
		"adaptive": func() ack.Controller { return ack.NewAdaptive(testMTU) },
		"fixed":    func() ack.Controller { return &ack.FixedWindow{Bytes: 1 << 20} },
		"paced":    func() ack.Controller { return ack.NewPacer(1<<20, 50_000_000) },
	} {
		for _, loss := range []float64{0, .1} {
			seed := uint64(7)
			b := newBottleneck(seed, 20e6, 100_000)
			b.loss = loss
			f := b.flow(NewLimited(inner(), rate), 40*ms, 0)
			b.run(10 * time.Second)
			least := .9 * (1 - 3*loss) // a path of eight frames that loses some is left to bbr
			if sent := float64(f.sent); sent > 1.02*rate*10+2*testMTU || sent < least*rate*10 {
				t.Errorf("%s, loss %v, seed %d: %.0f bytes left in 10 s, want about %d", name, loss, seed, sent, rate*10)
			}
		}
	}
}

// TestLimitedForwards checks that what a controller can do beyond the least, it does behind a limit too.
func TestLimitedForwards(t *testing.T) {
	far := NewLimited(NewBBR(testMTU, 1), 1000)
	if s := far.Inspect(); !far.IsFar() || s.Controller != "bbr" || s.PacingRate != 1000 {
		t.Errorf("bbr behind a limit: far %v, %+v", far.IsFar(), s)
	}
	near := NewLimited(&ack.FixedWindow{}, 1000)
	if s := near.Inspect(); near.IsFar() || s.Controller != "fixed" || s.PacingRate != 1000 {
		t.Errorf("a window behind a limit: far %v, %+v", near.IsFar(), s)
	}
	far.Rest()
	near.Rest()
}
