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

// Controller decides how many bytes may be in flight, and when. It is driven under the
// connection's lock: it must not block, allocate per call or read a clock.
//
// The connection calls OnSent for every transmission of a frame, first time or again, and OnAcked or
// OnLost once for each of these: a frame that is declared lost has left the network, its retransmission
// is sent anew. Transmissions are numbered in the order in which they left: by order a controller
// finds what it noted of one.
type Controller interface {
	// Window returns how many bytes may be in flight. A frame leaves
	// while fewer are; so one frame can always go, whatever is returned.
	Window() int
	// OnSent reports a frame that is put on the wire.
	OnSent(now Instant, order uint32, bytes int)
	// OnAppLimited reports that nothing waits to be sent, though more may be in flight: the rate at which
	// frames are delivered now says little of the path.
	OnAppLimited(now Instant)
	// OnAcked reports a delivered frame. rtt < 0 means no sample: the frame
	// was sent more than once (Karn's rule).
	OnAcked(now Instant, order uint32, bytes int, rtt time.Duration)
	// OnLost reports a frame taken for lost, by later acknowledgements or,
	// with timeout, because nothing was heard for a whole timeout.
	OnLost(now Instant, order uint32, bytes int, timeout bool)
	// OnSpurious reports that a frame arrived which OnLost had reported as lost.
	OnSpurious(now Instant)
	// EndBatch is called after each received batch that acknowledges something, and
	// after each timeout, when all its OnAcked and OnLost calls were made.
	EndBatch(now Instant)
	// NextSend returns when a frame of that size may leave, for pacing; a
	// moment not after now means at once.
	NextSend(now Instant, bytes int) Instant
}

// Resting is a Controller with memory for frames in flight, which it gives back when none is for long.
type Resting interface{ Rest() }

// Distant is a Controller that says whether a path is so long that it may hold more frames than the usual window.
type Distant interface{ IsFar() bool }

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

func (f *FixedWindow) OnSent(Instant, uint32, int)                 {}
func (f *FixedWindow) OnAppLimited(Instant)                        {}
func (f *FixedWindow) OnAcked(Instant, uint32, int, time.Duration) {}
func (f *FixedWindow) OnLost(Instant, uint32, int, bool)           {}
func (f *FixedWindow) OnSpurious(Instant)                          {}
func (f *FixedWindow) EndBatch(Instant)                            {}
func (f *FixedWindow) NextSend(now Instant, _ int) Instant         { return now }
