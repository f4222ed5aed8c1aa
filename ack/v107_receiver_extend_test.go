package ack

import (
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// TestReceiverExtendsRuns: a run is repeated with all received neighbours that fit one frame,
// those behind it first.
func TestReceiverExtendsRuns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	longer := 0
	for world := range 2000 {
		cfg := ReceiverConfig{History: 1 << rnd.IntN(12), Repeat: true, SplitAtWrap: rnd.IntN(2) == 0}
		var r Receiver
		r.Init(cfg)
		at, lost := frame.Seq(rnd.IntN(600)-300), 1+rnd.IntN(400)
		for i := range rnd.IntN(1000) + 1 {
			if i == 0 || rnd.IntN(lost) > 0 {
				r.Accept(at.Add(i), 1)
			}
		}
		for range 20 {
			d := Range{r.Newest().Add(-rnd.IntN(min(cfg.History, 700))), uint8(1 + rnd.IntN(MaxRun))}
			d.Count = uint8(min(int(d.Count), r.Newest().Diff(d.Start)+1))
			if cfg.SplitAtWrap {
				d.Count = uint8(min(int(d.Count), 1<<16-int(d.Start)))
			}
			want := d
			for s := want.Start.Add(int(want.Count)); want.Count < MaxRun && r.joins(s) && r.received(s); s++ {
				want.Count++
			}
			for want.Count < MaxRun && r.joins(want.Start) && r.received(want.Start.Add(-1)) {
				want.Start--
				want.Count++
			}
			if got := r.extend(d); got != want {
				t.Fatalf("world %d, %+v, newest %d: %v became %v, want %v", world, cfg, r.Newest(), d, got, want)
			}
			if want != d {
				longer++
			}
		}
	}
	if longer < 1000 {
		t.Errorf("no more than %d runs became longer", longer)
	}
}
