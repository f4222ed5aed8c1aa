package oracle

import (
	"errors"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
)

// Memory is one life of a book's memory.
type Memory struct {
	*dgrdma.Region
	book *Book
	life int
}

var errNotWanted = errors.New("the memory does not want this")

// Begin begins a life of the memory: it is all zeros again.
func (b *Book) Begin() (*Memory, error) {
	r, err := dgrdma.NewRegion(b.size)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.life++
	b.newest = make(map[frame.EndpointID]uint64)
	for _, f := range b.flows {
		f.last = 0
	}
	for _, s := range b.slots {
		clear(s.shadow)
	}
	b.memory = &Memory{Region: r, book: b, life: b.life}
	return b.memory, nil
}

// find returns the transaction that a message is of.
func (b *Book) find(m *frame.Message) (*slot, *attempt) {
	addr := m.CompletionAddr
	if !m.Completes() {
		return nil, nil
	}
	g := int(addr) / grain
	if g >= len(b.at) || b.at[g] == nil {
		return nil, nil
	}
	s := b.at[g]
	if int(addr) != s.base+wordAt {
		return s, nil
	}
	if m.CompletionValue == s.now.number && (s.posted || s.now.completed || s.flow.Unproven) {
		return s, &s.now
	}
	for i := range s.failed {
		if s.failed[i].number == m.CompletionValue {
			return s, &s.failed[i]
		}
	}
	return s, nil
}

// has reports whether a message's data lies in one of the cuts.
func (a *attempt) has(s *slot, m *frame.Message) bool {
	off := int(m.Addr) - s.base - dataAt
	for _, c := range a.cuts {
		if off >= c.Off && off+int(m.Len) <= c.Off+c.Len {
			return true
		}
	}
	return false
}

// Admit implements [dgrdma.Memory].
func (m *Memory) Admit(src frame.EndpointID, msg *frame.Message) ([]byte, error) {
	b := m.book
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.guests(src):
		return nil, dgrdma.Swallow(errNotWanted)
	case msg.Len == 0 && !msg.Completes():
		return nil, nil
	case m.life != b.life:
		b.violate("message for life %d of the memory in life %d: %+v", m.life, b.life, *msg)
		return nil, errNotWanted
	}
	s, a := b.find(msg)
	if a == nil {
		b.violate("message of no transaction: %+v from %d", *msg, src)
		return nil, errNotWanted
	}
	if src != s.flow.Src {
		b.violate("%s is %d's and came from %d", s.name(a.number), s.flow.Src, src)
		return nil, errNotWanted
	}
	if msg.Len > 0 && !a.has(s, msg) {
		b.violate("%s has no data at %#x+%d", s.name(a.number), msg.Addr, msg.Len)
		return nil, errNotWanted
	}
	if a.life < b.newest[src] {
		b.violate("%s is of life %#x of %d, of whose life %#x something came before", s.name(a.number), a.life, src, b.newest[src])
	}
	b.newest[src] = max(b.newest[src], a.life)
	if a.touched && a.in != b.life {
		b.violate("%s comes in life %d of the memory, and came in life %d", s.name(a.number), b.life, a.in)
	}
	a.touched, a.in = true, b.life
	if s.flow.Swallows(a.number) {
		return nil, dgrdma.Swallow(errNotWanted)
	}
	return m.Region.Admit(src, msg)
}

// Placed implements [dgrdma.Placed].
func (m *Memory) Placed(src frame.EndpointID, msg *frame.Message) {
	b := m.book
	b.mu.Lock()
	defer b.mu.Unlock()
	s, a := b.find(msg)
	if a == nil {
		return // Admit told
	}
	if a.placed += int(msg.Len); a.placed > a.total {
		b.violate("%s was placed more than once: %d bytes of %d", s.name(a.number), a.placed, a.total)
	}
}

