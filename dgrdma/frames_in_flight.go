package dgrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
)

// outstanding are the frames of a connection that wait for acknowledgement. Their ids are counted in 32 bits, of which
// the lower half is in frames to a peer without sessions. It is guarded by the connection's mutex.
type outstanding interface {
	Track(now ack.Instant, bytes int) (id uint32)
	TrackRun(now ack.Instant, limit, bytes, most int) (n int)
	NextLost(now ack.Instant) (id uint32, ok bool)
	Resend(now ack.Instant, id uint32) (copied uint8)
	Oldest() uint32
	Next() uint32
	Limit(now ack.Instant, bytes int) ack.Limit
	AppLimited(now ack.Instant)
	PacedUntil(now ack.Instant, bytes int) ack.Instant
	InFlight() int
	Lost() int
	Bytes() int
	Marking() bool
	Marks() ack.MarkState
	Expire(now, heard ack.Instant) ack.Expiry
	Lives(at ack.Instant)
	Deadline() (at ack.Instant, armed bool)
	Timeouts() int
	Quiet() ack.Instant
	RTT() *ack.RTT
	Measured() (d time.Duration, ok bool)
	Capacity() int
	Shrink()
}

var (
	_ outstanding = (*ack.Flight)(nil)
	_ outstanding = foreign.Flight{}
)
