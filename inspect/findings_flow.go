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
		text, share := "", ""
		if f.resent+firsts >= leastShare {
			share = fmt.Sprintf(", %s of these frames in the capture", percent(f.resent, f.resent+firsts))
		}
		if f.earlyAcks > 0 {
			text = fmt.Sprintf(" %s of them had been acknowledged in the capture before.", Grouped(int64(f.earlyAcks)))
		}
		if f.hidden > 0 {
			text += " What lies behind the snap length is not counted."
		}
		if f.alike > 0 {
			text += " A network that doubles frames and holds the second ones back looks the same."
		}
		c.add(Warning, "sent again", f.resent, []int{f.firstCopy}, "%s of %s from %s to %s %s sent again, %s in all%s.%s",
			Grouped(int64(f.resentIDs)), count(firsts, "frame"), from, to, wasWere(f.resentIDs), count(f.resent, "copy"), share, text)
	}
	if n := f.live; n > 0 {
		c.add(Warning, "live header", n, []int{f.firstLive}, "%s from %s %s the transaction id of a later frame: OpenCPI's first C++ driver sends again "+
			"what a request says by then, and it was posted again. Receivers that compare refuse such a copy.", count(n, "copy"), from, has(n))
	}
	f.aboutWorst(c, from)
	if n := f.toEnded; n > 0 {
		c.add(f.problem(false), "not acknowledged", n, []int{f.firstToEnded.record}, "%s from %s %s sent to a life of %s that ended, and no acknowledgement of %s is in the capture; the first is frame %d.%s",
			count(n, "frame"), from, wasWere(n), to, itThem(n), f.shown(f.firstToEnded.id), f.stale())
	}
	if n := f.unacked - f.toEnded; f.acked > 0 && n > 0 {
		s := Warning
		if f.resent > 0 {
			s = f.problem(false)
		}
		text := ""
		if n := f.hiddenBack(); n > 0 {
			s = Note
			text = fmt.Sprintf(" %s of %s %s behind the snap length: the acknowledgements may be there.", count(n, "frame"), to, isAre(n))
		} else if f.reverse != nil && f.reverse.gaps > 0 {
			text = fmt.Sprintf(" %s of %s %s missing in the capture: the acknowledgements may have been there.",
				count(f.reverse.gaps, "frame"), to, isAre(f.reverse.gaps))
		}
		c.add(s, "not acknowledged", n, []int{f.firstUnacked.record},
			"%s from %s %s no acknowledgement in the capture, where %s acknowledges others; the first is frame %d.%s%s",
			count(n, "frame"), from, has(n), to, f.shown(f.firstUnacked.id), text, f.stale())
	}
	if n := f.missing - f.missingAcked; n > 0 && f.hidden == 0 && f.jumps == 0 { // else they may be behind the snap length, or how many there are cannot be told
		s := Note
		if f.tx.never > 0 {
			s = Warning
		}
		in, or := "in it", ""
		if !f.fromFirst { // one of the first frames may be an old one, sent again
			in, or = "after its first frames", ", or sent before it began"
		}
		if !f.ours() {
			or += ", or no frame had them" // as where a sender numbers what it then does not send
		}
		c.add(s, "gap", n, []int{f.firstMissing.record}, "%s of %s %s not in the capture, nor acknowledged %s; the first is %d, before this record. %s lost before the point of capture, or by the capture itself%s. "+
			"Frames that hold only acknowledgements are not repeated when they are lost.%s", count(n, "frame id"), from, isAre(n), in, f.shown(f.firstMissing.id), capital(itThey(n)+" "+wasWere(n)), or, f.stale())
	}
	if f.jumps > 0 {
		began := ""
		if !f.fromFirst {
			began = ", or was sent before it began"
		}
		c.add(Warning, "leap", f.jumps, []int{f.firstJump}, "Frame ids of %s go on elsewhere %s: a long piece is missing in the capture%s, or %s restarted. How many frames are missing cannot be told.", from, times(f.jumps), began, from)
	}
	if f.tx.never > 0 && f.cut == 0 && f.hidden == 0 && f.jumps == 0 {
		s := f.problem(f.nRestart > 0) // which is told
		t := slices.MinFunc(f.tx.unfinished.all, func(a, b Transaction) int { return cmp.Compare(a.Begin, b.Begin) })
		but := ""
		if f.session.stale.n+f.session.strange.n > 0 {
			but = ", frames of ended or unknown sessions not counted"
		}
		c.add(s, "transaction", f.tx.never, []int{t.Record}, "Of %s from %s to %s not all messages are in the capture%s; of transaction %d, which begins in this record, %d of %s are.",
			count(f.tx.never, "transaction"), from, to, but, t.ID, t.Messages, count(t.Of, "message"))
	}
}

// stale says that something was acknowledged of which nothing is remembered, if so.
func (f *flow) stale() string {
	if f.acksStale == 0 {
		return ""
	}
	return " Acknowledgements for a life that had ended are not counted."
}

// leastShare is of how many frames a share is told. Arbitrary: of fewer, numbers say more.
const leastShare = 20

