package page

import (
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/inspect"
)

// drawing is a flow with its pictures.
type drawing struct {
	*inspect.Flow
	Sequence   sequence
	InFlight   chart
	Throughput chart
	AckTime    chart
	TxnTime    chart
	Waterfall  waterfall
}

// chart is a picture with two axes. Empty says why there is none.
type chart struct {
	Empty   string
	X, Y    []Tick
	Areas   []area
	Columns []column // for hovering
	Note    string
}

// area is a filled shape.
type area struct{ Class, Path string }

// column is a piece of a picture that explains itself.
type column struct {
	X, Width int
	Text     string
}

// sequence is frame ids over time.
type sequence struct {
	chart
	Frames, Acks string // paths
	Marks        []mark
	Kinds        []kind
}

type mark struct {
	Class, Text string
	X, Y        float64 // in percent
}

// kind is a line of the legend.
type kind struct {
	Class, Text string
	Count       int
}

func draw(f *inspect.Flow) drawing {
	return drawing{
		Flow: f, Sequence: drawSequence(f), InFlight: drawInFlight(f), Throughput: drawThroughput(f),
		AckTime:   drawHistogram([]inspect.Histogram{f.AckTime, f.AckTimeAgain}, []string{"data", "resent"}, "frames"),
		TxnTime:   drawHistogram([]inspect.Histogram{f.Transactions.Time}, []string{"data"}, "transactions"),
		Waterfall: drawWaterfall(f),
	}
}

// ends returns the time that the pictures of a flow show.
func ends(f *inspect.Flow) (from, to time.Duration) {
	to = f.Last
	if n := len(f.AckPoints); n > 0 {
		to = max(to, f.AckPoints[n-1].At)
	}
	return f.First, max(to, f.First+time.Microsecond)
}

var markTexts = map[string]string{
	inspect.MarkResent: "sent again", inspect.MarkDuplicate: "twice at once", inspect.MarkGap: "never seen",
	inspect.MarkLate: "came late", inspect.MarkRestart: "sender began anew",
}

func drawSequence(f *inspect.Flow) (s sequence) {
	from, to := ends(f)
	low, high := int64(0), int64(0)
	for _, points := range [][]inspect.Point{f.Points, f.AckPoints} {
		for _, p := range points {
			low, high = min(low, p.Height), max(high, p.Height)
		}
	}
	s.X = timeTicks(to-from, 8)
	top, ticks := wholeAxis(float64(high - low))
	s.Y = ticks
	x, y := scale{float64(from), float64(to - from)}, scale{float64(low), top}

	var frames, acks path
	for _, p := range f.Points {
		frames.to('M', x.at(float64(p.At)), full-y.at(float64(p.Height)))
		frames.add("h0")
	}
	last := -1
	for _, p := range f.AckPoints {
		px, py := x.at(float64(p.At)), full-y.at(float64(p.Height))
		if last < 0 {
			acks.to('M', px, py)
		} else {
			acks.to('L', px, last)
			acks.to('L', px, py)
		}
		last = py
	}
	s.Frames, s.Acks = frames.String(), acks.String()
	counts := map[string]int{
		inspect.MarkResent: f.Resent, inspect.MarkDuplicate: f.Duplicates, inspect.MarkGap: f.Missing, inspect.MarkLate: f.Late,
		inspect.MarkRestart: len(f.Restarts),
	}
	for _, m := range f.Marks {
		at := inspect.Span(m.At - from)
		text := fmt.Sprintf("frame %d %s at %s, record %d", m.ID, markTexts[m.Kind], at, m.Record)
		switch {
		case m.Kind == inspect.MarkGap:
			text = fmt.Sprintf("frame %d never seen; passed over at %s by record %d", m.ID, at, m.Record)
		case m.Kind == inspect.MarkRestart:
			text = fmt.Sprintf("sender began anew at %s, record %d", at, m.Record)
		case m.Sent > 0:
			text = fmt.Sprintf("frame %d sent for the %s time at %s, record %d", m.ID, ordinal(m.Sent), at, m.Record)
		}
		s.Marks = append(s.Marks, mark{
			Class: m.Kind, Text: text,
			X: float64(x.at(float64(m.At))) / 100, Y: float64(full-y.at(float64(m.Height))) / 100,
		})
	}
	for _, k := range []string{inspect.MarkResent, inspect.MarkDuplicate, inspect.MarkGap, inspect.MarkLate, inspect.MarkRestart} {
		if counts[k] > 0 {
			s.Kinds = append(s.Kinds, kind{k, markTexts[k], counts[k]})
		}
	}
	if f.First > 0 {
		s.Note = fmt.Sprintf("Time runs from the first frame of the flow on, %s after the capture begins. ", inspect.Span(f.First))
	}
	if f.Every > 1 {
		s.Note += fmt.Sprintf("One of %d frames is drawn.", f.Every)
	}
	return s
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}
