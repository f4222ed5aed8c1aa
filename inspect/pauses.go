package inspect

import (
	"fmt"
	"time"
)

// A peer that is sent to and sends nothing for so long, while so many copies come, is not waiting for more to acknowledge,
// nor was one of its frames lost. Arbitrary: several timeouts of any sender.
const (
	leastPause  = time.Second
	pauseCopies = 3
)

// Pause is a time in which an endpoint sent nothing, although frames to it waited for an acknowledgement, and behind which it went on.
type Pause struct {
	Record int           `json:"record"` // the first of those frames
	At     time.Duration `json:"at_ns"`
	Length time.Duration `json:"length_ns"`
	Until  int           `json:"until_record"` // where it went on
	Frames int           `json:"frames"`       // that were sent to it in that time, copies included
}

// unheard is what was sent in vain since the receiver was heard.
type unheard struct {
	frames, copies int
	record         int // of the first
	at             time.Duration
}

// waits notes a frame with messages, which is a copy or not.
func (f *flow) waits(s *seen, again bool) {
	if f.unheard.frames == 0 {
		f.unheard = unheard{record: s.record, at: s.at}
	}
	f.unheard.frames++
	if again {
		f.unheard.copies++
	}
}

// heardOf draws the conclusion of what was sent in vain before its receiver, whose flow f is, sent s.
func (f *flow) heardOf(s *seen, anew bool) {
	if f.reverse == nil || s.ofHandshake() {
		return
	}
	u := f.reverse.unheard
	f.reverse.unheard = unheard{}
	if anew || f.frames == 1 || u.copies < pauseCopies || s.at-u.at < leastPause {
		return
	}
	f.nPauses++
	if len(f.pauses) < mostRestart {
		f.pauses = append(f.pauses, Pause{Record: u.record, At: u.at, Length: s.at - u.at, Until: s.record, Frames: u.frames})
	}
}

// aboutPauses tells of them, unless the peer acknowledges nothing anyway, or part of what it sends is not seen.
func (f *flow) aboutPauses(c *findings, from string) {
	if f.reverse == nil || f.reverse.acked == 0 || f.hidden > 0 {
		return
	}
	for _, p := range f.pauses[:min(len(f.pauses), told)] {
		more := ""
		if f.nPauses > told {
			more = fmt.Sprintf(" So it was %s in all.", times(f.nPauses))
		}
		lost := ""
		if f.gaps > 0 || f.a.losesFrames() {
			lost = ", or the capture lost its frames"
		}
		c.add(Warning, "stood still", causeWeight+f.nPauses, []int{p.Record, p.Until}, "Nothing of %s is in the capture for %s, from %s on, while %s %s sent to it; then it went on: it stood still, or the way to it or from it did%s.%s",
			from, Span(p.Length), Span(p.At), count(p.Frames, "frame"), wasWere(p.Frames), lost, more)
	}
}
