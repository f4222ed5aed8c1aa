package endpoint

import (
	"errors"

	"github.com/dgrdma/dgrdma/frame"
)

// placement is a message that passed all checks and waits for the others of
// its frame.
type placement struct {
	msg     frame.Message
	dst     []byte
	data    []byte
	swallow bool
}

// opening is what the frame at hand would begin and not end.
type opening struct {
	n     int    // transactions
	known int    // transactions that were open before and go on
	bytes int    // to hold for it all
	left  uint16 // messages to come of the transaction of the message before
}

// admit checks all messages of a frame before anything of it is done: a frame
// is applied whole or not at all. cur stands at the first message.
func (c *Conn) admit(cur *frame.Cursor) (why Reason, txn uint32, err error) {
	r, e := &c.rx, c.ep
	e.placements = e.placements[:0]
	e.looked++
	var o opening
	var before *placement
	for more := true; more; more = cur.Next() {
		m := &cur.Msg
		follows := before != nil && before.msg.Txn == m.Txn
		if c.profile.Session {
			switch r.closed.age(m.Txn) {
			case ageClosed:
				return RefusedStale, m.Txn, nil
			case ageForeign:
				return RefusedForeign, m.Txn, nil
			}
			if m.Count > 0 && (m.Index == 0 || m.Index > m.Count) {
				return RefusedInconsistent, m.Txn, nil
			}
			if follows && (m.Count <= 1 || m.Index <= before.msg.Index) {
				return RefusedInconsistent, m.Txn, nil
			}
			// In order, so that a look at the message before finds all of a
			// transaction that this frame opens.
			if before != nil && int32(m.Txn-before.msg.Txn) < 0 {
				return RefusedInconsistent, m.Txn, nil
			}
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
		switch {
		case in != nil:
			if in.looked != e.looked {
				in.looked = e.looked
				o.known++
			}
			if c.profile.Session {
				seen, free := in.indexes.look(m.Index)
				if seen {
					return RefusedStale, m.Txn, nil
				}
				if !free && !inOrder {
					o.bytes += gapSize
				}
			}
		case follows && o.left > 0:
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
		dst, swallow, err := c.ask(m)
		if err != nil {
			if errors.Is(err, ErrBounds) {
				return RefusedBounds, m.Txn, err
			}
			return RefusedMemory, m.Txn, err
		}
		n := len(e.placements)
		if n == cap(e.placements) {
			e.placements = append(e.placements, placement{})
		}
		e.placements = e.placements[:n+1]
		before = &e.placements[n]
		before.msg, before.dst, before.data, before.swallow = *m, dst, cur.Data, swallow
	}
	return c.admitOpening(&o), e.placements[0].msg.Txn, nil
}

// ask asks the memory where a message goes.
func (c *Conn) ask(m *frame.Message) (dst []byte, swallow bool, err error) {
	dst, err = c.memory.Admit(c.peer.ID, m)
	if err != nil {
		if _, swallow = err.(swallowed); !swallow {
			var s swallowed
			swallow = errors.As(err, &s)
		}
		if swallow {
			err = nil
		}
		return nil, swallow, err
	}
	if len(dst) != int(m.Len) {
		panic("BUG: Memory.Admit returned a slice of the wrong length")
	}
	return dst, false, nil
}

// admitOpening decides whether there is room for what a frame begins.
func (c *Conn) admitOpening(o *opening) Reason {
	t := &c.rx.open
	over := t.len() + o.n - t.limit
	room := o.n <= 0 || over <= 0 || c.profile.NeverRetransmits && over <= t.len()-o.known
	switch {
	case !room:
		return RefusedTooManyOpen
	case o.bytes > 0 && !c.affords(o.bytes):
		return RefusedOpenMemory
	}
	if o.n > 0 && over > 0 {
		c.evict(over)
	}
	return RefusedNone
}

// place applies the messages that admit passed.
func (c *Conn) place(seq frame.Seq) {
	r, e := &c.rx, c.ep
	for i := range e.placements {
		p := &e.placements[i]
		m := &p.msg
		if c.profile.Session {
			r.closed.see(m.Txn)
		}
		if int32(m.Txn-r.newest) > 0 || !r.placed {
			if c.profile.OverCounts {
				c.overtake(seq)
			}
			r.newest, r.newestAt, r.placed = m.Txn, seq, true
		}
		if p.swallow {
			r.counters.Swallowed++
		} else if m.Len > 0 {
			place(p.dst, p.data)
			r.counters.MessagesPlaced++
			r.counters.DataPlaced += uint64(m.Len)
			if c.placed != nil {
				c.placed.Placed(c.peer.ID, m)
			}
		}
		c.account(m, p.swallow, seq)
		*p = placement{}
	}
}

// account counts a message of its transaction, and completes the transaction
// with the last one.
func (c *Conn) account(m *frame.Message, swallow bool, seq frame.Seq) {
	r := &c.rx
	if m.Count <= 1 {
		// Count 0 stands for a completion alone, and in some peers for one
		// message with data (quirk D1-1).
		c.complete(m, swallow)
		return
	}
	in := r.open.find(m.Txn)
	if in == nil {
		in = r.open.add(m)
		in.overtaken, in.later = int32(r.newest-m.Txn) > 0, r.newestAt
	} else {
		r.open.touch(in)
	}
	if m.Index == 1 {
		in.begun, in.first = true, seq
	}
	in.count(m, c.profile.Session, &r.held)
	in.poisoned = in.poisoned || swallow
	if in.got == m.Count {
		c.end(in)
	}
}

// end completes a transaction of which something was kept.
func (c *Conn) end(in *incoming) {
	c.complete(&in.msg, in.poisoned)
	c.rx.open.remove(in)
}

func (c *Conn) complete(m *frame.Message, poisoned bool) {
	r := &c.rx
	if c.profile.Session {
		r.closed.close(m.Txn)
	}
	if poisoned {
		c.ep.event(Event{Kind: TransactionLost, Conn: c, Peer: c.Name(), Txn: m.Txn})
		return
	}
	if m.Completes() {
		c.memory.Complete(c.peer.ID, m)
	}
	r.counters.Completions++
}

// evict gives up as many transactions whose messages will not come any more: those
// silent for longest, but for what the frame at hand continues.
func (c *Conn) evict(n int) {
	r := &c.rx
	for in := r.open.oldest; in != nil && n > 0; {
		next := in.younger
		if in.looked != c.ep.looked {
			r.counters.OpenEvicted++
			c.ep.event(Event{Kind: TransactionLost, Conn: c, Peer: c.Name(), Txn: in.msg.Txn})
			r.open.remove(in)
			n--
		}
		in = next
	}
}

// overtake notes that a younger transaction began. Of those that are open only the
// youngest was not overtaken before.
func (c *Conn) overtake(seq frame.Seq) {
	if in := c.rx.open.find(c.rx.newest); in != nil && !in.overtaken {
		in.overtaken, in.later = true, seq
	}
}

// completeOverCounted completes transactions of which one message too many was
// announced (quirk F16): all frames from the first message to a younger
// transaction are there, one message is missing, and the data has no hole.
func (c *Conn) completeOverCounted() {
	r := &c.rx
	var from, to frame.Seq // these came, but for the last
	for in := r.open.oldest; in != nil; {
		next := in.younger
		if in.begun && in.overtaken && in.got == in.msg.Count-1 && in.high-in.low == in.bytes {
			// No frame is looked at twice, neither for this nor for others.
			if in.first.Before(from) || !in.first.Before(to) {
				from, to = in.first, in.first
			}
			var waits bool
			if to, waits = r.recv.Missing(to, in.later); waits {
				in.first = to
			} else {
				to = in.later.Add(1)
				c.end(in)
			}
		}
		in = next
	}
}
