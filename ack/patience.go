package ack

import (
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

const (
	// trialEvery is how many times frames are lost, be it one or a whole burst, until one is left
	// alone, to see whether it comes by itself. After each that does not it is twice as many, and the
	// next one is left alone for twice as long: so trials cost who waits for every frame a hundredth of
	// what losses do.
	trialEvery = 64
	// mostTrials is how often that is doubled. A frame is left alone for mostTrial, or four times as
	// long as others, at most. Arbitrary: links between machines of one room reorder by less.
	mostTrials = 6
	mostTrial  = 10 * time.Millisecond
	// trialsTell is how many frames in a row have to come by themselves. One may have come in time,
	// and only its acknowledgement was lost.
	trialsTell = 6
	// copyGains is how many times as long a frame has to take as a copy of it would, when the
	// window gets full meanwhile, for the copy to leave. Chosen: with more, small windows stand still.
	copyGains = 2
	// crowdTells is how often more so than not a window has to seem too small. Arbitrary.
	crowdTells = 32
)

// patience is how long frames are waited for that later ones have overtaken, where they come late
// without being lost: a path of several links, which frames take in turn, has as many round trips,
// and the estimate of the round trip is that of the shortest, as only the latest frame is a measure
// (RFC 8985 section 6.2 widens its window when copies were in vain). Which copy of a frame arrived
// nobody tells, so that it is learnt from frames that are left alone.
type patience struct {
	most time.Duration // how much longer than others late frames take, with a quarter of allowance; 0: none come

	held  frame.Seq // is left alone, the oldest on the wire
	until Instant   // 0: none is
	lost  int       // how many times some were, since the last one was left alone
	vain  uint8     // how often in a row it did not come
	came  uint8     // how often it did

	crowds  int8 // how often it seemed so, less how often not
	crowded bool // while a late frame is waited for the window gets full

	// Since most was judged.
	late, gone int           // frames that came late, and that did not come
	longest    time.Duration // how much later than others these came
}

// begin leaves a frame alone that would be lost after that time, if it is time for a trial, and
// no longer than most.
func (p *patience) begin(now Instant, q frame.Seq, sentAt Instant, overdue, most time.Duration) bool {
	until := sentAt.Add(min(overdue<<(1+p.vain), max(mostTrial, 4*overdue), most))
	if p.until != 0 || p.lost < trialEvery<<p.vain || until <= now {
		return false
	}
	p.held, p.until = q, until
	return true
}

// end notes that the frame that was left alone did not come.
func (p *patience) end() {
	p.until, p.lost, p.came = 0, 0, 0
	p.vain = min(p.vain+1, mostTrials)
	if p.most == 0 {
		p.longest = 0
	}
}

// holds reports whether that frame is left alone.
func (p *patience) holds(q frame.Seq) bool { return p.until != 0 && p.held == q }

// arrived notes that it did, so much later than others. The next one follows at once.
func (p *patience) arrived(later time.Duration) {
	p.until = 0
	p.longest = max(p.longest, later, 1)
	if p.came++; p.came < trialsTell {
		return
	}
	p.most = max(p.most, p.longest+p.longest/4)
	p.lost, p.vain, p.came = 0, 0, 0
	p.late, p.gone, p.longest = 0, 0, 0
}

// notes counts a frame that came by itself, when it would have been lost otherwise.
func (p *patience) notes(later time.Duration) {
	if p.most > 0 {
		p.late++
		p.longest = max(p.longest, later)
	}
}

// missed notes that some frames did not come in that time.
func (p *patience) missed() { p.lost = min(p.lost+1, trialEvery<<mostTrials) }

// miss notes one of them. Where fewer come late than are lost, that time is of no use; else it is as
// long as they take.
func (p *patience) miss() {
	if p.most == 0 {
		return
	}
	if p.gone++; p.gone < trialEvery {
		return
	}
	if p.late < p.gone {
		p.most /= 2
	} else {
		p.most = min(p.most, p.longest+p.longest/4)
	}
	p.late, p.gone, p.longest = 0, 0, 0
}

// patient reports whether late frames are waited for.
func (s *Sender) patient() bool {
	p := &s.patience
	return p.most > 0 && !(p.crowded && s.lateOverdue() > copyGains*(s.rtt.overdue()+s.rtt.smoothed))
}

// overdue is how long after it was sent a frame is lost that others have overtaken.
func (s *Sender) overdue() time.Duration {
	if s.patient() {
		return max(s.rtt.overdue(), s.lateOverdue())
	}
	return s.rtt.overdue()
}

// lateOverdue is how long after it was sent a late frame is lost.
func (s *Sender) lateOverdue() time.Duration { return s.rtt.recent() + s.patience.most }

// crowd looks whether the window has room for what is sent while a late frame is waited for. Half of
// that is not late. A burst does not tell.
func (s *Sender) crowd(oldest *slot, age time.Duration) {
	p := &s.patience
	if p.most == 0 || age < s.rtt.overdue() {
		return
	}
	if float64(s.order-oldest.order)*float64(s.lateOverdue()) > 2*float64(s.cfg.Window)*float64(age) {
		p.crowds = min(p.crowds+1, crowdTells)
	} else {
		p.crowds = max(p.crowds-1, 0)
	}
	switch p.crowds {
	case crowdTells:
		p.crowded = true
	case 0:
		p.crowded = false
	}
}

// overtaken returns the oldest frame that is not left alone, and how many are not.
func (s *Sender) overtaken() (q frame.Seq, n int) {
	q, n = s.sent.head, s.sent.n
	if n > 0 && s.patience.until != 0 {
		q, n = s.slot(q).next, n-1
	}
	return q, n
}

// loseOvertaken reports whether frames were overtaken by more than the network reorders.
func (s *Sender) loseOvertaken(now, heard Instant) (some bool) {
	p := &s.patience
	if p.until != 0 && heard >= p.until {
		p.end()
	}
	q, n := s.overtaken()
	if n > 0 {
		s.crowd(s.slot(q), heard.Sub(s.slot(q).sentAt))
	}
	missed := false
	for ; n > 0; n-- {
		sl := s.slot(q)
		next := sl.next
		behind, age := int32(s.reached-sl.order), heard.Sub(sl.sentAt)
		overdue := s.overdue()
		if behind <= 0 || (uint32(behind) < s.reorder || s.patient()) && age < overdue {
			break
		}
		if sl.since == 0 && !s.cfg.Cumulative && p.begin(heard, q, sl.sentAt, overdue, s.cfg.MaxRTO) {
			q = next
			continue
		}
		if age >= s.lateOverdue() {
			p.miss()
			missed = true
		}
		s.lose(now, q, false)
		some = true
		q = next
	}
	if missed {
		p.missed()
	}
	return some
}
