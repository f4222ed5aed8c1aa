package bottleneck

// GilbertElliott is loss in bursts: a chain of two states, good and bad, that moves before each
// frame. The zero value loses nothing. All fields are from 0 to 1.
type GilbertElliott struct {
	ToBad, ToGood     float64 // chance to move to that state from the other
	LossGood, LossBad float64 // chance of a frame to be lost in a state
}

// Bursts returns the chain that loses everything in the bad state and nothing in the good one, by
// the share of frames that is lost and how many in a row on average.
func Bursts(share, length float64) GilbertElliott {
	toGood := 1 / length
	return GilbertElliott{ToBad: min(1, toGood*share/(1-share)), ToGood: toGood, LossBad: 1}
}

// Chain is the state of a [GilbertElliott]. The zero value is good.
type Chain struct{ bad bool }

// Lost moves the chain on and reports whether the next frame is lost. It calls draw twice, for numbers
// from 0 to below 1.
func (c *Chain) Lost(g *GilbertElliott, draw func() float64) bool {
	move, loss := draw(), draw()
	if c.bad {
		c.bad = move >= g.ToGood
	} else {
		c.bad = move < g.ToBad
	}
	if c.bad {
		return loss < g.LossBad
	}
	return loss < g.LossGood
}
