package worlds

import (
	"math"
	"math/rand/v2"
	"time"
)

// Dice draws from a seed.
type Dice struct{ *rand.Rand }

// NewDice returns the dice of a seed; those of other streams are independent.
func NewDice(seed, stream uint64) Dice { return Dice{rand.New(rand.NewPCG(seed, stream))} }

// Chance says yes with that probability.
func (d Dice) Chance(p float64) bool { return d.Float64() < p }

// Between returns a number from low to high.
func (d Dice) Between(low, high int) int { return low + d.IntN(high-low+1) }

// Pick returns one of these.
func (d Dice) Pick(of ...int) int { return of[d.IntN(len(of))] }

// Span draws a duration so that small ones are as likely as large ones.
func (d Dice) Span(low, high time.Duration) time.Duration {
	x := time.Duration(float64(low) * math.Pow(float64(high)/float64(low), d.Float64()))
	return max(x, low)
}
