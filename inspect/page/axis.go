package page

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dgrdma/dgrdma/inspect"
)

// full is the size of a picture's coordinates in both directions; the browser
// stretches it.
const full = 10000

// Tick is a label of an axis.
type Tick struct {
	At    float64 // in percent
	Text  string
	Minor bool // left out where there is little room
}

// step returns the least of 1, 2 and 5 times a power of ten that divides a range
// into at most n parts.
func step(length float64, n int) float64 {
	if length <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(length/float64(n))))
	for _, m := range []float64{1, 2, 5} {
		if length/(m*unit) <= float64(n) {
			return m * unit
		}
	}
	return 10 * unit
}

// timeTicks labels a piece of time from its begin on.
func timeTicks(length time.Duration, n int) (ticks []Tick) {
	d := max(time.Duration(step(float64(length), n)), 1)
	for at := time.Duration(0); at <= length && len(ticks) <= n; at += d {
		ticks = append(ticks, Tick{At: percent(float64(at), float64(length)), Text: inspect.Span(at), Minor: len(ticks)%2 == 1})
	}
	return ticks
}

// valueAxis chooses the upper end of an axis from 0, and labels it.
func valueAxis(most float64, label func(float64) string) (top float64, ticks []Tick) {
	d := step(most, 4)
	if most <= 0 {
		return 1, []Tick{{At: 100, Text: label(0)}}
	}
	n := math.Ceil(most / d)
	for i := 0.0; i <= n; i++ {
		ticks = append(ticks, Tick{At: 100 - percent(i, n), Text: label(i * d)})
	}
	return n * d, ticks
}

// wholeAxis is valueAxis for numbers of things.
func wholeAxis(most float64) (top float64, ticks []Tick) {
	d := math.Max(step(most, 4), 1)
	n := math.Max(math.Ceil(most/d), 1)
	for i := 0.0; i <= n; i++ {
		ticks = append(ticks, Tick{At: 100 - percent(i, n), Text: inspect.Grouped(int64(i * d))})
	}
	return n * d, ticks
}

func percent(part, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return math.Round(1e4*part/of) / 1e2
}

// scale maps a range to coordinates.
type scale struct{ from, length float64 }

func (s scale) at(v float64) int {
	if s.length <= 0 {
		return 0
	}
	return int(math.Round(full * math.Min(math.Max((v-s.from)/s.length, 0), 1)))
}

// path is the text of an SVG path.
type path struct{ b []byte }

func (p *path) to(command byte, x, y int) {
	p.b = append(p.b, command)
	p.b = strconv.AppendInt(p.b, int64(x), 10)
	p.b = append(p.b, ' ')
	p.b = strconv.AppendInt(p.b, int64(y), 10)
}

// box adds a filled rectangle.
func (p *path) box(left, top, right, bottom int) {
	p.to('M', left, bottom)
	p.b = fmt.Appendf(p.b, "V%dH%dV%dz", top, right, bottom)
}

func (p *path) add(s string) { p.b = append(p.b, s...) }

func (p *path) String() string { return string(p.b) }
