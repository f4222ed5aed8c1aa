package inspect

import "fmt"

// refusals are why an endpoint refuses a session.
var refusals = [...]string{"another endpoint has that address", "it takes no unknown sources", "it has no room for another peer", "it takes only sealed frames"}

// aboutSessions tells of the sessions of a flow.
func (f *flow) aboutSessions(c *findings) {
	x := &f.session
	from, to := c.names(f.key)
	if x.n > 1 && (f.reverse == nil || f.reverse.session.n < x.n || f.number < f.reverse.number) {
		how := "One of the two restarted, was reset, or gave the other one up"
		if one := &x.all[0]; one.Ended == "BYE" {
			by := to
			if one.own {
				by = from
			}
			how = capital(by) + " ended the first one with BYE"
		}
		c.add(Warning, "sessions", causeWeight+x.n, []int{x.all[1].Record}, "Frames from %s to %s are of %d sessions; the second begins in this record. %s; what was under way failed.", from, to, x.n, how)
	}
	if n := x.resets.n; n > 0 {
		quoted, records := "", []int{x.resets.first}
		if w := &x.quoted; w.record > 0 {
			quoted, records = fmt.Sprintf(", the first to frame %d", f.shown(w.id)), []int{w.last, x.resets.first}
		}
		c.add(Warning, "RESET", n, records, "%s answered %s of %s with RESET%s: it does not have the session of that frame. It restarted, was reset, or gave %s up.",
			capital(to), count(n, "frame"), from, quoted, from)
	}
	if x.byes.n > 0 {
		c.add(Note, "BYE", x.byes.n, []int{x.byes.first}, "%s ended its session with %s: it said BYE.", capital(from), to)
	}
	if n := x.lost; n > 0 {
		c.add(Warning, "lost", n, nil, "%s from %s to %s came after a later one of the same frame, or never, or before the session was there, as its ACKs say.", count(n, "transmission"), from, to)
	}
	if n := x.vain; n > 0 {
		c.add(Note, "in vain", n, nil, "%s from %s came to %s when the frame had come before, as its ACKs say: not the frame was lost, but it or its acknowledgement was late, or the network doubled the retransmission.", count(n, "retransmission"), from, to)
	}
	if n := x.unseen; n > 0 {
		c.add(Note, "transmissions before", n, nil, "%s from %s to %s %s not in the capture, by the copy numbers of later ones: lost before the point of capture, by the capture itself, or sent before it began.",
			count(n, "transmission"), from, to, isAre(n))
	}
	if n := x.stale.n; n > 0 {
		c.add(Note, "ended session", n, []int{x.stale.first}, "%s from %s to %s %s of a session that had ended: the network held %s back, or %s did not know yet. Nothing else in this report counts %s.",
			count(n, "frame"), from, to, isAre(n), itThem(n), from, itThem(n))
	}
	if n := x.strange.n; n > 0 {
		c.add(Note, "unknown session", n, []int{x.strange.first}, "%s from %s to %s %s of a session of which the capture has nothing else before. Nothing else in this report counts %s.",
			count(n, "frame"), from, to, isAre(n), itThem(n))
	}
	if n := x.rejects.n; n > 0 {
		c.add(Note, "REJECT", n, []int{x.rejects.first}, "%s rejected what %s confirmed, %s: it told those epochs in a life that is over. They agree on another session.", capital(from), to, times(n))
	}
	if n := x.refusals.n; n > 0 {
		c.add(Problem, "REFUSED", n, []int{x.refusals.first}, "%s refused %s a session, %s: %s.", capital(from), to, times(n), refusals[x.why])
	}
}
