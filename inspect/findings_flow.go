package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// longSilence is how long a peer sends nothing before findings say so: longer than any acknowledgement waits.
const longSilence = 250 * time.Millisecond

// told is how many single frames of a flow findings name.
const told = 3

// aboutLoss tells what was sent again, and what never arrived.
func (f *flow) aboutLoss(c *findings) {
	from, to := c.names(f.key)
	firsts := f.firsts
	if f.resent > 0 {
		text := ""
		if f.earlyAcks > 0 {
			text = fmt.Sprintf(" %s of them had been acknowledged before: those acknowledgements were lost or late.", Grouped(int64(f.earlyAcks)))
		}
		if f.hidden > 0 {
			text += " What lies behind the snap length is not counted."
		}
		c.add(Warning, "sent again", f.resent, []int{f.firstCopy}, "%s of %s from %s to %s %s sent again, %s in all: %s of what was sent.%s",
			Grouped(int64(f.resentIDs)), count(firsts, "frame"), from, to, wasWere(f.resentIDs), count(f.resent, "copy"), percent(f.resent, f.resent+firsts), text)
	}
	if n := f.live; n > 0 {
		c.add(Warning, "live header", n, []int{f.firstLive}, "%s from %s %s the transaction id of a later frame: OpenCPI's first C++ driver sends again "+
			"what a request says by then, and it was posted again. Receivers that compare refuse such a copy.", count(n, "copy"), from, has(n))
	}
	f.aboutWorst(c, from)
	if n := f.toEnded; n > 0 {
		c.add(Problem, "not acknowledged", n, []int{f.firstToEnded.record}, "%s from %s %s sent to a life of %s that ended, and never acknowledged; the first is frame %d.",
			count(n, "frame"), from, wasWere(n), to, f.firstToEnded.id.Seq())
	}
	if n := f.unacked - f.toEnded; f.acked > 0 && n > 0 {
		s := Warning
		if f.resent > 0 {
			s = Problem
		}
		text := ""
		if n := f.hiddenBack(); n > 0 {
			s = Note
			text = fmt.Sprintf(" %s of %s %s behind the snap length: the acknowledgements may be there.", count(n, "frame"), to, isAre(n))
		} else if f.reverse != nil && f.reverse.missing > 0 {
			text = fmt.Sprintf(" %s of %s %s missing in the capture: the acknowledgements may have been there.",
				count(f.reverse.missing, "frame"), to, isAre(f.reverse.missing))
		}
		c.add(s, "not acknowledged", n, []int{f.firstUnacked.record},
			"%s from %s %s never acknowledged by %s, which acknowledges others; the first is frame %d.%s",
			count(n, "frame"), from, wasWere(n), to, f.firstUnacked.id.Seq(), text)
	}
	if n := f.missingAcked; n > 0 {
		text, where := "", []int(nil)
		if f.firstMissingAcked.record != 0 {
			text = fmt.Sprintf(", the first is %d, before this record", f.firstMissingAcked.id.Seq())
			where = []int{f.firstMissingAcked.record}
		}
		why := "The capture itself lost frames"
		if f.cuts > 0 { // what is behind a frame whose end is not known may be one more
			why += ", or its snap length hides them"
		}
		c.add(Warning, "capture incomplete", n, where, "%s: %s acknowledges %s of %s that %s not in it%s.",
			why, to, count(n, "frame"), from, isAre(n), text)
	}
	if n := f.missing - f.missingAcked; n > 0 {
		s := Note
		if f.tx.never > 0 {
			s = Warning
		}
		c.add(s, "gap", n, []int{f.firstMissing.record}, "%s of %s %s never seen, and not acknowledged; the first is %d, before this record. "+
			"Frames that hold only acknowledgements are not repeated when they are lost.", count(n, "frame id"), from, wasWere(n), f.firstMissing.id.Seq())
	}
	if f.jumps > 0 {
		c.add(Warning, "leap", f.jumps, nil, "Frame ids of %s leap %s by more than %d: a long piece is missing in the capture.", from, times(f.jumps), maxJump)
	}
	if f.tx.never > 0 && f.cut == 0 && f.hidden == 0 {
		s := Problem
		if f.missingAcked > 0 || f.jumps > 0 || f.nRestart > 0 {
			s = Warning // for a reason that is told
		}
		t := slices.MinFunc(f.tx.unfinished.all, func(a, b Transaction) int { return cmp.Compare(a.Begin, b.Begin) })
		c.add(s, "transaction", f.tx.never, []int{t.Record}, "%s from %s to %s never completed. Of transaction %d, which begins in this record, %d of %s were seen.",
			count(f.tx.never, "transaction"), from, to, t.ID, t.Messages, count(t.Of, "message"))
	}
}

