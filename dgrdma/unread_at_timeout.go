package dgrdma

import (
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// mostBehind bounds how much later a timeout is acted on because the receiver may have the
// acknowledgement without having looked at it: it may never catch up. Arbitrary: longer than 10,000 peers that answer at once take.
const mostBehind = 100 * time.Millisecond

// receiveProgress says until when the receiver has looked at all that came. What is late by a clock
// may only wait to be looked at: with 2000 peers that is 5 ms, and 4 % of all frames were sent
// again for nothing; with 10,000 it is 50 ms, and what was sent again, and asked, left a tenth of the throughput. The receiver writes it, others read since.
type receiveProgress struct {
	since atomic.Int64 // all that came before was looked at; 0: all that came
	none  bool         // the last look found nothing more
}

// looks: the receiver looks for datagrams, and waits for them if there are none.
func (a *receiveProgress) looks() {
	if a.none {
		a.sees(0)
	}
}

// finds: it found some, and will look again.
func (a *receiveProgress) finds(now ack.Instant) {
	a.none = false
	if a.since.Load() == 0 {
		a.sees(now)
	}
}

// emptied: nothing is left of what was there at that moment.
func (a *receiveProgress) emptied(now ack.Instant) {
	a.none = true
	a.sees(now)
}

func (a *receiveProgress) sees(since ack.Instant) {
	if a.since.Load() != int64(since) {
		a.since.Store(int64(since))
	}
}

// until returns it, or nearly: no more than mostBehind before now.
func (a *receiveProgress) until(now ack.Instant) ack.Instant {
	if since := ack.Instant(a.since.Load()); since != 0 {
		return min(now, max(since, now.Add(-mostBehind)))
	}
	return now
}
