package session

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// pendingAck is what is to be acknowledged to the peer.
type pendingAck struct {
	upTo   uint32 // piggybacked on each frame
	ranges []frame.Range
	echo   ack.Echo // as it was at echoAt
	echoAt ack.Instant
	marks  frame.Marks
	frames int         // that arrived since the last acknowledgement left
	is     bool        // something is to be acknowledged
	alone  bool        // it has more than upTo, so that no other frame takes it along
	at     ack.Instant // when it leaves by itself
}

// ScheduleAck has s acknowledge what r got in a batch: at once and alone where frames are missing, a frame came twice, or one with a mark, at once after each every
// frames, or if quick, and otherwise after delay.
func ScheduleAck(now ack.Instant, s *Sender, r *Receiver, delay time.Duration, every int, quick bool) {
	if r.local == 0 || r.fresh == 0 && !r.urgent {
		return
	}
	p := &s.pending
	p.upTo = r.arrived.UpTo()
	p.ranges = r.arrived.AppendRanges(p.ranges[:0])
	p.echo, p.echoAt = r.arrived.Echo(now), now
	p.marks = r.marks
	p.frames += r.fresh
	switch at := now.Add(delay); {
	case r.urgent || r.marked || len(p.ranges) > 0:
		p.is, p.alone, p.at = true, true, now
	case p.frames >= every || quick:
		p.is, p.at = true, now
	case !p.is:
		p.is, p.at = true, at
	}
	r.fresh, r.urgent, r.marked = 0, false, false
}

// AckNow has an acknowledgement leave at once, whatever came.
func (s *Sender) AckNow() { s.pending.is, s.pending.alone, s.pending.at = true, true, 0 }

// DropAck forgets what is to be acknowledged, as its session has ended.
func (s *Sender) DropAck() { s.pending.is = false }

// AckAt returns when an acknowledgement has to leave by itself, if there is one.
func (s *Sender) AckAt() (at ack.Instant, is bool) { return s.pending.at, s.pending.is }

// PutAck writes to b what is to be acknowledged, in a frame of at most that length, and returns how long it is.
func (s *Sender) PutAck(b []byte, now ack.Instant, most int) int {
	p := &s.pending
	h := s.Header(frame.ControlAck)
	h.ID = p.echo.ID
	delay := int((p.echo.Delay + now.Sub(p.echoAt)) / time.Microsecond)
	n := frame.PutSessionAckFrame(b, &h, p.echo.Again, p.echo.Copy, delay, p.fitting(most))
	n = frame.PutMarks(b, n, p.marks)
	p.is, p.alone, p.frames = false, false, 0
	return n
}

// Piggyback notes that a frame of the session takes along what is to be acknowledged, and reports whether that was all of it.
func (s *Sender) Piggyback() bool {
	p := &s.pending
	if !p.is || p.alone {
		return false
	}
	p.is, p.frames = false, 0
	return true
}

// fitting returns the ranges for which a frame of that length has room: of more the lowest, and the highest.
func (p *pendingAck) fitting(size int) []frame.Range {
	if p.marks != (frame.Marks{}) {
		size -= frame.MarksSize
	}
	most := (size - frame.LeastSessionAck) / frame.RangeSize
	if len(p.ranges) <= most {
		return p.ranges
	}
	p.ranges[most-1] = p.ranges[len(p.ranges)-1]
	return p.ranges[:most]
}
