package ack

import (
	"math"
	"time"
)

// Instant is a moment: the time since the endpoint was created, monotonic.
type Instant time.Duration

// Sub returns the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Add returns the moment d after t.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Controller decides how many bytes may be in flight. It is driven under the
// connection's lock: it must not block, allocate per call or read a clock.
//
// The connection calls OnSent for every frame that is put on the wire, first time
// or again, and OnAcked or OnLost once for each of these: a frame that is
// declared lost has left the network, its retransmission is sent anew.
type Controller interface {
	// Window returns how many bytes may be in flight. A frame leaves
	// while fewer are; so one frame can always go, whatever is returned.
	Window() int
	// OnSent reports a frame that is put on the wire.
	OnSent(now Instant, bytes int)
	// OnAcked reports a delivered frame. rtt < 0 means no sample: the frame
	// was sent more than once (Karn's rule).
	OnAcked(now Instant, bytes int, rtt time.Duration)
	// OnLost reports a frame taken for lost, by later acknowledgements or,
	// with timeout, because nothing was heard for a whole timeout.
	OnLost(now Instant, bytes int, timeout bool)
	// EndBatch is called after each received batch that acknowledges something, and
	// after each timeout, when all its OnAcked and OnLost calls were made.
	EndBatch(now Instant)
	// NextSend returns when a frame of that size may leave, for pacing; a
	// moment not after now means at once.
	NextSend(now Instant, bytes int) Instant
}

// FixedWindow is a Controller that never changes its mind: right for a link
// that nobody else uses, as between a host and an FPGA card.
type FixedWindow struct {
	Bytes int // 0 means no limit but the frame window
}

var _ Controller = (*FixedWindow)(nil)

func (f *FixedWindow) Window() int {
	if f.Bytes == 0 {
		return math.MaxInt32
	}
	return f.Bytes
}

func (f *FixedWindow) OnSent(Instant, int)                 {}
func (f *FixedWindow) OnAcked(Instant, int, time.Duration) {}
func (f *FixedWindow) OnLost(Instant, int, bool)           {}
func (f *FixedWindow) EndBatch(Instant)                    {}
func (f *FixedWindow) NextSend(now Instant, _ int) Instant { return now }
