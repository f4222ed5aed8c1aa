package ack

import (
	mathbits "math/bits"
	"time"
)

// Pacer is a Controller for peers that never say what arrived: no more leaves than
// their socket buffer holds while they drain it. What is counted is what frames
// take of such a buffer.
type Pacer struct {
	buffer time.Duration // what may leave at once, as the time it takes to drain
	drain  int
	spent  Instant // when all that was sent is drained
	dry    bool    // the next frame waits until it has company
}

// NewPacer returns a controller for a peer with a socket buffer of that many bytes,
// of which it drains so many a second. Half of the buffer is left to it for a
// moment in which it does not run.
func NewPacer(buffer, drain int) *Pacer {
	return &Pacer{buffer: drainTime(buffer/2, drain), drain: drain}
}

func drainTime(bytes, drain int) time.Duration {
	return time.Duration(int64(bytes) * int64(time.Second) / int64(drain))
}

// fullFrame is what a full frame takes of a socket buffer: 2 KiB with its
// surroundings, and the description of it.
const fullFrame = 2048 + 256

// bufferBytes returns what Linux counts for a frame: allocations are powers of two,
// and 384 bytes of one are not the frame's. Smaller frames count as full ones, as the
// peer takes a frame at a time.
func bufferBytes(bytes int) int {
	return max(fullFrame, 1<<mathbits.Len(uint(bytes+384-1))+256)
}

func (p *Pacer) Window() int { return (&FixedWindow{}).Window() }

func (p *Pacer) OnSent(now Instant, _ uint32, bytes int) {
	p.spent = max(p.spent, now).Add(drainTime(bufferBytes(bytes), p.drain))
	p.dry = p.dry || p.spent.Sub(now) > p.buffer-drainTime(fullFrame, p.drain)
}

func (p *Pacer) OnAppLimited(Instant)                        {}
func (p *Pacer) OnAcked(Instant, uint32, int, time.Duration) {}
func (p *Pacer) OnLost(Instant, uint32, int, bool)           {}
func (p *Pacer) OnSpurious(Instant)                          {}
func (p *Pacer) EndBatch(Instant)                            {}

// together is how long frames wait for others when all that may leave at once has left. Arbitrary: a
// thousand wake-ups a second are no load, and no word comes much later for it.
const together = time.Millisecond

// NextSend waits for a quarter of the buffer, or that long, when all of it is used up, so that
// frames leave together.
func (p *Pacer) NextSend(now Instant, bytes int) Instant {
	room := drainTime(bufferBytes(bytes), p.drain)
	if p.dry {
		room = max(room, min(p.buffer/4, together))
	}
	at := p.spent.Add(min(room, p.buffer) - p.buffer)
	if at > now {
		return at
	}
	p.dry = false
	return now
}

var _ Controller = (*Pacer)(nil)
