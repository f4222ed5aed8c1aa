package reassembly

import (
	"maps"

	"github.com/dgrdma/dgrdma/frame"
)

// Table holds the transactions of one peer of which messages are missing. No peer can choose its
// ids so that they collide: the map's hash has a seed that it does not know.
type Table struct {
	byTxn            map[uint32]*Transaction
	oldest, youngest *Transaction // by the last message that came
	peak             int          // most entries since the map was made
	limit            int
	held             *Holding
}

// smallTable is how many entries a map has room for without growing, and so what
// is kept of it when it becomes empty.
const smallTable = 8

// Init makes t the table of a peer that may have that many transactions, and is charged for them by h.
func (t *Table) Init(limit int, h *Holding) { *t = Table{limit: limit, held: h} }

// Limit returns how many transactions there may be.
func (t *Table) Limit() int { return t.limit }

// Oldest returns the transaction whose last message came first; nil: there is none.
func (t *Table) Oldest() *Transaction { return t.oldest }

// Len returns how many transactions there are.
func (t *Table) Len() int { return len(t.byTxn) }

// Find returns the transaction with that id; nil: there is none.
func (t *Table) Find(txn uint32) *Transaction {
	if len(t.byTxn) == 0 {
		return nil
	}
	if in := t.youngest; in.Message.Txn == txn {
		return in // mostly
	}
	return t.byTxn[txn]
}

// Add adds the transaction of a message.
func (t *Table) Add(m *frame.Message) *Transaction {
	if t.byTxn == nil {
		t.byTxn = make(map[uint32]*Transaction)
	}
	in := t.held.newTransaction()
	in.Message = *m
	t.byTxn[m.Txn] = in
	t.peak = max(t.peak, len(t.byTxn))
	t.push(in)
	return in
}

// Remove takes a transaction out, which is then gone.
func (t *Table) Remove(in *Transaction) {
	delete(t.byTxn, in.Message.Txn)
	t.unlink(in)
	t.held.free(in)
	switch n := len(t.byTxn); {
	case t.peak <= smallTable:
	case n == 0:
		t.byTxn, t.peak = nil, 0
	case n < t.peak/roomy:
		t.shrink()
	}
}

// roomy is how many times more entries than there are a map may have had: it keeps the room
// for all of them, which no peer is charged for. For each entry that is copied seven went
// before. Arbitrary.
const roomy = 8

// shrink makes a smaller map of the entries that are left.
func (t *Table) shrink() {
	left := make(map[uint32]*Transaction, len(t.byTxn))
	maps.Copy(left, t.byTxn)
	t.byTxn, t.peak = left, len(left)
}

// Reset takes all of them out.
func (t *Table) Reset() {
	for t.oldest != nil {
		t.Remove(t.oldest)
	}
}

// Touch notes that a message of it came.
func (t *Table) Touch(in *Transaction) {
	if in != t.youngest {
		t.unlink(in)
		t.push(in)
	}
}

func (t *Table) push(in *Transaction) {
	in.older, in.younger = t.youngest, nil
	if t.youngest == nil {
		t.oldest = in
	} else {
		t.youngest.younger = in
	}
	t.youngest = in
}

func (t *Table) unlink(in *Transaction) {
	if in.older == nil {
		t.oldest = in.younger
	} else {
		in.older.younger = in.younger
	}
	if in.younger == nil {
		t.youngest = in.older
	} else {
		in.younger.older = in.older
	}
}
