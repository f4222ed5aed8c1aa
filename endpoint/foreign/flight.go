package foreign

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// Flight are the frames that wait for acknowledgement. Their ids are counted in 32 bits here, of which
// the lower half is in the frames.
type Flight struct{ *ack.Sender }

// Track notes a frame that leaves for the first time, and returns its id.
func (f Flight) Track(now ack.Instant, bytes int) (id uint32) {
	return uint32(f.Wide(f.Sender.Track(now, bytes)))
}

// TrackRun notes frames of that many bytes that leave for the first time, no more than most, as long as one of limit bytes may leave. It returns how
// many. Their ids are in a row where the peer has no table.
func (f Flight) TrackRun(now ack.Instant, limit, bytes, most int) (n int) {
	for ; n < most && f.Limit(now, limit) == ack.Open; n++ {
		f.Sender.Track(now, bytes)
	}
	return n
}

// NextLost returns the next frame that is to be sent again.
func (f Flight) NextLost(now ack.Instant) (id uint32, ok bool) {
	q, ok := f.Sender.NextLost(now)
	return uint32(f.Wide(q)), ok
}

// Resend notes a frame that leaves again. A peer without sessions is not told which copy a frame is, only Sender.Head that it is one.
func (f Flight) Resend(now ack.Instant, id uint32) (copied uint8) {
	f.Sender.Resend(now, frame.Seq(id))
	return 1
}

// Oldest returns the oldest id that waits.
func (f Flight) Oldest() uint32 { return uint32(f.Wide(f.Sender.Oldest())) }

// Next returns the id that the next new frame will have.
func (f Flight) Next() uint32 { return uint32(f.NextWide()) }
