package congestion

import (
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// Limited bounds the rate at which another Controller lets frames leave. What is sent again counts, too.
type Limited struct {
	ack.Controller
	pace pacing
}

var (
	_ ack.Controller = (*Limited)(nil)
	_ ack.Resting    = (*Limited)(nil)
	_ ack.Distant    = (*Limited)(nil)
	_ ack.Inspected  = (*Limited)(nil)
	_ ack.Heeding    = (*Limited)(nil)
)

// NewLimited returns a Limited of that many bytes a second.
func NewLimited(c ack.Controller, rate int) *Limited {
	return &Limited{Controller: c, pace: pacing{rate: float64(rate), free: -ack.Instant(time.Hour), most: mostMissed}}
}

// OnSent implements [ack.Controller].
func (l *Limited) OnSent(now ack.Instant, order uint32, bytes int) {
	l.pace.sent(now, bytes)
	l.Controller.OnSent(now, order, bytes)
}

// OnAppLimited implements [ack.Controller].
func (l *Limited) OnAppLimited(now ack.Instant) {
	l.pace.idle()
	l.Controller.OnAppLimited(now)
}

// NextSend implements [ack.Controller].
func (l *Limited) NextSend(now ack.Instant, bytes int) ack.Instant {
	return max(l.Controller.NextSend(now, bytes), l.pace.next(now))
}

// Rest implements [ack.Resting].
func (l *Limited) Rest() {
	if r, ok := l.Controller.(ack.Resting); ok {
		r.Rest()
	}
}

// IsFar implements [ack.Distant].
func (l *Limited) IsFar() bool {
	d, ok := l.Controller.(ack.Distant)
	return ok && d.IsFar()
}

// HeedsMarks implements [ack.Heeding].
func (l *Limited) HeedsMarks() bool {
	h, ok := l.Controller.(ack.Heeding)
	return ok && h.HeedsMarks()
}

// OnMarked implements [ack.Heeding].
func (l *Limited) OnMarked(now ack.Instant, frames int) {
	if h, ok := l.Controller.(ack.Heeding); ok {
		h.OnMarked(now, frames)
	}
}

// Inspect implements [ack.Inspected].
func (l *Limited) Inspect() (s ack.ControllerState) {
	if c, ok := l.Controller.(ack.Inspected); ok {
		s = c.Inspect()
	}
	if s.PacingRate == 0 || s.PacingRate > l.pace.rate {
		s.PacingRate = l.pace.rate
	}
	return s
}

func (l *Limited) String() string { return fmt.Sprintf("%v limit=%.0f", l.Controller, l.pace.rate) }
