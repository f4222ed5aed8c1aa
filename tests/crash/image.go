package main

import (
	"encoding/binary"
	"fmt"
)

// image judges a slot of a memory that nobody writes any more.
func (j *judge) image(p *process, w *way, slot int) {
	b := p.mem.mem[slot*stride:][:stride]
	last := w.last[slot]
	s := said{record{kind: isComplete, life: last.life, number: last.number}, p.Side, p.Life}
	if word := binary.LittleEndian.Uint32(b[16:]); word != last.completion() && (word != 0 || last != name{}) {
		// The life may have ended before it said that it wrote the word.
		n, _, _ := wordOf(b[dataAt:])
		if n.completion() != word || !last.before(n) || n.lacks(b) >= 0 {
			j.violate(s, wordTooSoon, fmt.Sprintf("slot %d has the word %#x", slot, word))
			return
		}
		s.life, s.number = n.life, n.number
		j.posted(s, w, n, w.of(n))
		last = n
	}
	for at := range dataAt {
		if b[at] != 0 && (at < 16 || at >= 20) {
			j.violate(s, wrongPlace, fmt.Sprintf("byte %d of slot %d", at, slot))
			return
		}
	}
	least := 0
	if last != (name{}) {
		least = last.size()
	}
	known := last
	for at := 0; at < mostData; at += wordSize {
		n, place, ok := wordOf(b[dataAt+at:])
		s.life, s.number = n.life, n.number
		switch {
		case !ok && at < least:
			s.life, s.number = last.life, last.number
			j.violate(s, doneTooSoon, fmt.Sprintf("byte %d of slot %d is missing", at, slot))
			return
		case !ok:
			continue
		case place != at || at >= n.size():
			j.violate(s, wrongPlace, fmt.Sprintf("byte %d of slot %d", at, slot))
			return
		case at < least && n.before(last):
			j.violate(s, lifeOver, fmt.Sprintf("byte %d of slot %d, where %v completed", at, slot, last))
			return
		case n == known:
			continue
		}
		known = n
		t := w.of(n)
		if j.posted(s, w, n, t); t.posted && int(t.slot) != slot {
			j.violate(s, wrongPlace, fmt.Sprintf("slot %d, not %d", slot, t.slot))
		}
	}
}
