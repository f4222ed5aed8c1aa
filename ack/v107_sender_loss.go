package ack

import "github.com/dgrdma/dgrdma/frame"

// findLost declares frames lost that others have overtaken by more than the network reorders.
func (s *Sender) findLost(now, heard Instant) {
	if !s.loseOvertaken(now, heard) {
		return
	}
	if s.losses++; s.losses == reorderKeeps {
		s.reorder, s.losses = max(s.reorder/2, reorderThreshold), 0
		s.loseOvertaken(now, heard)
	}
}

func (s *Sender) loseOvertaken(now, heard Instant) (some bool) {
	for s.sent.n > 0 {
		q := s.sent.head
		sl := s.slot(q)
		behind := int32(s.reached - sl.order)
		if behind <= 0 || uint32(behind) < s.reorder && heard.Sub(sl.sentAt) < s.rtt.overdue() {
			break
		}
		s.lose(now, q, false)
		some = true
	}
	return some
}

func (s *Sender) lose(now Instant, q frame.Seq, timeout bool) {
	sl := s.slot(q)
	s.remove(&s.sent, q)
	s.flight -= int(sl.bytes)
	sl.state = slotLost
	s.push(&s.lost, q)
	s.ctl.OnLost(now, sl.order, int(sl.bytes), timeout)
}
