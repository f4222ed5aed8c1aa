package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// Bounds of what is kept of the transactions of a flow: those whose messages
// were not all seen, those that wait for acknowledgement, and those shown.
const (
	mostOpen    = 512
	mostWaiting = 256
	mostShown   = 48
)

// Transaction is one transaction as it was seen.
type Transaction struct {
	ID       uint32        `json:"id"`
	Record   int           `json:"record"` // of its first message
	Begin    time.Duration `json:"begin_ns"`
	End      time.Duration `json:"end_ns"`   // its last message
	Acked    time.Duration `json:"acked_ns"` // 0: not seen
	Bytes    int64         `json:"bytes"`
	Messages int           `json:"messages"`
	Of       int           `json:"of"`       // messages that it says it has
	Complete bool          `json:"complete"` // all were seen
}

// Took returns how long it took, until its acknowledgement if that was seen.
func (t *Transaction) Took() time.Duration { return max(t.End, t.Acked) - t.Begin }

type transaction struct {
	Transaction
	head       frame.Message // the fields that all its messages share
	early      bool          // the capture may have begun in the midst of it
	prev, next *transaction
}

// chain is a list of transactions, oldest first.
type chain struct {
	first, last *transaction
	n           int
}

func (c *chain) push(t *transaction) {
	t.prev, t.next = c.last, nil
	if c.last == nil {
		c.first = t
	} else {
		c.last.next = t
	}
	c.last = t
	c.n++
}

func (c *chain) remove(t *transaction) {
	if t.prev == nil {
		c.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		c.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	c.n--
}

// transactions are those of a flow.
type transactions struct {
	byID          map[uint32]*transaction
	open, waiting chain
	spare         *transaction

	firstID uint32 // of the first message of this life
	newest  uint32
	any     bool

	begun, completed, empty int
	underWay                int // when the capture ended
	cutOff                  int // that began before the capture
	never                   int // completed
	times                   histogram
	slowest                 top[Transaction]
	firsts                  []Transaction // the first mostShown of all
	unfinished              top[Transaction]
}

func newTransactions() transactions {
	return transactions{
		byID:       map[uint32]*transaction{},
		slowest:    top[Transaction]{n: mostShown, less: func(a, b *Transaction) bool { return a.Took() < b.Took() }},
		unfinished: top[Transaction]{n: mostShown, less: func(a, b *Transaction) bool { return a.Begin > b.Begin }},
	}
}

// message takes a message that was not seen before, and reports whether it
// completes its transaction.
func (x *transactions) message(m *frame.Message, record int, at time.Duration) bool {
	t := x.byID[m.Txn]
	if t != nil && (t.Complete || !t.head.SameTransaction(m)) {
		// Some peers use one id again and again.
		x.settle(t)
		t = nil
	}
	if t == nil {
		t = x.begin(m, record, at)
	}
	t.Messages++
	t.Bytes += int64(m.Len)
	t.End = max(t.End, at)
	if t.Messages < t.Of {
		return false
	}
	t.Complete = true
	x.completed++
	x.times.add(t.End - t.Begin)
	x.open.remove(t)
	x.waiting.push(t)
	if x.waiting.n > mostWaiting {
		x.settle(x.waiting.first)
	}
	return true
}

func (x *transactions) begin(m *frame.Message, record int, at time.Duration) *transaction {
	if x.open.n == mostOpen {
		x.settle(x.open.first)
	}
	t := x.spare
	if t == nil {
		t = new(transaction)
	}
	x.spare = nil
	if !x.any {
		x.any, x.firstID, x.newest = true, m.Txn, m.Txn
	}
	if int32(m.Txn-x.newest) > 0 {
		x.newest = m.Txn
	}
	*t = transaction{
		Transaction: Transaction{ID: m.Txn, Record: record, Begin: at, End: at, Of: max(int(m.Count), 1)},
		head:        *m,
		early:       int32(m.Txn-x.firstID) <= 0 && m.Index > 1,
	}
	x.begun++
	if m.Count == 0 && m.Len == 0 {
		x.empty++
	}
	x.byID[m.Txn] = t
	x.open.push(t)
	return t
}

// acknowledged notes that the frame with the last messages of n transactions,
// up to id, was acknowledged.
func (x *transactions) acknowledged(id uint32, n int, at time.Duration) {
	for ; n > 0; n, id = n-1, id-1 {
		if t := x.byID[id]; t != nil && t.Complete {
			t.Acked = at
			x.settle(t)
		}
	}
}

// settle stops following a transaction.
func (x *transactions) settle(t *transaction) {
	if t.Complete {
		x.waiting.remove(t)
		x.show(t)
	} else {
		x.open.remove(t)
		if t.early {
			x.cutOff++
		} else {
			x.never++
			x.unfinished.add(t.Transaction)
		}
	}
	delete(x.byID, t.ID)
	x.spare = t
}

func (x *transactions) show(t *transaction) {
	if len(x.firsts) < mostShown {
		x.firsts = append(x.firsts, t.Transaction)
	}
	x.slowest.add(t.Transaction)
}

// settleAll ends a life of the sender.
func (x *transactions) settleAll() {
	for x.waiting.first != nil {
		x.settle(x.waiting.first)
	}
	for x.open.first != nil {
		x.settle(x.open.first)
	}
	x.any = false
}

// waterfall returns what is shown: all if they are few, else those that took
// longest or never ended, in order of their begin.
func (x *transactions) waterfall() []Transaction {
	shown := slices.Clone(x.unfinished.all)
	if len(x.firsts)+len(shown) <= mostShown && x.begun <= mostShown {
		shown = append(shown, x.firsts...)
	} else {
		slices.SortFunc(x.slowest.all, func(a, b Transaction) int { return cmp.Compare(b.Took(), a.Took()) })
		room := max(mostShown-len(shown), mostShown/2)
		shown = append(shown[:min(len(shown), mostShown/2)], x.slowest.all[:min(room, len(x.slowest.all))]...)
	}
	slices.SortFunc(shown, func(a, b Transaction) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Record, b.Record), cmp.Compare(a.ID, b.ID))
	})
	return shown
}
