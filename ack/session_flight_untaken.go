package ack

import "github.com/dgrdma/dgrdma/frame"

// Untaken notes that a copy of a frame arrived, and that the peer had not begun the session then. If it is the last one that left,
// the frame stays on the wire until TakeUntaken, unless the timer takes it for lost before.
func (f *Flight) Untaken(id uint32, copied uint8) {
	if s := f.frame(id); s.state == slotSent && s.id == id && copied == s.told() && copied < frame.MostCopies {
		s.untaken = true
	}
}

// TakeUntaken has these frames sent again, because the peer has the session now. To the controller each of them is still the
// transmission that it knows of: the network lost nothing.
func (f *Flight) TakeUntaken() {
	for id, n := f.wire.head, f.wire.n; n > 0; n-- {
		s := f.frame(id)
		id = s.next
		if s.untaken {
			f.remove(&f.wire, s.id)
			s.state, s.probe = slotLost, true
			f.push(&f.lost, s.id)
		}
	}
}
