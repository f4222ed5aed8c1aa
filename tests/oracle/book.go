package oracle

import (
	"fmt"
	"sync"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/worlds"
)

// Where things are in a slot.
const (
	wordAt = 16 // the completion word
	dataAt = 64
	grain  = 64 // slots begin at multiples of this
	header = 64 // bytes in front of the first slot, which are nobody's
)

// Cut is a piece of a slot's data.
type Cut struct{ Off, Len int }

// Flow is a sequence of transactions of one peer, and the slots that it has.
type Flow struct {
	ID        int
	Src       frame.EndpointID // of the peer
	Size      int              // of the data of a slot
	Slots     int
	Ordered   bool // its completions come in the order in which it posted
	Swallowed bool // of three transactions the memory swallows one
	Unproven  bool // done means that it was sent

	slots []int
	last  uint64 // sequence number of the latest that completed, in this life of the memory
}

// Swallows reports whether the memory swallows that transaction of the flow.
func (f *Flow) Swallows(number uint32) bool { return f.Swallowed && number%3 == 0 }

// attempt is one transaction.
type attempt struct {
	number    uint32
	sequence  uint64 // within the flow
	life      uint64 // of the peer
	cuts      []Cut
	total     int
	placed    int
	completed bool
	touched   bool // something of it was admitted
	in        int  // life of the memory then
}

// slot is a place for one transaction at a time.
type slot struct {
	flow   *Flow
	base   int
	number uint32
	posted bool      // now is under way
	now    attempt   // the latest
	failed []attempt // before it, of which anything may still come
	shadow []byte    // what the slot holds beside them
}

// Book is what is known of one memory through all its lives. Its methods may be called by
// anyone at any time.
type Book struct {
	name   string
	report func(string)

	mu      sync.Mutex
	life    int
	flows   map[int]*Flow
	slots   []*slot
	at      []*slot // by grain
	size    int
	newest  map[frame.EndpointID]uint64 // life of each peer of which something was admitted
	guests  func(frame.EndpointID) bool
	memory  *Memory
	sweep   int
	applied uint64
	bytes   uint64
}

// NewBook returns a book that tells report of violations. What comes from guests is refused
// and nothing else.
func NewBook(name string, guests func(frame.EndpointID) bool, report func(string)) *Book {
	return &Book{name: name, report: report, guests: guests, size: header, flows: make(map[int]*Flow), at: make([]*slot, header/grain)}
}

// Add finds room for a flow. It is not called once there is a memory.
func (b *Book) Add(f Flow) *Flow {
	own := &f
	b.flows[f.ID] = own
	stride := dataAt + (f.Size+grain-1)/grain*grain + grain
	for range f.Slots {
		s := &slot{flow: own, base: b.size, shadow: make([]byte, stride)}
		own.slots = append(own.slots, len(b.slots))
		b.slots = append(b.slots, s)
		for range stride / grain {
			b.at = append(b.at, s)
		}
		b.size += stride
	}
	return own
}

// Size returns how long the memory has to be.
func (b *Book) Size() int { return b.size }

// Applied returns how many transactions completed, and with how many bytes.
func (b *Book) Applied() (transactions, bytes uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.applied, b.bytes
}

func (b *Book) violate(format string, args ...any) {
	b.report(b.name + ": " + fmt.Sprintf(format, args...))
}

// pattern returns the data that transaction number has for a slot of which cuts are sent.
func (s *slot) pattern(number uint32) []byte {
	n := s.flow.Size
	at := int((number*2654435761 + uint32(s.base)*40503) >> 8)
	at %= len(worlds.Table) - n
	return worlds.Table[at : at+n]
}

func (s *slot) name(number uint32) string {
	return fmt.Sprintf("transaction %d in slot %#x of flow %d", number, s.base, s.flow.ID)
}

// Posting is what is to be posted.
type Posting struct {
	Word, Number uint32 // of the completion
	Data         uint32 // address of the slot's data
	Bytes        []byte // its pattern: the cuts of it are sent
}

// Next begins the next transaction in the i-th slot of a flow, whose last one is done. life is
// that of the peer, which never goes back. It is told before it is posted.
func (b *Book) Next(f *Flow, i int, sequence, life uint64, cuts []Cut) Posting {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.slots[f.slots[i]]
	if s.posted {
		panic("BUG: oracle: " + s.name(s.number) + " is under way")
	}
	if s.number++; s.number == 1<<32-1 {
		panic("BUG: oracle: numbers are used up")
	}
	s.posted = true
	s.now = attempt{number: s.number, sequence: sequence, life: life, cuts: append(s.now.cuts[:0], cuts...)}
	for _, c := range cuts {
		s.now.total += c.Len
	}
	return Posting{Word: uint32(s.base + wordAt), Number: s.number, Data: uint32(s.base + dataAt), Bytes: s.pattern(s.number)}
}

// Withdraw takes back what was not posted after all.
func (b *Book) Withdraw(f *Flow, i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.slots[f.slots[i]]
	s.posted = false
	if s.now.touched {
		b.violate("%s was not posted, and came", s.name(s.number))
	}
}

// Done is told how a transaction went when that is reported, before the slot is used again.
func (b *Book) Done(f *Flow, i int, number uint32, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.slots[f.slots[i]]
	if !s.posted || number != s.number {
		b.violate("%s is reported done (%v) though it is not under way", s.name(number), err)
		return
	}
	s.posted = false
	a := &s.now
	switch {
	case err == nil && f.Unproven:
		return
	case err == nil && f.Swallows(number):
	case err == nil && !a.completed:
		b.violate("%s is reported done and did not complete: %d of %d bytes are there", s.name(number), a.placed, a.total)
	case err == nil && a.in == b.life:
		b.compare(s, a, "when it is reported done")
	}
	if !a.completed {
		failed := *a
		failed.cuts = append([]Cut(nil), a.cuts...)
		s.failed = append(s.failed, failed)
	}
}

// Free reports whether a slot can be used again: of an unproven flow, whether its transaction
// has completed, too.
func (b *Book) Free(f *Flow, i int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.slots[f.slots[i]]
	return !s.posted && (!f.Unproven || s.number == 0 || s.now.completed)
}
