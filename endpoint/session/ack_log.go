package session

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// AckLog has what ACKs say, of all peers of an endpoint, from when they arrive until the end of the batch: its memory is bounded by a
// batch, however many peers there are. It belongs to the holder of the receive lock.
type AckLog struct {
	list   []loggedAck
	ranges []frame.Range
	at     ack.Acknowledgement // the one at hand: on the stack it would escape
}

// loggedAck is what one ACK says.
type loggedAck struct {
	ack.Acknowledgement     // without its ranges
	from, to            int // these
	next                int // of the same peer, counted from 1; 0: none
}

// acksOf are the ACKs of one peer, counted from 1. The zero value has none.
type acksOf struct{ first, last int }

// Clear forgets all, at the end of a batch.
func (l *AckLog) Clear() { l.list, l.ranges = l.list[:0], l.ranges[:0] }

// add notes what an ACK of a peer says.
func (l *AckLog) add(of *acksOf, f *frame.SessionFrame) {
	a, _ := f.SessionAck()
	delay := time.Duration(a.Delay) * time.Microsecond
	if a.Delay == frame.LongestDelay {
		delay = time.Hour
	}
	from := len(l.ranges)
	for i := range a.Ranges.Len() {
		l.ranges = append(l.ranges, a.Ranges.At(i))
	}
	echo := ack.Echo{ID: f.ID, Copy: a.Copy, Again: a.Again, Delay: delay}
	l.list = append(l.list, loggedAck{
		Acknowledgement: ack.Acknowledgement{UpTo: f.Ack, HasEcho: true, Echo: echo, Marks: a.Marks}, from: from, to: len(l.ranges),
	})
	n := len(l.list)
	if of.first == 0 {
		of.first = n
	} else {
		l.list[of.last-1].next = n
	}
	of.last = n
}

// take returns the first ACK of a peer, and has it no more; nil: there is none. What it returned before is not valid after that.
func (l *AckLog) take(of *acksOf) *ack.Acknowledgement {
	if of.first == 0 {
		return nil
	}
	x := &l.list[of.first-1]
	of.first = x.next
	l.at = x.Acknowledgement
	l.at.Ranges = l.ranges[x.from:x.to]
	return &l.at
}

// cumulative returns an acknowledgement that was piggybacked on data.
func (l *AckLog) cumulative(upTo uint32) *ack.Acknowledgement {
	l.at = ack.Acknowledgement{UpTo: upTo}
	return &l.at
}
