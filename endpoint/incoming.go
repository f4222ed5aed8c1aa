package endpoint

import (
	"maps"

	"github.com/dgrdma/dgrdma/frame"
)

// placement is a message that passed all checks and waits for the others of
// its frame.
type placement struct {
	msg     frame.Message
	owner   *view
	dst     []byte
	data    []byte
	swallow bool
}

// incoming is a transaction of which messages are missing.
type incoming struct {
	msg      frame.Message // its fields that all messages share
	got      uint16
	poisoned bool     // swallowed: it will never complete
	indexes  indexSet // which messages came, where indexes can be trusted

	older, younger *incoming // by the last message that came
	looked         uint32    // the frame whose admission found it
	here           uint16    // messages of it in that frame

	low, high, bytes uint32    // extent of the data and its amount
	first, later     frame.Seq // frames with its first message, and with a younger transaction
	begun, overtaken bool      // first is set; later is
}

func (in *incoming) count(m *frame.Message) {
	in.got++
	if in.got == 1 {
		in.low, in.high = m.Addr, m.Addr
	}
	in.low, in.high = min(in.low, m.Addr), max(in.high, m.Addr+uint32(m.Len))
	in.bytes += uint32(m.Len)
}

// countRun is count for the n messages that follow m.
func (in *incoming) countRun(m *frame.Message, n int) {
	bytes := uint32(n) * uint32(m.Len)
	in.got += uint16(n)
	in.high = max(in.high, m.Addr+uint32(m.Len)+bytes)
	in.bytes += bytes
}

// openTable holds the incomplete transactions of one peer. No peer can choose its
// ids so that they collide: the map's hash has a seed that it does not know.
type openTable struct {
	byTxn            map[uint32]*incoming
	oldest, youngest *incoming // by the last message that came
	peak             int       // most entries since the map was made
	limit            int
	held             *holding
}

// smallTable is how many entries a map has room for without growing, and so what
// is kept of it when it becomes empty.
const smallTable = 8

func (t *openTable) len() int { return len(t.byTxn) }

func (t *openTable) find(txn uint32) *incoming {
	if len(t.byTxn) == 0 {
		return nil
	}
	if in := t.youngest; in.msg.Txn == txn {
		return in // mostly
	}
	return t.byTxn[txn]
}

func (t *openTable) add(m *frame.Message) *incoming {
	if t.byTxn == nil {
		t.byTxn = make(map[uint32]*incoming)
	}
	in := t.held.newEntry()
	in.msg = *m
	t.byTxn[m.Txn] = in
	t.peak = max(t.peak, len(t.byTxn))
	t.push(in)
	return in
}

// remove takes an entry out, which is then gone.
func (t *openTable) remove(in *incoming) {
	delete(t.byTxn, in.msg.Txn)
	t.unlink(in)
	t.held.freeEntry(in)
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
func (t *openTable) shrink() {
	left := make(map[uint32]*incoming, len(t.byTxn))
	maps.Copy(left, t.byTxn)
	t.byTxn, t.peak = left, len(left)
}

func (t *openTable) reset() {
	for t.oldest != nil {
		t.remove(t.oldest)
	}
}

// touch notes that a message of it came.
func (t *openTable) touch(in *incoming) {
	if in != t.youngest {
		t.unlink(in)
		t.push(in)
	}
}

func (t *openTable) push(in *incoming) {
	in.older, in.younger = t.youngest, nil
	if t.youngest == nil {
		t.oldest = in
	} else {
		t.youngest.younger = in
	}
	t.youngest = in
}

func (t *openTable) unlink(in *incoming) {
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
