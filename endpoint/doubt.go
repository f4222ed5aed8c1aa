package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// doubt is a frame of our own kind that was refused because its id was known for
// another frame, or too old. If all ids between went by unseen, its sender sends it
// again after a while; one that is forged comes once, and its sender has to guess
// well to try again (attack A12, SECURITY.md).
type doubt struct {
	seq frame.Seq
	tag uint16
	at  ack.Instant
	set bool
}

const (
	// doubtLeast is how long after it was refused such a frame is believed: less than
	// our kind waits before it sends again.
	doubtLeast = ack.Instant(4 * time.Millisecond)
	// doubtMost is how long it is waited for: more than that.
	doubtMost = ack.Instant(3 * time.Second)
)

// believes reports whether the frame was refused before and is not this time.
func (d *doubt) believes(now ack.Instant, seq frame.Seq, tag uint16) bool {
	switch age := now - d.at; {
	case !d.set || age > doubtMost:
		*d = doubt{seq, tag, now, true}
	case d.seq == seq && d.tag == tag && age >= doubtLeast:
		*d = doubt{}
		return true
	}
	return false
}
