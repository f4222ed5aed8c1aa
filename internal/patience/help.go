package patience

import (
	"sync/atomic"
	"time"
)

const (
	// MostLuck is how often help can have paid, of late.
	MostLuck = 8
	// Pause is for how many waits there is no help after it did not pay.
	Pause = 64
)

// Help says whether a goroutine that waits is to receive for all, in place of the one whose job that is. What
// counts is how soon it comes back: as long as it stays away nobody receives.
type Help struct {
	Pauses atomic.Int32 // waits left without help
	Luck   int          // how often help paid, of late; of who has the turn to receive
}

// Init prepares it.
func (h *Help) Init() { h.Luck = MostLuck / 2 }

// Welcome reports whether to help in a wait. Any goroutine may ask.
func (h *Help) Welcome() bool {
	if h.Pauses.Load() <= 0 {
		return true
	}
	h.Pauses.Add(-1)
	return false
}

// Judge is told, by who has the turn, after what absence a helper came back; long is one in which another
// had better received.
func (h *Help) Judge(absence, long time.Duration) {
	if absence < long {
		h.Luck = min(h.Luck+1, MostLuck)
	} else if h.Luck -= 2; h.Luck < 0 {
		h.Luck = MostLuck / 2
		h.Pauses.Store(Pause)
	}
}
