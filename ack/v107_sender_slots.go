package ack

import (
	"math"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

type slotState uint8

const (
	slotFree slotState = iota
	slotSent
	slotLost
)

// slot is what is known of one id in flight. Slots form two lists, of the
// frames on the wire in the order they were last sent, and of the lost ones.
type slot struct {
	sentAt     Instant
	order      uint32 // counts every sending of a tracked frame
	since      uint32 // microseconds from the first sending to this one; 0: this is the first
	bytes      uint16
	prev, next frame.Seq
	state      slotState
}

// again notes that the frame is sent again.
func (sl *slot) again(now Instant) {
	// Who read the clock first may have the lock last.
	d := max(now.Sub(sl.sentAt), 0)/time.Microsecond + 1
	sl.since = uint32(min(time.Duration(sl.since)+d, math.MaxUint32))
}

// age returns how long ago the frame was sent for the first time.
func (sl *slot) age(now Instant) time.Duration {
	return now.Sub(sl.sentAt) + time.Duration(sl.since)*time.Microsecond
}

type slotList struct {
	head, tail frame.Seq
	n          int
}

func (s *Sender) slot(q frame.Seq) *slot { return &s.slots[int(q)&(len(s.slots)-1)] }

// Capacity returns the number of slots: an owner may keep things by id modulo
// it, as long as it follows its growth.
func (s *Sender) Capacity() int { return len(s.slots) }

// Shrink gives the slots back. Nothing may be in flight.
func (s *Sender) Shrink() { s.slots = nil }

// grow is called for each id that finds no slot, so that one step is enough.
func (s *Sender) grow() {
	old := s.slots
	s.slots = make([]slot, max(16, 2*len(old)))
	for q := s.una; q != s.next && len(old) > 0; q++ {
		*s.slot(q) = old[int(q)&(len(old)-1)]
	}
}

func (s *Sender) push(l *slotList, q frame.Seq) {
	if l.n == 0 {
		l.head = q
	} else {
		s.slot(l.tail).next = q
		s.slot(q).prev = l.tail
	}
	l.tail = q
	l.n++
}

func (s *Sender) remove(l *slotList, q frame.Seq) {
	sl := s.slot(q)
	if q == l.head {
		l.head = sl.next
	} else {
		s.slot(sl.prev).next = sl.next
	}
	if q == l.tail {
		l.tail = sl.prev
	} else {
		s.slot(sl.next).prev = sl.prev
	}
	l.n--
}
