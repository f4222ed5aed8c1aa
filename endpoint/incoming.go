package endpoint

import (
	"github.com/dgrdma/dgrdma/frame"
)

// closedTransactions is how many transactions back we know which are over. A
// sender of our kind keeps at most half of it open (profile), so that what lies
// behind is over for certain.
const closedTransactions = 1 << 16

// closedSet knows which transactions of the peer's present life are over.
// Together with the message's index this, and not the frame id, decides
// whether something was applied: frame ids repeat within milliseconds on a
// fast link, transaction ids do not.
type closedSet struct {
	bits     []uint64 // of those above low, by id modulo their number, a power of two
	low, top uint32   // all up to low are over; top is the highest that was seen
}

// begin starts a life whose first transaction id is first.
func (s *closedSet) begin(first uint32) {
	if s.bits == nil {
		s.bits = make([]uint64, 1)
	}
	s.low, s.top = first-1, first-1
}

func (s *closedSet) word(txn uint32) *uint64 { return &s.bits[txn/64%uint32(len(s.bits))] }

func (s *closedSet) has(txn uint32) bool { return *s.word(txn)&(1<<(txn%64)) != 0 }

type age uint8

const (
	ageOpen age = iota
	ageClosed
	ageForeign // neither recent nor near enough ahead for this life
)

func (s *closedSet) age(txn uint32) age {
	d := int32(txn - s.top)
	switch {
	case d > closedTransactions/2 || d < -(1<<30):
		return ageForeign
	case d > 0:
		return ageOpen
	case int32(txn-s.low) <= 0 || s.has(txn):
		return ageClosed
	}
	return ageOpen
}

func (s *closedSet) see(txn uint32) {
	for int32(txn-s.top) > 0 {
		if s.top-s.low == uint32(64*len(s.bits)) {
			s.grow()
		}
		s.top++
		*s.word(s.top) &^= 1 << (s.top % 64)
	}
}

// grow makes room for one more transaction above low, or moves low.
func (s *closedSet) grow() {
	if 64*len(s.bits) == closedTransactions {
		s.low++
		s.rise()
		return
	}
	old := *s
	s.bits = make([]uint64, 2*len(s.bits))
	for txn := s.low + 1; txn != s.top+1; txn++ {
		if old.has(txn) {
			*s.word(txn) |= 1 << (txn % 64)
		}
	}
}

func (s *closedSet) close(txn uint32) {
	*s.word(txn) |= 1 << (txn % 64)
	s.rise()
}

// rise moves low up to the first transaction that is not over.
func (s *closedSet) rise() {
	for s.low != s.top && s.has(s.low+1) {
		s.low++
	}
}

// incoming is a transaction of which messages are missing.
type incoming struct {
	msg      frame.Message // its fields that all messages share
	got      int
	indexes  []uint64 // which messages came, where indexes can be trusted
	poisoned bool     // swallowed or contradictory: it will never complete
	used     bool

	low, high, bytes uint32    // extent of the data and its amount
	first, later     frame.Seq // frames with its first message, and with a younger transaction
	begun, overtaken bool      // first is set; later is
}

// seen reports whether the message with that index came before, and whether
// there can be one with it.
func (in *incoming) seen(index uint16) (seen, possible bool) {
	if index == 0 || index > in.msg.Count {
		return false, false
	}
	i := int(index - 1)
	return in.indexes[i/64]&(1<<(i%64)) != 0, true
}

func (in *incoming) count(m *frame.Message, indexed bool) {
	in.got++
	if indexed {
		i := int(m.Index - 1)
		in.indexes[i/64] |= 1 << (i % 64)
	}
	if in.got == 1 {
		in.low, in.high = m.Addr, m.Addr+uint32(m.Len)
	}
	in.low, in.high = min(in.low, m.Addr), max(in.high, m.Addr+uint32(m.Len))
	in.bytes += uint32(m.Len)
}

// openTable holds the incomplete transactions of one peer: a hash table with
// linear probing, because a map would allocate as entries come and go.
type openTable struct {
	slots []incoming // a power of two, at most half of them used
	n     int
	limit int
}

func (t *openTable) home(txn uint32) int {
	return int(txn*0x9E3779B1>>7) & (len(t.slots) - 1)
}

func (t *openTable) find(txn uint32) *incoming {
	if t.n == 0 {
		return nil
	}
	for i := t.home(txn); t.slots[i].used; i = (i + 1) & (len(t.slots) - 1) {
		if t.slots[i].msg.Txn == txn {
			return &t.slots[i]
		}
	}
	return nil
}

// add makes an entry. Entries move when others come or go: pointers to them
// are good until the next add or remove.
func (t *openTable) add(m *frame.Message, indexed bool) *incoming {
	if 2*(t.n+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]incoming, max(8, 2*len(old)))
		for i := range old {
			if old[i].used {
				*t.place(old[i].msg.Txn) = old[i]
			}
		}
	}
	in := t.place(m.Txn)
	words := 0
	if indexed {
		words = (int(m.Count) + 63) / 64
	}
	kept := in.indexes
	if cap(kept) < words {
		kept = make([]uint64, words)
	}
	kept = kept[:words]
	clear(kept)
	*in = incoming{msg: *m, indexes: kept, used: true}
	t.n++
	return in
}

func (t *openTable) place(txn uint32) *incoming {
	i := t.home(txn)
	for t.slots[i].used {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return &t.slots[i]
}

func (t *openTable) remove(txn uint32) {
	in := t.find(txn)
	if in == nil {
		return
	}
	mask := len(t.slots) - 1
	hole := t.home(txn)
	for &t.slots[hole] != in {
		hole = (hole + 1) & mask
	}
	// Close the gap, so that probing needs no tombstones. The memory of the
	// index bitmap stays in the slot that becomes free.
	for i := (hole + 1) & mask; t.slots[i].used; i = (i + 1) & mask {
		if (i-t.home(t.slots[i].msg.Txn))&mask >= (i-hole)&mask {
			t.slots[hole], t.slots[i] = t.slots[i], t.slots[hole]
			hole = i
		}
	}
	t.slots[hole].used = false
	t.n--
}

func (t *openTable) full(more int) bool { return t.n+more > t.limit }

// oldest returns the entry that is furthest behind the given id, of those that
// the frame at hand does not continue.
func (t *openTable) oldest(newest uint32, frame []placement) *incoming {
	var found *incoming
	for i := range t.slots {
		in := &t.slots[i]
		if in.used && !continues(frame, in.msg.Txn) && (found == nil || newest-in.msg.Txn > newest-found.msg.Txn) {
			found = in
		}
	}
	return found
}

func continues(frame []placement, txn uint32) bool {
	for i := range frame {
		if frame[i].msg.Txn == txn {
			return true
		}
	}
	return false
}

func (t *openTable) reset() {
	for i := range t.slots {
		t.slots[i].used = false
	}
	t.n = 0
}
