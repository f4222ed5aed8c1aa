package dgrdma

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/dgrdma/dgrdma/frame"
)

// piece is a part of a letter that a test sends.
type piece struct {
	letter, off int
	bytes       []byte
	last        bool // the letter's bell rings with it
	length      int
}

// TestLettersAnyOrder checks that letters are read in their order, and whole, in whatever order their
// parts come, and that nothing is kept once all of them were read.
func TestLettersAnyOrder(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var b inbox
	var got []string
	read := func(x []byte) { got = append(got, string(x)) }
	at := 0
	for round := range 300 {
		got = nil
		var want []string
		var pieces []piece
		for units := 0; ; {
			text := fmt.Appendf(nil, "%d.%d", round, len(want))
			text = append(text, bytes.Repeat([]byte("x"), r.IntN([]int{1, 60, MaxLetter - 9}[r.IntN(3)]))...)
			if len(want)%7 == 3 {
				text = nil
			}
			if units += unitsOf(len(text)); units > mailUnits {
				break
			}
			cut := r.IntN(len(text) + 1)
			parts := []piece{{at, 0, text[:cut], false, 0}, {at, cut, text[cut:], false, 0}}
			parts[1].last, parts[1].length = true, len(text)
			pieces = append(pieces, parts...)
			want = append(want, string(text))
			at = unitAfter(at, len(text))
		}
		r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
		last := make(map[int]bool) // the transaction is whole with its second part, whichever that is
		for _, x := range pieces {
			m := frame.Message{Addr: uint32(mailBox + x.letter*mailUnit + x.off), Len: uint16(len(x.bytes))}
			dst, err := b.admit(0, x.letter, &m)
			if err != nil || len(dst) != len(x.bytes) {
				t.Fatalf("seed %d: %d bytes of %d, %v", seed, len(dst), len(x.bytes), err)
			}
			copy(dst, x.bytes)
			if len(dst) > 0 {
				b.place(x.letter, &m)
			}
			if last[x.letter] {
				i := slices.IndexFunc(pieces, func(y piece) bool { return y.letter == x.letter && y.last })
				b.came(x.letter, uint32(pieces[i].length), read)
			}
			last[x.letter] = true
			b.tidy()
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: round %d: %d of %d letters, or not in order", seed, round, len(got), len(want))
		}
		if b.ahead != nil {
			t.Fatalf("seed %d: round %d: memory is kept for nothing: %d", seed, round, b.ahead.n)
		}
	}
}

// TestLettersOfOneFrame checks letters that are all looked at before the first of them is applied, as
// those of one frame are.
func TestLettersOfOneFrame(t *testing.T) {
	var b inbox
	var got []string
	var dst [3][]byte
	texts := []string{"one", "two", "three"}
	var m [3]frame.Message
	for i, text := range texts {
		m[i] = frame.Message{Addr: uint32(mailBox + i*mailUnit), Len: uint16(len(text))}
		dst[i], _ = b.admit(0, i, &m[i])
	}
	for i, text := range texts {
		copy(dst[i], text)
		b.place(i, &m[i])
		b.came(i, uint32(len(text)), func(x []byte) { got = append(got, string(x)) })
	}
	b.tidy()
	if !slices.Equal(got, texts) || b.ahead != nil {
		t.Errorf("%q", got)
	}
}

// TestLettersAheadAreBounded checks that a peer that sends letters after one that never comes has this
// side keep one box, and nothing for the next session.
func TestLettersAheadAreBounded(t *testing.T) {
	const most = 10 << 10
	if n := unsafe.Sizeof(lettersAhead{}); n > most {
		t.Errorf("%d bytes, want %d at most", n, most)
	}
	var b inbox
	for range 3 {
		for i := 1; i < mailUnits; i++ {
			for off := range mailUnit {
				m := frame.Message{Addr: uint32(mailBox + i*mailUnit + off), Len: 1000}
				if _, err := b.admit(0, i, &m); (err == nil) != (off+1000 <= MaxLetter) {
					t.Fatalf("%d bytes at %d: %v", m.Len, off, err)
				}
				b.place(i, &m)
			}
			b.came(i, 1000, func([]byte) { t.Fatal("a letter is read before the one before it") })
		}
	}
	b.reset()
	if b.ahead != nil || b.next != 0 {
		t.Error("something is left for the next session")
	}
}
