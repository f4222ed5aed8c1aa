package congestion

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

const (
	// pacingSlack is how much may leave at once, as the time that it takes at the rate: a timer of a Go program is late by a tenth of it, and
	// a thousand wake-ups a second are no load.
	pacingSlack = time.Millisecond
	// mostMissed is how much more may leave at once where a sender got its processor late, as the time that it waited for it. Without, a busy machine sends a
	// millisecond of data whenever it comes to it, that is what it measures, and it sends still less. Arbitrary: some time slices.
	mostMissed = 20 * time.Millisecond
)

// pacing spreads what is sent.
type pacing struct {
	rate   float64       // bytes per second
	free   ack.Instant   // when all that left has left at that rate
	held   bool          // a frame waits for that
	missed time.Duration // how late it left then
	most   time.Duration // of missed
}

// quantum is how many bytes may leave at once.
func (p *pacing) quantum() float64 { return p.rate * pacingSlack.Seconds() }

func (p *pacing) sent(now ack.Instant, bytes int) {
	d := time.Duration(float64(bytes) / max(p.rate, 1) * float64(time.Second))
	p.free = max(p.free, now.Add(-pacingSlack-p.missed)).Add(d)
}

// next returns when a frame may leave that waits: later ones wait for some company when they have to wait.
func (p *pacing) next(now ack.Instant) ack.Instant {
	if p.free > now {
		p.held, p.missed = true, 0
		return p.free
	}
	if p.held {
		p.held, p.missed = false, min(now.Sub(p.free), p.most)
	}
	return now
}

// idle notes that no frame waits.
func (p *pacing) idle() { p.held, p.missed = false, 0 }
