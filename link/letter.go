package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Two hosts agree on links by letters.
const boxSize = dgrdma.MaxLetter

const (
	letterMagic   = 0x4C47 // "GL"
	letterVersion = 2
)

type letterKind uint8

const (
	letterOpen   letterKind = iota + 1 // the dialer wants a link
	letterAccept                       // the listener agrees
	letterRefuse                       // the listener does not: text says why
	letterClose                        // the sender posts nothing more for this link; text says why if that is early
	letterGrow                         // the sender has more buffers for what it receives: out says where
	letterGrown                        // the receiver of letterGrow fills them from message first on
)

// Limits of what a letter holds.
const (
	MaxPrivate = 256 // bytes of private data
	MaxName    = 64  // bytes of a port's name
	maxText    = 256
)

// direction says which direction messages go, as the dialer sees it.
type direction uint8

const (
	toListener direction = 1 << iota
	toDialer
)

// letter is a control message from host to host.
type letter struct {
	kind       letterKind
	directions direction
	hadAll     bool // of letterClose: end of file has come, and all before it
	refusal    refusal
	from       uint32 // the sender's number for the link
	to         uint32 // the receiver's; 0 if not known yet
	attempt    uint64 // the dialer's number for the whole link, never used again
	first      uint32 // of letterGrown: the low bits of the number of a message
	out        half   // dialer to listener
	back       half
	name       string
	private    []byte
	text       string
}

var errLetter = errors.New("link: damaged letter")

const letterHeader = 2 + 1 + 1 + 1 + 3 + 4 + 4 + 8 + 4

// put encodes a letter and returns its length. b has boxSize bytes.
func (l *letter) put(b []byte) int {
	le := binary.LittleEndian
	w := b[:0]
	w = le.AppendUint16(w, letterMagic)
	had := byte(0)
	if l.hadAll {
		had = 1
	}
	w = append(w, letterVersion, byte(l.kind), byte(l.directions), had, byte(l.refusal), 0)
	w = le.AppendUint32(w, l.from)
	w = le.AppendUint32(w, l.to)
	w = le.AppendUint64(w, l.attempt)
	w = le.AppendUint32(w, l.first)
	for _, h := range []*half{&l.out, &l.back} {
		for _, v := range h.fields() {
			w = le.AppendUint32(w, *v)
		}
	}
	for _, s := range []string{l.name, string(l.private), l.text} {
		w = le.AppendUint16(w, uint16(len(s)))
		w = append(w, s...)
	}
	if len(w) > boxSize {
		panic("BUG: letter too long")
	}
	return len(w)
}

// bounded cuts a text to what a letter holds.
func bounded(text string) string { return text[:min(len(text), maxText)] }

// printable replaces the characters of a peer's text that could control a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

func (h *half) fields() [7]*uint32 {
	return [...]*uint32{&h.Buffers, &h.Size, &h.Pitch, &h.Data, &h.Flags, &h.FlagPitch, &h.Credit}
}

// parseLetter reads a letter. Of another version only the header is read.
func parseLetter(b []byte) (l letter, err error) {
	le := binary.LittleEndian
	if len(b) < letterHeader || le.Uint16(b) != letterMagic {
		return l, errLetter
	}
	l.kind, l.directions, l.hadAll, l.refusal = letterKind(b[3]), direction(b[4]), b[5] == 1, refusal(b[6])
	l.from, l.to, l.attempt, l.first = le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint64(b[16:]), le.Uint32(b[24:])
	if b[2] != letterVersion {
		return l, fmt.Errorf("link: the peer speaks version %d of links, this is version %d: %w", b[2], letterVersion, ErrVersion)
	}
	b = b[letterHeader:]
	for _, h := range []*half{&l.out, &l.back} {
		for _, v := range h.fields() {
			if len(b) < 4 {
				return l, errLetter
			}
			*v, b = le.Uint32(b), b[4:]
		}
	}
	var parts [3][]byte
	for i, most := range []int{MaxName, MaxPrivate, maxText} {
		if len(b) < 2 {
			return l, errLetter
		}
		n := int(le.Uint16(b))
		if b = b[2:]; n > most || n > len(b) {
			return l, errLetter
		}
		parts[i], b = b[:n], b[n:]
	}
	if len(b) != 0 || l.kind < letterOpen || l.kind > letterGrown {
		return l, errLetter
	}
	l.name, l.private, l.text = string(parts[0]), append([]byte(nil), parts[1]...), string(parts[2])
	return l, nil
}
