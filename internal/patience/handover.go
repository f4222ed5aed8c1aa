package patience

import (
	"sync/atomic"
	"time"
)

const (
	// MaxScore is the highest score. It bounds how long what paid once is tried though it pays no more.
	MaxScore = 8
	// Pause is for how many waits callers do not poll after it did not pay.
	Pause = 64
)

// Handover decides whether a goroutine that waits polls: it receives for all, in place of the receive goroutine.
// What counts is how soon it polls again: while it stays away no goroutine receives.
type Handover struct {
	Pauses atomic.Int32 // waits left without polling
	Score  int          // how often polling paid of late; guarded by the receive lock
}

// Init prepares it.
func (h *Handover) Init() { h.Score = MaxScore / 2 }

// MayPoll reports whether the caller polls in this wait, and counts the wait. Any goroutine may call it.
func (h *Handover) MayPoll() bool {
	if h.Pauses.Load() <= 0 {
		return true
	}
	h.Pauses.Add(-1)
	return false
}

// Record counts the absence of a caller before it polled again. In an absence as long as long the receive goroutine
// had better received. The caller holds the receive lock.
func (h *Handover) Record(absence, long time.Duration) {
	if absence < long {
		h.Score = min(h.Score+1, MaxScore)
	} else if h.Score -= 2; h.Score < 0 {
		h.Score = MaxScore / 2
		h.Pauses.Store(Pause)
	}
}