// hiddenBack is how many frames of the peer lie behind the snap length, which may acknowledge anything.
func (f *flow) hiddenBack() int {
	if f.reverse == nil {
		return 0
	}
	return f.reverse.hidden
}

// aboutWorst tells of the frames that were sent most often.
func (f *flow) aboutWorst(c *findings, from string) {
	slices.SortFunc(f.worst.all, func(a, b slot) int { return cmp.Or(cmp.Compare(b.sent, a.sent), cmp.Compare(a.record, b.record)) })
	for _, s := range f.worst.all[:min(told, len(f.worst.all))] {
		if s.sent < 3 && f.resentIDs > told {
			break // copies are told in sum
		}
		head := fmt.Sprintf("Frame %d of %s was sent %s within %s", s.id.Seq(), from, times(int(s.sent)), elapsed(s.firstAt, s.lastAt))
		records := []int{s.record, s.last}
		switch {
		case s.given:
			c.add(Warning, "frame", 0, records, "%s; it was not acknowledged before the sender began anew.", head)
		case s.early:
			c.add(Warning, "frame", 0, []int{s.record, s.ackIn, s.last},
				"%s; its first acknowledgement, %s after the frame, was lost or came too late.", head, elapsed(s.firstAt, s.ackedAt))
		case s.acked:
			c.add(Warning, "frame", 0, records, "%s; it was acknowledged %s after the last time, and never before.", head, elapsed(s.lastAt, s.ackedAt))
		case s.ended:
			c.add(Warning, "frame", 0, records, "%s; the life that it was sent to ended.", head)
		case f.hiddenBack() > 0:
			c.add(Note, "frame", 0, records, "%s; no acknowledgement of it is before the snap length.", head)
		case f.acked > 0:
			c.add(Problem, "frame", 0, records, "%s; it was never acknowledged.", head)
		}
	}
}

// aboutOrder tells of copies and of frames out of their place.
func (f *flow) aboutOrder(c *findings) {
	from, to := c.names(f.key)
	firsts := f.firsts
	switch n := f.duplicates; {
	case n == 0:
	case 2*n > firsts && n > 2:
		c.add(Warning, "twice in the capture", n, nil, "%s of %s from %s to %s are in the capture twice: it was taken at two places "+
			"(interface \"any\", both sides of a bridge), or the network doubles frames.", Grouped(int64(n)), count(firsts, "frame"), from, to)
	default:
		s := Note
		if 100*n > firsts && n > 2 {
			s = Warning
		}
		if f.together == n { // as where they were recorded when they were read
			c.add(s, "duplicates", n, firstMark(f, markDuplicate), "%s from %s to %s came twice at the same time: they were doubled, "+
				"or copies waited together before they were received.", count(n, "frame"), from, to)
			break
		}
		if f.life != 0 { // ours repeat nothing without a reason
			c.add(s, "duplicates", n, firstMark(f, markDuplicate), "The network doubled %s from %s to %s.", count(n, "frame"), from, to)
			break
		}
		c.add(s, "duplicates", n, firstMark(f, markDuplicate), "%s from %s to %s came twice at once, too soon for a timeout: "+
			"the network doubled them, or the sender is OpenCPI's first C++ driver, which repeats some frames too early.", count(n, "frame"), from, to)
	}
	if n := f.late; n > 0 {
		c.add(Note, "late", n, firstMark(f, markLate), "%s from %s to %s came after later ones: the network changed their order, "+
			"or lost their first copy before the point of capture.", count(n, "frame"), from, to)
	}
	if n := f.conflicts; n > 0 {
		c.add(Warning, "id used twice", n, []int{f.firstConflict}, "%s from %s %s the id of another one: an old frame that the network held back, "+
			"a sender that began anew, or OpenCPI's first C++ driver, which sends again what a request says by then.", count(n, "frame"), from, has(n))
	}
	if n := f.tooOld; n > 0 {
		c.add(Note, "stray", n, nil, "%s from %s %s an id far from all others: old ones that the network held back?", count(n, "frame"), from,
			has(n))
	}
}

func firstMark(f *flow, k markKind) []int {
	if all := f.marks[k].all; len(all) > 0 {
		return []int{all[0].Record}
	}
	return nil
}

// The largest number of frames in flight counts as the window if it was reached at least
// windowSeen times, and the frames in flight at those times are at least a windowShare of all.
const (
	windowSeen  = 5
	windowShare = 0.5
)

