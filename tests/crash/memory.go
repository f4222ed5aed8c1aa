package main

import "github.com/dgrdma/dgrdma/dgrdma"

// memory is a side's memory, which looks at each transaction when it completes.
type memory struct {
	*dgrdma.Region
	s      *side
	newest uint16 // life of the peer of which something came
}

func newMemory(s *side) dgrdma.Memory {
	m := &memory{Region: s.region, s: s}
	if s.Manner.Looks {
		return &looking{memory: m}
	}
	return m
}

// Complete implements [dgrdma.Memory].
func (m *memory) Complete(src dgrdma.EndpointID, msg *dgrdma.Message) {
	m.s.reached(beforeWord)
	slot := m.slot(msg.CompletionAddr)
	n, _, ok := wordOf(slot[dataAt:])
	switch at := n.lacks(slot); {
	case !ok || n.completion() != msg.CompletionValue:
		m.s.wrong(wordTooSoon, n, "its word is another one's")
	case at >= 0:
		m.s.wrong(wordTooSoon, n, at)
	}
	m.notOver(n)
	m.Region.Complete(src, msg)
	m.s.report(record{kind: isComplete, life: n.life, number: n.number})
	m.s.reached(behindWord)
}

func (m *memory) slot(at uint32) []byte { return m.Bytes()[at/stride*stride:][:stride] }

// notOver sees that nothing comes of a life of the peer behind something of a later one.
func (m *memory) notOver(n name) {
	if n.life < m.newest {
		m.s.wrong(lifeOver, n, m.newest)
	}
	m.newest = max(m.newest, n.life)
}

// looking is memory that looks at data, too, as it is placed.
type looking struct {
	*memory
	begun [slots]name
}

// Placed implements [dgrdma.Placed].
func (m *looking) Placed(_ dgrdma.EndpointID, msg *dgrdma.Message) {
	m.s.reached(placed)
	slot := int(msg.Addr / stride)
	first := (int(msg.Addr) + wordSize - 1) / wordSize * wordSize
	for at := first; at+wordSize <= int(msg.Addr)+int(msg.Len); at += wordSize {
		n, place, ok := wordOf(m.Bytes()[at:])
		if !ok || place != at-slot*stride-dataAt {
			m.s.wrong(wrongPlace, n, at)
			return
		}
		if n == m.begun[slot] {
			continue
		}
		m.notOver(n)
		if n.before(m.begun[slot]) {
			m.s.wrong(lifeOver, n, m.begun[slot])
		}
		m.begun[slot] = n
		m.s.report(record{kind: isBegun, life: n.life, number: n.number})
	}
}
