package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/inspect"
)

// mostSlow is how many transactions are drawn when there are too many to draw all.
const mostSlow = 24

// waterfall is transactions, one below the other: all of them over time, or the
// slowest ones from their own begin on.
type waterfall struct {
	Empty, Title, Note string
	X                  []Tick
	Rows               []row
	Tails, Open        bool
}

type row struct {
	Label, Text       string
	Class             string
	Left, Width, Tail float64 // in percent: until the last message, and until acknowledged
	Missing           string
}

func drawWaterfall(f *inspect.Flow) (w waterfall) {
	shown := slices.Clone(f.Waterfall)
	if len(shown) == 0 {
		w.Empty = "No transaction was seen from its begin."
		return w
	}
	if f.Hidden > 0 {
		w.Empty = "Frames lie behind the snap length: when transactions completed is not known."
		return w
	}
	from, to := ends(f)
	w.Title = "Transactions"
	w.Note = "Each by its id, in the order of their begin."
	all := f.Transactions.Begun - f.Transactions.CutOff
	slow := all > len(shown)
	if slow {
		slices.SortStableFunc(shown, func(a, b inspect.Transaction) int { return cmp.Compare(b.Took(), a.Took()) })
		shown = shown[:min(mostSlow, len(shown))]
		from, to = 0, time.Microsecond
		for _, t := range shown {
			to = max(to, t.Took())
		}
		w.Title = "Slowest transactions"
		w.Note = fmt.Sprintf("Each by its id, from its own begin on: %d of %s, those that took longest.",
			len(shown), inspect.Grouped(int64(all)))
	}
	w.X = timeTicks(to-from, 6)
	for _, t := range shown {
		start := from
		if slow {
			start = t.Begin
		}
		r := newRow(&t, f.First, start, to-from)
		w.Tails = w.Tails || r.Tail > 0
		w.Open = w.Open || !t.Complete
		w.Rows = append(w.Rows, r)
	}
	return w
}

func newRow(t *inspect.Transaction, first, start, length time.Duration) row {
	share := func(d time.Duration) float64 { return percent(float64(max(d, 0)), float64(length)) }
	r := row{
		Label: fmt.Sprint(t.ID), Class: "data", Left: share(t.Begin - start), Width: share(t.End - t.Begin),
		Text: fmt.Sprintf("transaction %d, %s in %d of %d messages: begins at %s (record %d), last message after %s",
			t.ID, inspect.Size(float64(t.Bytes)), t.Messages, t.Of, inspect.Span(t.Begin-first), t.Record, inspect.Span(t.End-t.Begin)),
	}
	if !t.Complete {
		r.Class = "resent"
		r.Missing = fmt.Sprintf("%d of %d", t.Messages, t.Of)
	} else if t.Acked > 0 {
		r.Tail = share(t.Acked - t.End)
		r.Text += fmt.Sprintf(", acknowledged after %s", inspect.Span(max(t.Acked-t.Begin, 0)))
	}
	return r
}
