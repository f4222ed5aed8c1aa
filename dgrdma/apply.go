package dgrdma

import (
	"errors"

	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
)

// pendingWrite is a message that passed all checks and waits for the others of
// its frame.
type pendingWrite struct {
	msg     frame.Message
	owner   *view
	dst     []byte
	data    []byte
	discard bool
}

// check checks all messages of a frame before anything of it is done: a frame
// is applied whole or not at all. The first is in the scratch, and its cursor after it.
func (r *receiving) check() (why Reason, txn uint32, err error) {
	d := r.scratch
	cur := &d.cursor
	d.looked++
	all := r.owner()
	var o opening
	var before *pendingWrite
	for p := &d.pendingWrites[0]; ; {
		m := &p.msg
		follows := before != nil && before.msg.Txn == m.Txn
		in := r.open.Find(m.Txn)
		shared := m
		if in != nil {
			shared = &in.Message
		} else if follows {
			shared = &before.msg
		}
		if !shared.SameTransaction(m) {
			// What came first was acknowledged, so its sender was told that it is
			// applied. A sender that contradicts it is not told so (attack A16, SECURITY.md).
			return RefusedInconsistent, m.Txn, nil
		}
		if in != nil && in.Checked != d.looked {
			in.Checked, in.Here = d.looked, 0
			o.known++
		}
		if !follows {
			o.left = 0
		}
		switch {
		case in != nil && in.Got+in.Here < m.Count: // else it ended, and may begin again
			if in.Here++; in.Got+in.Here == m.Count {
				o.n-- // it ends, and makes room for what follows
			}
		case o.left > 0:
			if o.left--; o.left == 0 {
				o.n--
				o.bytes -= reassembly.Size
			}
		case m.Count > 1:
			o.n++
			o.bytes += reassembly.Size
			o.left = m.Count - 1
		}
		// One by one: a literal is built elsewhere, and moved in pieces that wait for it.
		if p.owner = all; all == nil {
			p.owner = r.ownerOf(m)
		}
		p.data, p.discard = cur.Data, false
		if p.dst, err = p.owner.Admit(r.peer.ID, m); err != nil {
			if !isDiscard(err) {
				return refusal(err), m.Txn, err
			}
			p.dst, p.discard = nil, true
		} else if len(p.dst) != int(m.Len) {
			panic("BUG: Memory.Admit returned a slice of the wrong length")
		}
		if !m.More {
			break
		}
		p = d.nextWrite()
		before = &d.pendingWrites[len(d.pendingWrites)-2]
		cur.Into(&p.msg)
	}
	return r.checkOpening(&o), d.pendingWrites[0].msg.Txn, nil
}

// isDiscard reports whether a memory that answers so wants the message to vanish.
func isDiscard(err error) bool {
	if _, ok := err.(discarded); ok {
		return true
	}
	var s discarded
	return errors.As(err, &s)
}

// refusal says why a memory refuses.
func refusal(err error) Reason {
	if errors.Is(err, ErrBounds) {
		return RefusedBounds
	}
	return RefusedMemory
}

// applyChecked applies the messages that admit passed.
func (r *receiving) applyChecked(seq frame.Seq) {
	d := r.scratch
	for i := range d.pendingWrites {
		p := &d.pendingWrites[i]
		m := &p.msg
		if r.ledger != nil {
			r.ledger.Begins(m, seq)
		}
		if p.discard {
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
func (r *receiving) account(p *pendingWrite, seq frame.Seq) {
	m := &p.msg
	if m.Count <= 1 {
		// Count 0 stands for a completion alone, and in some peers for one
		// message with data (quirk D1-1).
		r.complete(m, p.owner, p.discard)
		return
	}
	in := r.open.Find(m.Txn)
	if in == nil {
		in = r.open.Add(m)
	} else {
		r.open.Touch(in)
	}
	if r.ledger != nil {
		r.ledger.Mark(in, m, seq)
	}
	in.Count(m)
	// The messages of one frame that began the transaction may contradict each other.
	in.Lost = in.Lost || p.discard || !in.Message.SameTransaction(m)
	if in.Got == in.Message.Count {
		r.end(in)
	}
}

// endOvercounted completes transactions of which one message too many was announced (quirk F16).
func (r *receiving) endOvercounted() {
	if r.ledger == nil || r.open.Len() == 0 {
		return
	}
	over := r.ledger.Overcounted()
	for in := over.Next(); in != nil; in = over.Next() {
		r.end(in)
	}
}

// end completes a transaction of which something was kept.
func (r *receiving) end(in *reassembly.Transaction) {
	r.complete(&in.Message, r.ownerOf(&in.Message), in.Lost)
	r.open.Remove(in)
}

func (r *receiving) complete(m *frame.Message, owner *view, lost bool) {
	if lost {
		r.events.event(Event{Kind: TransactionLost, Txn: m.Txn})
		return
	}
	if m.Completes() {
		owner.Complete(r.peer.ID, m)
	}
	r.counters.Completions++
}
