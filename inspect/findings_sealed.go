package inspect

import "fmt"

// aboutSealed tells of endpoints with keys.
func (a *Analyzer) aboutSealed(c *findings) {
	var all sealedTalks
	for _, w := range a.wayOrder {
		other := a.back(w.key)
		from, to := c.names(w.key)
		w.aboutHandshakes(c, other, a.reverse(w.key) != nil, from, to)
		w.aboutCounters(c, from, to)
		if n := w.unsealed.n; n > 0 {
			c.add(Problem, "not sealed", n, []int{w.unsealed.first}, "%s from %s to %s %s not sealed, where the two have keys or one of them has: who has one refuses them. "+
				"The other one was given none, or somebody speaks in its name.", count(n, "frame"), from, to, isAre(n))
		}
		if w.frames > 0 && (other == nil || other.frames == 0 || w.number < other.number) {
			all.add(w, other, from, to)
		}
	}
	if all.frames > 0 {
		c.add(Note, "sealed", all.frames, all.records, "%s sealed: what they carry, acknowledgements too, cannot be seen, and so is not in this report. "+
			"No key opens them later, not even the one that both were given: those of each handshake are forgotten.", all.words())
	}
}

// sealedTalks is between whom sealed frames passed, and who asked with some who is at an address.
type sealedTalks struct {
	pairs, frames, asking int    // pairs that talk, frames in all, those to ask and to answer
	only                  string // of one pair, what it sends and where
	records               []int
}

func (t *sealedTalks) add(w, other *sealedWay, from, to string) {
	n, back := int(w.frames), ""
	if other != nil && other.frames > 0 {
		n += int(other.frames)
		back = ", and back,"
	}
	t.frames += n
	if len(t.records) < mostOfAKind {
		t.records = append(t.records, w.firstRecord)
	}
	if w.key.srcID == 0 || w.key.dstID == 0 {
		t.asking += n
		return
	}
	t.pairs++
	t.only = fmt.Sprintf("%s from %s to %s%s", count(n, "frame"), from, to, back)
}

func (t *sealedTalks) words() string {
	talking := t.only
	if t.pairs > 1 {
		talking = fmt.Sprintf("%s between %d pairs of endpoints", count(t.frames-t.asking, "frame"), t.pairs)
	}
	asking := count(t.asking, "frame") + " to ask who is at an address, and to answer,"
	switch {
	case t.asking == 0:
		return talking + " " + isAre(t.frames)
	case t.pairs == 0:
		return asking + " " + isAre(t.frames)
	}
	return talking + " and " + asking + " are"
}

// aboutHandshakes tells of those that this end began, and of what it does not know. plain: the other one sends frames that are not sealed.
func (w *sealedWay) aboutHandshakes(c *findings, other *sealedWay, plain bool, from, to string) {
	keyed := w.ended > 0 || other != nil && other.ended > 0
	s := Problem
	if keyed {
		s = Note // there was a key, before or behind it
	}
	if n := w.unanswered.n; n > 0 {
		records := []int{w.unanswered.first}
		asked := times(w.unanswered.asked)
		switch heard := other != nil && (other.frames > 0 || other.steps != [len(other.steps)]int{}); {
		case !heard && !plain && w.frames > 0:
			c.add(Note, "one direction", n, records, "Only one direction was captured: nothing of %s is in the capture, and %s seals for it. How its handshakes ended is not known.", to, from)
		case plain && !keyed:
			c.add(s, "no challenge", n, records, "%s asked %s for a key %s, and got no challenge: that sends frames, and takes none that are sealed. Give it the key.", capital(from), to, asked)
		default:
			c.add(s, "no challenge", n, records, "%s asked %s for a key %s, and got no challenge: nobody is there, or nobody who takes sealed frames from it.", capital(from), to, asked)
		}
	}
	if n := w.deaf.n; n > 0 {
		c.add(s, "challenge ignored", n, []int{w.deaf.first}, "%s asked %s for a key %s, was challenged %s, and answered no challenge: the two were given different keys, or challenges do not get there, or from another address than the question went to.",
			capital(from), to, times(w.deaf.asked), times(w.deaf.challenged))
	}
	if n := w.keyless.n; n > 0 {
		c.add(s, "no second message", n, []int{w.keyless.first}, "%s answered what %s challenged it with, %s, and got no key: that has no room for another peer, or the answer was lost.", capital(from), to, times(w.keyless.answered))
	}
	if n := w.unasked.n; n > 0 {
		c.add(Warning, "key unknown", n, []int{w.unasked.first}, "%s told %s %s that it does not know the key under which that seals: it began anew, and they agree on another one, unless it has none.", capital(from), to, times(n))
	}
}

// aboutCounters tells what counters show.
func (w *sealedWay) aboutCounters(c *findings, from, to string) {
	if n := w.missed(); n > 0 {
		var where []int
		if w.firstMissing > 0 {
			where = []int{w.firstMissing}
		}
		c.add(Warning, "sealed gap", n, where, "%s from %s to %s %s not in the capture, by the counters, which go up by one: lost before the point of capture, or by the capture itself. The first is before this record.",
			count(n, "sealed frame"), from, to, isAre(n))
	}
	if n := w.copies; n > 0 {
		if int64(2*n) > w.frames-int64(n) && n > 2 {
			c.add(Warning, "twice in the capture", n, []int{w.firstCopy}, "%s from %s to %s are in the capture twice: it was taken at two places "+
				"(interface \"any\", both sides of a bridge), or somebody doubles frames.", count(n, "sealed frame"), from, to)
		} else {
			c.add(Note, "sealed copies", n, []int{w.firstCopy}, "%s from %s to %s came again under the same counter: the network doubled them, or somebody sends what he recorded. "+
				"Their receiver takes each once; whoever sends again seals it anew.", count(n, "sealed frame"), from, to)
		}
	}
	if n := w.late; n > 0 {
		c.add(Note, "sealed late", n, []int{w.firstLate}, "%s from %s to %s came after later ones: the network changed their order, or they are under another key.", count(n, "sealed frame"), from, to)
	}
	if n := w.odd(); n > 0 {
		c.add(Note, "sealed stray", n, nil, "%s from %s to %s %s a counter far from all others: held back by the network, under another key, damaged or forged.", count(n, "sealed frame"), from, to, has(n))
	}
}
