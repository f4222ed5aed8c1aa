package dgrdma

// opening is what the frame at hand would begin and not end.
type opening struct {
	n     int    // transactions
	known int    // transactions that were open before and go on
	bytes int    // to hold for it all
	left  uint16 // messages to come of the transaction of the message before, if it began here
}

// checkOpening decides whether there is room for what a frame begins.
func (r *receiving) checkOpening(o *opening) Reason {
	t := &r.open
	over := t.Len() + o.n - t.Limit()
	room := over <= 0 || r.profile.NeverRetransmits && over <= t.Len()-o.known
	switch {
	case !room:
		return RefusedTooManyOpen
	case o.bytes > 0 && !r.affords(o.bytes):
		return RefusedOpenMemory
	}
	r.evict(over)
	return RefusedNone
}

// affords reports whether that much more may be held for the peer.
func (r *receiving) affords(need int) bool {
	if !r.learned.Load() {
		r.held.Part()
	}
	return r.held.Affords(need, r.cfg.OpenMemory)
}

// evict gives up as many transactions whose messages will not come any more: those
// silent for longest, but for what the frame at hand continues.
func (r *receiving) evict(n int) {
	for in := r.open.Oldest(); in != nil && n > 0; {
		next := in.Younger()
		if in.Checked != r.scratch.looked {
			r.counters.OpenEvicted++
			r.events.event(Event{Kind: TransactionLost, Txn: in.Message.Txn})
			r.open.Remove(in)
			n--
		}
		in = next
	}
}
