package page

import (
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/inspect"
)

// mostColumns is how many pieces of time a picture tells apart.
const mostColumns = 128

// columns puts bins together, so that a picture has no more than can be seen.
func columns(f *inspect.Flow) (bins []inspect.Bin, width time.Duration) {
	g := (len(f.Bins) + mostColumns - 1) / mostColumns
	for i, b := range f.Bins {
		if i%g == 0 {
			bins = append(bins, inspect.Bin{})
		}
		sum := &bins[len(bins)-1]
		sum.Frames += b.Frames
		sum.Resent += b.Resent
		sum.Duplicates += b.Duplicates
		sum.Data += b.Data
		sum.ResentData += b.ResentData
		sum.InFlight = max(sum.InFlight, b.InFlight)
	}
	return bins, f.BinWidth * time.Duration(max(g, 1))
}

// leastBins is how many bins a picture over time needs to say anything.
const leastBins = 4

func drawInFlight(f *inspect.Flow) (c chart) {
	bins, width := columns(f)
	switch {
	case f.Acked == 0:
		c.Empty = "No acknowledgement was captured: what is in flight is not known."
	case len(f.Bins) < leastBins:
		c.Empty = "The flow is over in a moment: there is nothing to draw."
	}
	if c.Empty != "" {
		return c
	}
	from, to := ends(f)
	top, ticks := wholeAxis(float64(f.InFlightMost))
	c.X, c.Y = timeTicks(to-from, 6), ticks
	x, y := scale{float64(from), float64(to - from)}, scale{0, top}
	values := make([]int, len(bins))
	for i, b := range bins {
		values[i] = y.at(float64(b.InFlight))
	}
	c.Areas = []area{{"data", steps(x, from, width, values, nil)}}
	for i, b := range bins {
		c.column(x, from+time.Duration(i)*width, width, fmt.Sprintf("%s: at most %d in flight", inspect.Span(time.Duration(i)*width), b.InFlight))
	}
	c.Note = fmt.Sprintf("At most %s.", inspect.Grouped(int64(f.InFlightMost)))
	return c
}

func drawThroughput(f *inspect.Flow) (c chart) {
	if len(f.Bins) < leastBins {
		c.Empty = "The flow is over in a moment: there is nothing to draw."
		return c
	}
	bins, width := columns(f)
	from, to := ends(f)
	rate := func(n int64) float64 { return float64(n) / width.Seconds() }
	most := 0.0
	for _, b := range bins {
		most = max(most, rate(b.Data+b.ResentData))
	}
	top, ticks := valueAxis(most, func(v float64) string { return inspect.Size(v) + "/s" })
	c.X, c.Y = timeTicks(to-from, 6), ticks
	x, y := scale{float64(from), float64(to - from)}, scale{0, top}
	first, all := make([]int, len(bins)), make([]int, len(bins))
	for i, b := range bins {
		first[i], all[i] = y.at(rate(b.Data)), y.at(rate(b.Data+b.ResentData))
	}
	c.Areas = []area{{"data", steps(x, from, width, first, nil)}}
	if f.Resent > 0 {
		c.Areas = append(c.Areas, area{"resent", steps(x, from, width, all, first)})
	}
	for i, b := range bins {
		text := fmt.Sprintf("%s: %s/s, %d frames", inspect.Span(time.Duration(i)*width), inspect.Size(rate(b.Data)), b.Frames)
		if b.Resent > 0 {
			text += fmt.Sprintf("; and %s/s in %d copies", inspect.Size(rate(b.ResentData)), b.Resent)
		}
		c.column(x, from+time.Duration(i)*width, width, text)
	}
	c.Note = fmt.Sprintf("%s/s on average, over pieces of %s.", inspect.Size(float64(f.Data)/(to-from).Seconds()), inspect.Span(width))
	return c
}

// steps draws columns from below, or from other columns, to their heights.
func steps(x scale, from, width time.Duration, heights, below []int) string {
	var p path
	for i, h := range heights {
		base := full
		if below != nil {
			base = full - below[i]
		}
		if full-h == base {
			continue
		}
		left, right := x.at(float64(from+time.Duration(i)*width)), x.at(float64(from+time.Duration(i+1)*width))
		p.box(left, full-h, right, base)
	}
	return p.String()
}

func (c *chart) column(x scale, from, width time.Duration, text string) {
	left, right := x.at(float64(from)), x.at(float64(from+width))
	if right > left {
		c.Columns = append(c.Columns, column{left, right - left, text})
	}
}