// oneSided reports whether the other direction is missing in the capture, and was there: its
// frames are acknowledged, or what goes on behind an introduction does so since it was answered.
func (f *flow) oneSided() bool {
	return f.reverse == nil && f.a.headless == 0 && (f.acksSent > 0 || f.life != 0 && f.dataFirst > 0)
}

// aboutPeer tells how the two ends behave.
func (f *flow) aboutPeer(c *findings) {
	from, to := c.names(f.key)
	firsts := f.firsts
	switch {
	case firsts == 0 || f.acked > 0 || f.reverse == nil && f.a.headless > 0 || f.toEnded > 0 && f.toEnded == f.unacked:
	case f.hiddenBack() > 0:
		c.add(Note, "never acknowledges", firsts, []int{f.firstRecord}, "%s acknowledges none of %s from %s before the snap length: what is behind it may.",
			capital(to), count(firsts, "frame"), from)
	case f.oneSided():
		c.add(Note, "one direction", firsts, []int{f.firstRecord}, "Only one direction was captured: nothing of %s is in the capture, which answers %s. "+
			"What it acknowledged of %s is not known.", to, from, count(firsts, "frame"))
	case f.resent > 0 && f.reverse == nil:
		c.add(Problem, "never acknowledges", firsts, []int{f.firstRecord, f.firstCopy}, "%s never acknowledges: %s from %s, %s. "+
			"Nothing of it is in the capture: unless only the other direction was captured, it is not there.",
			capital(to), count(firsts, "frame"), from, count(f.resent, "copy"))
	case f.resent > 0:
		c.add(Problem, "never acknowledges", firsts, []int{f.firstRecord, f.firstCopy}, "%s never acknowledges: %s from %s, %s.",
			capital(to), count(firsts, "frame"), from, count(f.resent, "copy"))
	default:
		c.add(Note, "never acknowledges", firsts, []int{f.firstRecord}, "%s never acknowledges in this capture: %s from %s. "+
			"OpenCPI's second C++ driver never does.", capital(to), count(firsts, "frame"), from)
	}
	if firsts == 0 && f.oneSided() {
		c.add(Note, "one direction", int(f.acksSent), []int{f.firstRecord}, "%s acknowledges frames of %s that are not in the capture: only one direction was captured.",
			capital(from), to)
	}
	for _, r := range f.restarts[:min(len(f.restarts), told)] {
		s, silent := Warning, ""
		if f.reverse != nil && f.reverse.toEnded > 0 {
			s = Problem
		}
		if r.Silent >= longSilence {
			silent = fmt.Sprintf(", silent for the last %s", Span(r.Silent))
		}
		c.add(s, "restart", causeWeight+f.nRestart, []int{r.Record}, "%s began anew after %s%s: %s.", capital(from), Span(r.At), silent, r.How)
	}
	if f.nRestart > told {
		c.add(Warning, "restart", causeWeight+f.nRestart, nil, "%s began anew %s in all.", capital(from), times(f.nRestart))
	}
	f.aboutPauses(c, from)
	if n := f.uncounted; n > 0 {
		c.add(Warning, "count 0", n, []int{f.firstUncounted}, "%s from %s to %s %s data under the count 0, as OpenCPI's first C++ driver sends "+
			"a transaction of one message: OpenCPI's first driver and its hardware, when they receive it, write the completion word and drop the data.",
			count(n, "message"), from, to, has(n))
	}
	f.aboutIntroduction(c, from, to)
	f.aboutWindow(c, from, to, firsts)
}

func (f *flow) aboutWindow(c *findings, from, to string, firsts int) {
	ack := f.once.quantile(0.5)
	if f.hidden > 0 || f.inFlightMost < 2 || f.atMost < windowSeen || float64(f.atMost*f.inFlightMost) < windowShare*float64(firsts) || ack < time.Microsecond {
		return
	}
	frames := float64(f.inFlightMost) / ack.Seconds()
	rate := Grouped(int64(frames)) + " frames"
	if f.dataFirst >= int64(firsts) { // else they give buffers back
		rate = Size(frames * float64(f.dataFirst) / float64(firsts))
	}
	c.add(Note, "window", f.atMost, nil, "A window of %d limits throughput from %s to %s to about %s/s: never more frames were in flight, "+
		"so many were %s, and acknowledgements take %s (median).", f.inFlightMost, from, to, rate, times(f.atMost), Span(ack))
}

func capital(s string) string { return string(s[0]-'a'+'A') + s[1:] }
