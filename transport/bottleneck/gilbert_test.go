package bottleneck_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// TestBursts checks the share that is lost, and how long its bursts are.
func TestBursts(t *testing.T) {
	const n = 1_000_000
	for _, c := range []struct{ share, length float64 }{{0.01, 1.5}, {0.02, 5}, {0.3, 20}} {
		g := bottleneck.Bursts(c.share, c.length)
		draw := rand.New(rand.NewPCG(1, 2)).Float64
		var chain bottleneck.Chain
		lost, bursts, before := 0., 0., false
		for range n {
			is := chain.Lost(&g, draw)
			if is {
				lost++
				if !before {
					bursts++
				}
			}
			before = is
		}
		if share := lost / n; math.Abs(share-c.share) > 0.1*c.share {
			t.Errorf("%+v: %v lost", c, share)
		}
		if length := lost / bursts; math.Abs(length-c.length) > 0.1*c.length {
			t.Errorf("%+v: bursts of %v", c, length)
		}
	}
}

// TestGilbertElliott checks that losses of both states are what they are said to be.
func TestGilbertElliott(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2)).Float64
	for _, c := range []struct {
		g    bottleneck.GilbertElliott
		want float64
	}{
		{bottleneck.GilbertElliott{}, 0},
		{bottleneck.GilbertElliott{LossGood: 0.1}, 0.1},
		{bottleneck.GilbertElliott{ToBad: 1, LossBad: 1}, 1},
		{bottleneck.GilbertElliott{ToBad: 0.1, ToGood: 0.3, LossGood: 0.1, LossBad: 0.5}, 0.2}, // a quarter of the time in the bad state
	} {
		const n = 200_000
		var chain bottleneck.Chain
		lost := 0.
		for range n {
			if chain.Lost(&c.g, draw) {
				lost++
			}
		}
		if math.Abs(lost/n-c.want) > 0.01*c.want+1e-9 && math.Abs(lost/n-c.want) > 0.005 {
			t.Errorf("%+v: %v lost, want %v", c.g, lost/n, c.want)
		}
	}
}
