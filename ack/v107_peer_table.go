package ack

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// lateCopy is how long after a frame was sent again copies of it may still
// arrive. Arbitrary: links between machines of one room reorder by less than 10
// ms, and with a place in 20 taken out for that long, a peer with 256 places can
// still be sent several thousand frames a second.
const lateCopy = 50 * time.Millisecond

// place is one of the peer's duplicate table, as far as we know it. The peer
// takes for a copy what comes under the id in a place, and for new what comes
// under any other.
type place struct {
	last frame.Seq // id with messages: it must not be used again for another frame
	// until is when no copy of last can arrive any more. A younger id in this
	// place would make such a copy look new, and old data overwrite newer data.
	until Instant
}

func (s *Sender) initTable() {
	if s.cfg.SlotTable == 0 {
		return
	}
	// In its own place, 0 looks as if it had been used (quirk D1-3); in others it
	// matches nothing.
	s.tracked = make([]place, s.cfg.SlotTable)
}

func (s *Sender) place(q frame.Seq) *place { return &s.tracked[int(q)%len(s.tracked)] }

// occupy notes that q is sent for the first time.
func (s *Sender) occupy(q frame.Seq) {
	if s.tracked != nil {
		s.place(q).last = q
	}
}

// hold keeps the place of a frame that is sent again.
func (s *Sender) hold(now Instant, q frame.Seq) {
	if s.tracked != nil {
		s.place(q).until = now.Add(lateCopy)
	}
}

// free returns the next id that the peer's table has a place for. Not ok: all
// places wait for late copies.
func (s *Sender) free(now Instant) (q frame.Seq, ok bool) {
	if q = s.next; s.tracked == nil {
		return q, true
	}
	// An id that is known leaves its place to the next lap of the table.
	for range 2 * len(s.tracked) {
		if p := s.place(q); p.last != q && p.until <= now {
			return q, true
		}
		q++
	}
	return q, false
}

// freeAt returns from when on there is a place.
func (s *Sender) freeAt(now Instant) Instant {
	if _, ok := s.free(now); ok {
		return now
	}
	at := s.tracked[0].until
	for i := range s.tracked {
		at = min(at, s.tracked[i].until)
	}
	return at
}
