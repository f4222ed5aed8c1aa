package inspect

// aboutSealed tells of endpoints with keys.
func (a *Analyzer) aboutSealed(c *findings) {
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
			n, back := w.frames, ""
			if other != nil && other.frames > 0 {
				n += other.frames
				back = ", and back,"
			}
			c.add(Note, "sealed", int(n), []int{w.firstRecord}, "%s from %s to %s%s %s sealed: what they carry, acknowledgements too, cannot be seen, and so is not in this report. "+
				"No key opens them later, not even the one that both were given: those of each handshake are forgotten.", count(int(n), "frame"), from, to, back, isAre(int(n)))
		}
	}
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
		switch heard := other != nil && (other.frames > 0 || other.steps != [len(other.steps)]int{}); {
		case !heard && !plain && w.frames > 0:
			c.add(Note, "one direction", n, records, "Only one direction was captured: nothing of %s is in the capture, and %s seals for it. How its handshakes ended is not known.", to, from)
		case plain && !keyed:
			c.add(s, "no challenge", n, records, "%s asked %s for a key %s, and got no challenge: that sends frames, and takes none that are sealed. Give it the key.", capital(from), to, times(n))
		default:
			c.add(s, "no challenge", n, records, "%s asked %s for a key %s, and got no challenge: nobody is there, or nobody who takes sealed frames from it.", capital(from), to, times(n))
		}
	}
	if n := w.deaf.n; n > 0 {
		c.add(s, "challenge ignored", n, []int{w.deaf.first}, "%s did not answer the challenge of %s, which it had asked for, %s: the two were given different keys, or it does not get there, or from another address than the question went to.",
			capital(from), to, times(n))
	}
	if n := w.keyless.n; n > 0 {
		c.add(s, "no second message", n, []int{w.keyless.first}, "%s answered what %s challenged it with, %s, and got no key: that has no room for another peer, or the answer was lost.", capital(from), to, times(n))
	}
	if n := w.unasked.n; n > 0 {
		c.add(Warning, "key unknown", n, []int{w.unasked.first}, "%s told %s %s that it does not know the key under which that seals: it began anew, and they agree on another one, unless it has none.", capital(from), to, times(n))
	}
}

// aboutCounters tells what counters show.
func (w *sealedWay) aboutCounters(c *findings, from, to string) {
	if n := w.missing; n > 0 {
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
		c.add(Note, "sealed late", n, []int{w.firstLate}, "%s from %s to %s came after later ones: the network changed their order.", count(n, "sealed frame"), from, to)
	}
	if n := w.strays; n > 0 {
		c.add(Note, "sealed stray", n, nil, "%s from %s to %s %s a counter far from all others: damaged, forged, or held back by the network.", count(n, "sealed frame"), from, to, has(n))
	}
}