// problem is the severity of what matters, unless there is another reason for it, or the capture shows that it lost frames: then that may be one.
func (f *flow) problem(reason bool) Severity {
	if reason || f.a.losesFrames() {
		return Warning
	}
	return Problem
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
		head := fmt.Sprintf("Frame %d of %s is in the capture %s within %s", f.shown(s.id), from, times(int(s.sent)), elapsed(s.firstAt, s.lastAt))
		records := []int{s.record, s.last}
		switch { // that some are not acknowledged is told in sum
		case s.given:
			c.add(Warning, "frame", 0, records, "%s; no acknowledgement of it is there before its sender restarted.", head)
		case s.early && s.ackIn == 0:
			c.add(Warning, "frame", 0, records, "%s: its acknowledgement is in the capture before it, and it came again all the same.", head)
		case s.early:
			c.add(Warning, "frame", 0, []int{s.record, s.ackIn, s.last},
				"%s: it was acknowledged %s after the first time, and came again all the same.", head, elapsed(s.firstAt, s.ackedAt))
		case s.acked:
			c.add(Warning, "frame", 0, records, "%s; its first acknowledgement in the capture came %s after the last time.", head, elapsed(s.lastAt, s.ackedAt))
		case f.lost(&s):
			c.add(Warning, "frame", 0, records, "%s; the life that it was sent to ended.", head)
		case f.hiddenBack() > 0:
			c.add(Note, "frame", 0, records, "%s; no acknowledgement of it is before the snap length.", head)
		case f.acked > 0:
			c.add(Warning, "frame", 0, records, "%s; no acknowledgement of it is there.", head)
		}
	}
}

// aboutOrder tells of copies and of frames out of their place.
func (f *flow) aboutOrder(c *findings) {
	from, to := c.names(f.key)
	firsts := f.firsts
	switch n := f.duplicates; {
	case n == 0:
	case 2*n > firsts && n > 2 && (!f.ours() || f.doubled()): // of ours, it shows in frames that are never sent again
		c.add(Warning, "twice in the capture", n, nil, "%s of %s from %s to %s are in the capture twice: it was taken at two places "+
			"(interface \"any\", both sides of a bridge), or the network doubles frames.", Grouped(int64(n)), count(firsts, "frame"), from, to)
	default:
		s := Note
		if 100*n > firsts && n > 2 {
			s = Warning
		}
		or := fmt.Sprintf(", or held %s back until %s had been sent again", itThem(n), itThey(n))
		if f.together == n { // as where they were recorded when they were read
			or = ", or copies waited together before they were received"
		}
		or += ", or the acknowledgement after which " + itThey(n) + " " + wasWere(n) + " sent again is not in the capture before"
		if !f.ours() { // ours repeat nothing without a reason
			or += ", or the sender is OpenCPI's first C++ driver, which repeats some frames too early"
		}
		c.add(s, "duplicates", n, f.firstMark(markDuplicate), "%s from %s to %s came again at once, too soon for a timeout: the network doubled %s%s.", count(n, "frame"), from, to, itThem(n), or)
	}
	if n := f.late; n > 0 {
		c.add(Note, "late", n, f.firstMark(markLate), "%s from %s to %s came after later ones: the network changed their order, "+
			"or their first copy is not in the capture.", count(n, "frame"), from, to)
	}
	if n := f.conflicts; n > 0 {
		c.add(Warning, "id used twice", n, []int{f.firstConflict}, "%s from %s %s the id of another one: an old frame that the network held back, "+
			"a sender that began anew, or OpenCPI's first C++ driver, which sends again what a request says by then.", count(n, "frame"), from, has(n))
	}
	if n := f.tooOld; n > 0 {
		c.add(Note, "stray", n, nil, "%s from %s %s an id far from all others: old ones that were sent again, or that the network held back.", count(n, "frame"), from,
			has(n))
	}
}

func (f *flow) firstMark(k markKind) []int {
	if all := f.marks[k].all; len(all) > 0 {
		return []int{all[0].Record}
	}
	return nil
}

// oneSided reports whether the other direction is missing in the capture, and was there: its
// frames are acknowledged, or there is a session, which begins when it answers.
func (f *flow) oneSided() bool {
	return f.reverse == nil && f.a.headless == 0 && (f.acksSent > 0 || f.session.any && f.dataFirst > 0)
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
		c.add(Problem, "never acknowledges", firsts, []int{f.firstRecord, f.firstCopy}, "%s never acknowledges in this capture: %s from %s, %s. "+
			"Nothing of it is in the capture: unless only the other direction was captured, it is not there.",
			capital(to), count(firsts, "frame"), from, count(f.resent, "copy"))
	case f.resent > 0:
		c.add(f.problem(false), "never acknowledges", firsts, []int{f.firstRecord, f.firstCopy}, "%s never acknowledges in this capture: %s from %s, %s.%s",
			capital(to), count(firsts, "frame"), from, count(f.resent, "copy"), f.stale())
	default:
		c.add(Note, "never acknowledges", firsts, []int{f.firstRecord}, "%s never acknowledges in this capture: %s from %s. "+
			"OpenCPI's second C++ driver never does.%s", capital(to), count(firsts, "frame"), from, f.stale())
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
			silent = fmt.Sprintf(", with nothing of it in the capture for %s before", Span(r.Silent))
		}
		c.add(s, "restart", causeWeight+f.nRestart, []int{r.Record}, "%s restarted after %s%s: %s.", capital(from), Span(r.At), silent, r.How)
	}
	if f.nRestart > told {
		c.add(Warning, "restart", causeWeight+f.nRestart, nil, "%s restarted %s in all.", capital(from), times(f.nRestart))
	}
	f.aboutPauses(c, from)
	if n := f.uncounted; n > 0 {
		c.add(Warning, "count 0", n, []int{f.firstUncounted}, "%s from %s to %s %s data under the count 0, as OpenCPI's first C++ driver sends "+
			"a transaction of one message: OpenCPI's first driver and its hardware, when they receive it, write the completion word and drop the data.",
			count(n, "message"), from, to, has(n))
	}
	f.aboutHandshake(c, from, to)
	f.aboutWindow(c, from, to, firsts)
}

func capital(s string) string { return string(s[0]-'a'+'A') + s[1:] }
