package page

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/inspect"
)

// drawHistogram draws times, one kind upon the other, over an axis in which each
// power of ten is as wide as the next.
func drawHistogram(kinds []inspect.Histogram, classes []string, what string) (c chart) {
	counts := map[time.Duration][]int{}
	ends := map[time.Duration]time.Duration{}
	from, to, most, n := time.Duration(math.MaxInt64), time.Duration(0), 0, 0
	for k, h := range kinds {
		for _, b := range h.Buckets {
			if counts[b.From] == nil {
				counts[b.From] = make([]int, len(kinds))
			}
			counts[b.From][k], ends[b.From] = b.Count, b.To
			from, to = min(from, b.From), max(to, b.To)
			sum := 0
			for _, v := range counts[b.From] {
				sum += v
			}
			most = max(most, sum)
		}
		n += h.Count
	}
	switch {
	case n == 0:
		c.Empty = "None was seen."
		return c
	case to <= 1:
		c.Empty = "None took as long as the clock of the capture can tell."
		return c
	}
	zero := from == 0 // what took no time stands before all that took some
	if zero {
		least := to
		for at := range counts {
			if at > 0 {
				least = min(least, at)
			}
		}
		from = least
	}
	for to < 8*from {
		from, to = max(from*3/4, 1), to+to/4+1
	}
	first := math.Log10(float64(from))
	if zero {
		first -= beforeAll
	}
	log := func(d time.Duration) float64 { return math.Log10(float64(max(d, from))) }
	x := scale{first, log(to) - first}
	top, ticks := wholeAxis(float64(most))
	c.Y, c.X = ticks, logTicks(from, to, x)
	y := scale{0, top}
	paths := make([]path, len(kinds))
	for _, at := range slices.Sorted(maps.Keys(ends)) {
		end := ends[at]
		left, right := x.at(log(at)), x.at(log(end))
		if at == 0 {
			left, right = 0, x.at(log(from))
		}
		below := 0
		for k, v := range counts[at] {
			if v > 0 {
				paths[k].box(left, full-y.at(float64(below+v)), right, full-y.at(float64(below)))
			}
			below += v
		}
		if below == 0 {
			continue
		}
		text := fmt.Sprintf("%s to %s: %s %s", inspect.Span(at), inspect.Span(end), inspect.Grouped(int64(below)), what)
		if len(kinds) > 1 && counts[at][1] > 0 {
			text += fmt.Sprintf(", %s of them sent again", inspect.Grouped(int64(counts[at][1])))
		}
		c.Columns = append(c.Columns, column{left, right - left, text})
	}
	for k := range paths {
		c.Areas = append(c.Areas, area{classes[k], paths[k].String()})
	}
	if h := kinds[0]; h.Count > 0 {
		c.Note = fmt.Sprintf("Median %s, 99 %% up to %s, longest %s.", inspect.Span(h.P50), inspect.Span(h.P99), inspect.Span(h.Max))
	}
	return c
}

// beforeAll is how wide what took no time is drawn, in powers of ten. Arbitrary.
const beforeAll = 0.3

// logTicks labels powers of ten, and what lies between them if these are few.
func logTicks(from, to time.Duration, x scale) (ticks []Tick) {
	for _, parts := range [][]float64{{1}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9}} {
		ticks = ticks[:0]
		for decade := 1.0; decade <= float64(to); decade *= 10 {
			for _, part := range parts {
				if v := part * decade; v >= float64(from) && v <= float64(to) && v == math.Trunc(v) {
					at := float64(x.at(math.Log10(v))) / 100
					ticks = append(ticks, Tick{At: at, Text: inspect.Span(time.Duration(v)), Minor: len(ticks)%2 == 1})
				}
			}
		}
		if len(ticks) >= 3 {
			break
		}
	}
	return spaced(ticks)
}

// spaced leaves out labels that would touch the one before.
func spaced(ticks []Tick) (kept []Tick) {
	const apart = 11 // percent; a label of eight letters in half of a page
	for _, t := range ticks {
		if len(kept) == 0 || t.At-kept[len(kept)-1].At >= apart {
			t.Minor = len(kept)%2 == 1
			kept = append(kept, t)
		}
	}
	return kept
}
