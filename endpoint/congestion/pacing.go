package congestion

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// pacingSlack is how much may leave at once, as the time that it takes at the rate: a timer of a Go program is late by a tenth of it, and
// a thousand wake-ups a second are no load.
const pacingSlack = time.Millisecond

// pacing spreads what is sent.
type pacing struct {
	rate float64     // bytes per second
	free ack.Instant // when all that left has left at that rate
}

// quantum is how many bytes may leave at once.
func (p *pacing) quantum() float64 { return p.rate * pacingSlack.Seconds() }

func (p *pacing) sent(now ack.Instant, bytes int) {
	d := time.Duration(float64(bytes) / max(p.rate, 1) * float64(time.Second))
	p.free = max(p.free, now.Add(-pacingSlack)).Add(d)
}

// next returns when a frame may leave: it waits for some company when it has to wait.
func (p *pacing) next(now ack.Instant) ack.Instant {
	if p.free <= now {
		return now
	}
	return p.free
}
