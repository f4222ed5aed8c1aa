package dgrdma

import "github.com/dgrdma/dgrdma/frame"

// inbox puts the letters of a peer in order. It belongs to the holder of the receive lock.
type inbox struct {
	next   int             // where the letter begins that is read next
	in     [MaxLetter]byte // where it goes, unless something came for it before it was the next
	isHere bool            // it does
	ahead  *lettersAhead   // of those after it; nil: nothing came
}

// lettersAhead is what came of letters before it was their turn. It has a place for all of a box, so a peer that
// sends what it likes makes it no larger.
type lettersAhead struct {
	box    [mailLength]byte
	rang   [mailUnits]uint16 // by where a letter begins: its length, and one more; 0: it is not whole
	placed [mailUnits]uint16 // how many bytes of it came
	n      int               // of all these bytes, and one for each letter that is whole
}

// reset begins with the first letter of a session.
func (b *inbox) reset() { b.next, b.isHere, b.ahead = 0, false, nil }

// admit says where a part of a letter goes.
func (b *inbox) admit(base uint64, letter int, m *frame.Message) ([]byte, error) {
	if m.Len == 0 {
		return nil, nil
	}
	off, n := uint64(m.Addr)-base-mailBox-uint64(letter)*mailUnit, uint64(m.Len)
	if off > MaxLetter || off+n > MaxLetter {
		return nil, errNoMail
	}
	if letter == b.next && (b.isHere || b.ahead == nil) {
		b.isHere = true
		return b.in[off:][:n:n], nil
	}
	if b.ahead == nil {
		b.ahead = new(lettersAhead)
	}
	return b.ahead.box[letter*mailUnit:][off:][:n:n], nil
}

// place notes that a part of a letter came.
func (b *inbox) place(letter int, m *frame.Message) {
	if a := b.ahead; a != nil && (letter != b.next || !b.isHere) {
		a.placed[letter] += m.Len
		a.n += int(m.Len)
	}
}

// came is called when the bell of a letter rings: it is whole. Those that are next are read.
func (b *inbox) came(letter int, length uint32, read func([]byte)) {
	switch {
	case length > MaxLetter: // noise
		return
	case letter != b.next:
		if b.ahead == nil {
			b.ahead = new(lettersAhead)
		}
		if a := b.ahead; a.rang[letter] == 0 {
			a.rang[letter] = uint16(length) + 1
			a.n++
		}
		return
	}
	b.read(int(length), read)
	for a := b.ahead; a != nil && a == b.ahead && a.rang[b.next] > 0; {
		n := int(a.rang[b.next]) - 1
		a.rang[b.next] = 0
		a.n--
		b.read(n, read)
	}
}

// read has the next letter read, of n bytes.
func (b *inbox) read(n int, read func([]byte)) {
	bytes := b.in[:n]
	if a := b.ahead; a != nil && !b.isHere {
		bytes = a.box[b.next*mailUnit:][:n]
		a.n -= int(a.placed[b.next])
		a.placed[b.next] = 0
	}
	b.next, b.isHere = unitAfter(b.next, n), false
	read(bytes)
}

// tidy gives back the memory of letters ahead if there are none. It is called between two frames.
func (b *inbox) tidy() {
	if b.ahead != nil && b.ahead.n == 0 {
		b.ahead = nil
	}
}
