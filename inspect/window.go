package inspect

import "time"

// The largest number of frames in flight counts as the window under three conditions. It was reached at least windowSeen times. The frames in
// flight at those times are at least a windowShare of all. And each time so many were in flight again soon after some had been acknowledged:
// within windowRefill of the time until the next ones were. A sender that has a pace of its own fills the window only by then.
const (
	windowSeen   = 5
	windowShare  = 0.5
	windowRefill = 0.15
)

// window follows how many frames of a flow wait for acknowledgement.
type window struct {
	most, atMost int // in flight, and how often so many were

	// Since so many were for the first time: when the last acknowledgement came that found so many, how long it took after such
	// until so many were again, and until the next acknowledgement came.
	freed           bool
	freedAt         time.Duration
	refills         int
	refill, between time.Duration
}

// sent notes that a frame was, so that n are in flight.
func (w *window) sent(at time.Duration, n int) {
	switch {
	case n > w.most:
		*w = window{most: n, atMost: 1}
	case n == w.most:
		w.atMost++
		if w.freed {
			w.freed = false
			w.refills++
			w.refill += max(at-w.freedAt, 0)
		}
	}
}

// acknowledged notes that some of n frames in flight were.
func (w *window) acknowledged(at time.Duration, n int) {
	if n != w.most {
		return
	}
	if w.refills > 0 {
		w.between += max(at-w.freedAt, 0)
	}
	w.freed, w.freedAt = true, at
}

// holds reports whether it seems to hold a flow of so many frames back.
func (w *window) holds(firsts int) bool {
	return w.most >= 2 && w.refills >= windowSeen && float64(w.atMost*w.most) >= windowShare*float64(firsts) && float64(w.refill) <= windowRefill*float64(w.between)
}

func (f *flow) aboutWindow(c *findings, from, to string, firsts int) {
	ack := f.once.quantile(0.5)
	if f.hidden > 0 || !f.window.holds(firsts) || ack < time.Microsecond {
		return
	}
	frames := float64(f.window.most) / ack.Seconds()
	rate := Grouped(int64(frames)) + " frames"
	if f.dataFirst >= int64(firsts) { // else they give buffers back
		rate = Size(frames * float64(f.dataFirst) / float64(firsts))
	}
	c.add(Note, "window", f.window.atMost, nil, "A window of %d seems to hold throughput from %s to %s at about %s/s: never more frames were in flight, so many were %s, and the next ones left as soon as some were acknowledged, which takes %s (median). "+
		"A program that waits for its own transactions looks the same.", f.window.most, from, to, rate, times(f.window.atMost), Span(ack))
}
