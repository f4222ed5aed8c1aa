package ack

import "time"

// findLost declares frames lost that others have overtaken by more than the network reorders.
func (f *Flight) findLost(now, heard Instant) {
	some := false
	for f.wire.n > 0 {
		s := f.frame(f.wire.head)
		after := int32(f.reached - s.order)
		if after <= 0 || (f.late > 0 || after < reorderThreshold) && heard.Sub(s.last) < f.overdue() {
			break
		}
		f.lose(now, s, false)
		some = true
	}
	if !some {
		return
	}
	f.held = max(f.held-1, 0)
	if f.late == 0 {
		return
	}
	if f.losses++; f.losses == reorderKeeps {
		if f.late, f.losses = f.late/2, 0; f.late < Granularity/8 {
			f.late = 0
		}
	}
}

// overdue is how long after it left a frame is lost that others have overtaken.
func (f *Flight) overdue() time.Duration {
	return max(f.rtt.overdue(), f.rtt.recent()+f.late)
}

func (f *Flight) lose(now Instant, s *flightFrame, timeout bool) {
	f.remove(&f.wire, s.id)
	f.bytes -= int(s.bytes)
	s.state, s.probe, s.untaken = slotLost, timeout, false
	f.push(&f.lost, s.id)
	f.ctl.OnLost(now, s.order, int(s.bytes), timeout)
}
