package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/bench"
)

// latencies are times in microseconds, as JSON has them: left out where nothing was
// measured.
type latencies struct {
	Min       float64       `json:"min_us,omitempty"`
	P50       float64       `json:"p50_us,omitempty"`
	P90       float64       `json:"p90_us,omitempty"`
	P99       float64       `json:"p99_us,omitempty"`
	P999      float64       `json:"p99_9_us,omitempty"`
	Max       float64       `json:"max_us,omitempty"`
	Histogram []latencyStep `json:"histogram,omitempty"`
}

// latencyStep is how many took as long, and longer than the step before.
type latencyStep struct {
	UpTo  float64 `json:"up_to_us"`
	Count uint64  `json:"count"`
}

const histogramMeans = "show how times are distributed"

func latenciesOf(h *bench.Histogram, withHistogram bool) latencies {
	t := h.Times()
	l := latencies{
		Min: microseconds(t.Min), P50: microseconds(t.P50), P90: microseconds(t.P90), P99: microseconds(t.P99),
		P999: microseconds(t.P999), Max: microseconds(t.Most),
	}
	if withHistogram {
		for _, s := range h.Steps() {
			l.Histogram = append(l.Histogram, latencyStep{microseconds(s.UpTo), s.N})
		}
	}
	return l
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// measured reports whether there are any.
func (l *latencies) measured() bool { return l.Max > 0 }

func (l *latencies) String() string {
	return fmt.Sprintf("min %.1f us, p50 %.1f us, p90 %.1f us, p99 %.1f us, p99.9 %.1f us, max %.1f us", l.Min, l.P50, l.P90, l.P99, l.P999, l.Max)
}

// describe writes them, and of what they are, below what else a load had.
func (l *latencies) describe(w io.Writer, of string) {
	said := "not measured"
	if l.measured() {
		said = l.String()
	}
	fmt.Fprintf(w, "%-12s %s\n", of, said)
	l.draw(w)
}

// latencyBar is how many columns a step takes that has all.
const latencyBar = 50

// draw writes a line for each step of the histogram.
func (l *latencies) draw(w io.Writer) {
	total := uint64(0)
	for _, s := range l.Histogram {
		total += s.Count
	}
	for _, s := range l.Histogram {
		share := float64(s.Count) / float64(total)
		line := fmt.Sprintf("%12s us  %10d  %6.2f %%  %s", "<= "+upTo(s.UpTo), s.Count, 100*share, strings.Repeat("#", int(share*latencyBar+0.5)))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// upTo is a bound of a step, which has two digits.
func upTo(us float64) string {
	if us < 10 {
		return fmt.Sprintf("%.2g", us)
	}
	return fmt.Sprintf("%.0f", us)
}
