package foreign

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
)

// Ledger tells by the number of messages alone when a transaction is over. Of
// peers that may announce one too many (quirk F16) it keeps what tells that by the ids of
// frames.
type Ledger struct {
	open       *reassembly.Table
	recv       *ack.Receiver
	overCounts bool
	newest     uint32 // youngest transaction id
	newestAt   frame.Seq
	known      bool // newest is set
}

func (l *Ledger) forget() { l.known = false }

// Begins is told of each message that is placed, before it is counted.
func (l *Ledger) Begins(m *frame.Message, seq frame.Seq) {
	if l.known && int32(m.Txn-l.newest) <= 0 {
		return
	}
	if l.overCounts {
		l.overtake(seq)
	}
	l.newest, l.newestAt, l.known = m.Txn, seq, true
}

// overtake notes that a younger transaction began. Of those that are open only the
// youngest was not overtaken before.
func (l *Ledger) overtake(seq frame.Seq) {
	if in := l.open.Find(l.newest); in != nil {
		in.Overcount.Overtaken, in.Overcount.Later = true, seq
	}
}

// Mark notes a message of an open transaction.
func (l *Ledger) Mark(in *reassembly.Transaction, m *frame.Message, seq frame.Seq) {
	if in.Got == 0 {
		in.Overcount.Overtaken, in.Overcount.Later = int32(l.newest-m.Txn) > 0, l.newestAt
	}
	if m.Index == 1 {
		in.Overcount.Begun, in.Overcount.First = true, seq
	}
}

// Unmarked returns how many messages may follow one of an open transaction that Mark need not note: indexes say
// nothing, but for 1. They wrap.
func Unmarked(m *frame.Message) int { return int(-m.Index) }

// Overcounted is a look, at the end of a batch, for transactions of which one message too many was announced: all frames
// from the first message to a younger transaction are there, one message is missing, and
// the data has no hole.
type Overcounted struct {
	ledger   *Ledger
	next     *reassembly.Transaction
	from, to frame.Seq // these came, but for the last
}

// Overcounted begins such a look.
func (l *Ledger) Overcounted() (o Overcounted) {
	if l.overCounts {
		o.ledger, o.next = l, l.open.Oldest()
	}
	return o
}

// Next returns the next one, which the caller ends; nil: there is none.
func (o *Overcounted) Next() *reassembly.Transaction {
	for o.next != nil {
		in := o.next
		o.next = in.Younger()
		x := &in.Overcount
		if !x.Begun || !x.Overtaken || in.Got != in.Message.Count-1 || in.High-in.Low != in.Bytes {
			continue
		}
		// No frame is looked at twice, neither for this nor for others.
		if x.First.Before(o.from) || !x.First.Before(o.to) {
			o.from, o.to = x.First, x.First
		}
		var waits bool
		if o.to, waits = o.ledger.recv.Missing(o.to, x.Later); waits {
			x.First = o.to
			continue
		}
		o.to = x.Later.Add(1)
		return in
	}
	return nil
}
