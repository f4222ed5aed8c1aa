package endpoint

import (
	"errors"

	"github.com/dgrdma/dgrdma/frame"
)

// opening is what the frame at hand would begin and not end.
type opening struct {
	n     int    // transactions
	known int    // transactions that were open before and go on
	bytes int    // to hold for it all
	left  uint16 // messages to come of the transaction of the message before, if it began here
}

// admit checks all messages of a frame before anything of it is done: a frame
// is applied whole or not at all. The first is on the desk, and its cursor behind it.
func (r *receiving) admit() (why Reason, txn uint32, err error) {
	d := r.desk
	cur := &d.cursor
	d.looked++
	all := r.owner()
	var o opening
	var before *placement
	for p := &d.placements[0]; ; {
		m := &p.msg
		follows := before != nil && before.msg.Txn == m.Txn
		if why := r.ledger.fits(m, before); why != RefusedNone {
			return why, m.Txn, nil
		}
		in := r.open.find(m.Txn)
		shared := m
		if in != nil {
			shared = &in.msg
		} else if follows {
			shared = &before.msg
		}
		if !shared.SameTransaction(m) {
			// What came first was acknowledged, so its sender was told that it is
			// applied. Whoever contradicts it is not told so (attack A16, SECURITY.md).
			return RefusedInconsistent, m.Txn, nil
		}
		inOrder := follows && m.Index == before.msg.Index+1
		if in != nil && in.looked != d.looked {
			in.looked, in.here = d.looked, 0
			o.known++
		}
		if !follows {
			o.left = 0
		}
		switch {
		case in != nil && in.got+in.here < m.Count: // else it ended, and may begin again
			if in.here++; in.got+in.here == m.Count {
				o.n-- // it ends, and makes room for what follows
			}
			seen, free := r.ledger.marked(in, m)
			if seen {
				return RefusedStale, m.Txn, nil
			}
			if !free && !inOrder {
				o.bytes += gapSize
			}
		case o.left > 0:
			if !inOrder {
				o.bytes += gapSize
			}
			if o.left--; o.left == 0 {
				o.n--
				o.bytes -= openSize
			}
		case m.Count > 1:
			o.n++
			o.bytes += openSize
			o.left = m.Count - 1
		}
		// One by one: a literal is built elsewhere, and moved in pieces that wait for it.
		if p.owner = all; all == nil {
			p.owner = r.ownerOf(m)
		}
		p.data, p.swallow = cur.Data, false
		if p.dst, err = p.owner.Admit(r.peer.ID, m); err != nil {
			if !swallows(err) {
				return refusal(err), m.Txn, err
			}
			p.dst, p.swallow = nil, true
		} else if len(p.dst) != int(m.Len) {
			panic("BUG: Memory.Admit returned a slice of the wrong length")
		}
		if !m.More {
			break
		}
		p = d.room()
		before = &d.placements[len(d.placements)-2]
		cur.Into(&p.msg)
	}
	return r.admitOpening(&o), d.placements[0].msg.Txn, nil
}

// swallows reports whether a memory that answers so wants the message to vanish.
func swallows(err error) bool {
	if _, ok := err.(swallowed); ok {
		return true
	}
	var s swallowed
	return errors.As(err, &s)
}

// refusal says why a memory refuses.
func refusal(err error) Reason {
	if errors.Is(err, ErrBounds) {
		return RefusedBounds
	}
	return RefusedMemory
}

// admitOpening decides whether there is room for what a frame begins.
func (r *receiving) admitOpening(o *opening) Reason {
	t := &r.open
	over := t.len() + o.n - t.limit
	room := over <= 0 || r.profile.NeverRetransmits && over <= t.len()-o.known
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
		r.held.alone()
	}
	return r.held.affords(need, r.cfg.OpenMemory)
}

// place applies the messages that admit passed.
func (r *receiving) place(seq frame.Seq) {
	d := r.desk
	for i := range d.placements {
		p := &d.placements[i]
		m := &p.msg
		r.ledger.begins(m, seq)
		if p.swallow {
			r.counters.Swallowed++
		} else if m.Len > 0 {
			place(p.dst, p.data)
			r.counters.MessagesPlaced++
			r.counters.DataPlaced += uint64(m.Len)
			if placed := p.owner.placed; placed != nil {
				placed.Placed(r.peer.ID, m)
			}
		}
		r.account(p, seq)
		p.owner, p.dst, p.data = nil, nil, nil
	}
}

// account counts a message of its transaction, and completes the transaction
// with the last one.
func (r *receiving) account(p *placement, seq frame.Seq) {
	m := &p.msg
	if m.Count <= 1 {
		// Count 0 stands for a completion alone, and in some peers for one
		// message with data (quirk D1-1).
		r.complete(m, p.owner, p.swallow)
		return
	}
	in := r.open.find(m.Txn)
	if in == nil {
		in = r.open.add(m)
	} else {
		r.open.touch(in)
	}
	r.ledger.mark(in, m, seq)
	in.count(m)
	in.poisoned = in.poisoned || p.swallow
	if in.got == m.Count {
		r.end(in)
	}
}

// end completes a transaction of which something was kept.
func (r *receiving) end(in *incoming) {
	r.complete(&in.msg, r.ownerOf(&in.msg), in.poisoned)
	r.open.remove(in)
}

func (r *receiving) complete(m *frame.Message, owner *view, poisoned bool) {
	r.ledger.over(m.Txn)
	if poisoned {
		r.events.event(Event{Kind: TransactionLost, Txn: m.Txn})
		return
	}
	if m.Completes() {
		owner.Complete(r.peer.ID, m)
	}
	r.counters.Completions++
}

// evict gives up as many transactions whose messages will not come any more: those
// silent for longest, but for what the frame at hand continues.
func (r *receiving) evict(n int) {
	for in := r.open.oldest; in != nil && n > 0; {
		next := in.younger
		if in.looked != r.desk.looked {
			r.counters.OpenEvicted++
			r.events.event(Event{Kind: TransactionLost, Txn: in.msg.Txn})
			r.open.remove(in)
			n--
		}
		in = next
	}
}
