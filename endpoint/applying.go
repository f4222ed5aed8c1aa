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

// admit checks all messages of a frame before anything of it is done: a frame
// is applied whole or not at all. cur stands at the first message.
func (c *Conn) admit(cur *frame.Cursor) (why Reason, txn uint32, err error) {
	r, e := &c.rx, c.ep
	e.placements = e.placements[:0]
	opening := 0
	var before *placement
	for more := true; more; more = cur.Next() {
		m := &cur.Msg
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
			if before != nil && before.msg.Txn == m.Txn && m.Index <= before.msg.Index {
				return RefusedInconsistent, m.Txn, nil
			}
			// In order, so that a look at the message before finds all of a
			// transaction that this frame opens.
			if before != nil && int32(m.Txn-before.msg.Txn) < 0 {
				return RefusedInconsistent, m.Txn, nil
			}
		}
		if in := r.open.find(m.Txn); in != nil {
			if !in.msg.SameTransaction(m) {
				in.poisoned = true
				return RefusedInconsistent, m.Txn, nil
			}
			if c.profile.Session {
				if seen, _ := in.seen(m.Index); seen {
					return RefusedStale, m.Txn, nil
				}
			}
		} else if before != nil && before.msg.Txn == m.Txn {
			if !before.msg.SameTransaction(m) {
				return RefusedInconsistent, m.Txn, nil
			}
		} else if m.Count > 1 {
			opening++
		}
		dst, err := c.memory.Admit(c.peer.ID, m)
		swallow := false
		if err != nil {
			var s swallowed
			if swallow = errors.As(err, &s); !swallow {
				if errors.Is(err, ErrBounds) {
					return RefusedBounds, m.Txn, err
				}
				return RefusedMemory, m.Txn, err
			}
		} else if len(dst) != int(m.Len) {
			panic("BUG: Memory.Admit returned a slice of the wrong length")
		}
		n := len(e.placements)
		if n == cap(e.placements) {
			e.placements = append(e.placements, placement{})
		}
		e.placements = e.placements[:n+1]
		before = &e.placements[n]
		before.msg, before.dst, before.data, before.swallow = *m, dst, cur.Data, swallow
	}
	if opening > 0 && r.open.full(opening) {
		if !c.profile.NeverRetransmits || opening > r.open.limit {
			return RefusedTooManyOpen, e.placements[0].msg.Txn, nil
		}
		for r.open.full(opening) {
			in := r.open.oldest(r.newest, e.placements)
			if in == nil {
				return RefusedTooManyOpen, e.placements[0].msg.Txn, nil
			}
			c.evict(in)
		}
	}
	return RefusedNone, 0, nil
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
				c.overtake(m.Txn, seq)
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
		in = r.open.add(m, c.profile.Session)
		in.overtaken, in.later = int32(r.newest-m.Txn) > 0, r.newestAt
	}
	if m.Index == 1 {
		in.begun, in.first = true, seq
	}
	in.count(m, c.profile.Session)
	in.poisoned = in.poisoned || swallow
	if in.got == int(m.Count) {
		c.complete(&in.msg, in.poisoned)
		r.open.remove(m.Txn)
	}
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

// evict gives up a transaction whose messages will not come any more.
func (c *Conn) evict(in *incoming) {
	c.rx.counters.OpenEvicted++
	c.ep.event(Event{Kind: TransactionLost, Conn: c, Peer: c.Name(), Txn: in.msg.Txn})
	c.rx.open.remove(in.msg.Txn)
}

// overtake notes that a younger transaction began while older ones are open.
func (c *Conn) overtake(txn uint32, seq frame.Seq) {
	for i := range c.rx.open.slots {
		if in := &c.rx.open.slots[i]; in.used && !in.overtaken && int32(txn-in.msg.Txn) > 0 {
			in.overtaken, in.later = true, seq
		}
	}
}

// completeOverCounted completes transactions of which one message too many was
// announced (quirk F16): all frames from the first message to a younger
// transaction are there, one message is missing, and the data has no hole.
func (c *Conn) completeOverCounted() {
	r := &c.rx
	for i := 0; i < len(r.open.slots); i++ {
		in := &r.open.slots[i]
		if in.used && in.begun && in.overtaken && in.got == int(in.msg.Count)-1 && in.high-in.low == in.bytes &&
			r.recv.Complete(in.first, in.later) {
			m, poisoned := in.msg, in.poisoned
			r.open.remove(m.Txn)
			c.complete(&m, poisoned)
			i = -1 // entries moved
		}
	}
}