// Complete implements [dgrdma.Memory].
func (m *Memory) Complete(src frame.EndpointID, msg *frame.Message) {
	m.Region.Complete(src, msg)
	b := m.book
	b.mu.Lock()
	defer b.mu.Unlock()
	s, a := b.find(msg)
	switch {
	case a == nil:
		b.violate("completion of no transaction: %+v from %d", *msg, src)
		return
	case a.completed:
		b.violate("%s completes again", s.name(a.number))
		return
	case s.flow.Swallows(a.number):
		b.violate("%s was swallowed, and completes", s.name(a.number))
		return
	case a.placed != a.total:
		b.violate("%s completes with %d of %d bytes", s.name(a.number), a.placed, a.total)
	}
	if f := s.flow; f.Ordered {
		if a.sequence <= f.last {
			b.violate("%s, number %d of its flow, completes behind number %d", s.name(a.number), a.sequence, f.last)
		}
		f.last = a.sequence
	}
	a.completed = true
	b.applied++
	b.bytes += uint64(a.total)
	b.compare(s, a, "at its completion")
	b.inspect(s, "at a completion")
	copy(s.shadow, m.Bytes()[s.base:])
	if a == &s.now {
		s.failed = nil // nothing of an earlier life comes any more
	}
	b.sweep = (b.sweep + 1) % len(b.slots)
	b.inspect(b.slots[b.sweep], "meanwhile")
}

// compare checks that all bytes of a transaction, and its completion word, are there.
func (b *Book) compare(s *slot, a *attempt, when string) {
	mem, want := b.memory.Bytes()[s.base+dataAt:], s.pattern(a.number)
	for _, c := range a.cuts {
		for i := c.Off; i < c.Off+c.Len; i++ {
			if mem[i] != want[i] {
				b.violate("%s differs %s: byte %d is %#x, want %#x", s.name(a.number), when, i, mem[i], want[i])
				return
			}
		}
	}
	if got := b.memory.Load32(uint32(s.base + wordAt)); got != a.number {
		b.violate("%s %s: the completion word is %d", s.name(a.number), when, got)
	}
}

// inspect checks that a slot holds nothing that nobody wrote.
func (b *Book) inspect(s *slot, when string) {
	mem := b.memory.Bytes()[s.base : s.base+len(s.shadow)]
	for i, got := range mem {
		if got == s.shadow[i] || i >= wordAt && i < wordAt+4 {
			continue
		}
		if off := i - dataAt; off < 0 || !s.may(off, got, b.life) {
			b.violate("slot %#x of flow %d, %s: byte %d is %#x, which nobody wrote", s.base, s.flow.ID, when, i-dataAt, got)
			return
		}
	}
}

// may reports whether a byte of the data can be what somebody wrote since the shadow was drawn.
func (s *slot) may(off int, got byte, life int) bool {
	wrote := func(a *attempt) bool {
		return a.touched && a.in == life && !s.flow.Swallows(a.number) && a.covers(off) && s.pattern(a.number)[off] == got
	}
	if wrote(&s.now) {
		return true
	}
	for i := range s.failed {
		if wrote(&s.failed[i]) {
			return true
		}
	}
	return false
}

func (a *attempt) covers(off int) bool {
	for _, c := range a.cuts {
		if off >= c.Off && off < c.Off+c.Len {
			return true
		}
	}
	return false
}

// Image checks the whole memory, when nobody writes any more.
func (b *Book) Image() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		return
	}
	for i, x := range b.memory.Bytes()[:header] {
		if x != 0 {
			b.violate("byte %#x is %#x and nobody's", i, x)
			break
		}
	}
	for _, s := range b.slots {
		b.inspect(s, "at the end")
		mem := b.memory.Bytes()[s.base:]
		for i := wordAt; i < wordAt+4; i++ {
			if mem[i] != s.shadow[i] {
				b.violate("slot %#x of flow %d, at the end: the completion word is none that completed", s.base, s.flow.ID)
				break
			}
		}
	}
}
