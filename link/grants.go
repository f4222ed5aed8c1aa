package link

import (
	"encoding/binary"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Admit implements [dgrdma.Handler].
func (p *peer) Admit(_ dgrdma.EndpointID, m *dgrdma.Message) ([]byte, error) {
	if !m.Completes() {
		return p.checkPlain(m)
	}
	l, _ := p.grants.Find(uint64(m.CompletionAddr))
	switch {
	case l == nil:
		return nil, errNotGranted
	case l.plain:
		if _, in, out := l.wordAt(uint64(m.CompletionAddr)); in < 0 && out < 0 {
			return nil, errNotGranted
		}
		return p.checkPlain(m)
	}
	return l.checkMessage(m)
}

// checkMessage checks a message of a link host: it is a credit, or one of the transaction that fills the
// buffer whose flag it completes at.
func (l *Link) checkMessage(m *dgrdma.Message) ([]byte, error) {
	switch r, in, out := l.wordAt(uint64(m.CompletionAddr)); {
	case in >= 0:
		return l.In.checkFill(r, in, m)
	case out >= 0 && m.Len == 0:
		return nil, nil
	}
	return nil, errNotGranted
}

// checkPlain checks data of peers of other kinds: in transactions that complete elsewhere or not at
// all, and words as data.
func (p *peer) checkPlain(m *dgrdma.Message) ([]byte, error) {
	at, n := uint64(m.Addr), uint64(m.Len)
	if n == 0 {
		return nil, nil
	}
	l, _ := p.grants.Find(at)
	if l == nil || !l.plain {
		return nil, errNotGranted
	}
	if l.In != nil && at < l.In.first.words.at {
		off := at - l.memory.At
		if off+n > uint64(len(l.In.first.bytes)) {
			return nil, errNotGranted
		}
		l.In.freed.Load() // orders what the application gave back before what is written now
		return l.In.first.bytes[off:][:n:n], nil
	}
	if _, in, out := l.wordAt(at); n != wordSize || in < 0 && out < 0 {
		return nil, errNotGranted
	}
	return p.wordAsData[:], nil
}

// wordAt returns which flag of this side's, and of which ring, or which word of credits, is at an
// address; -1: none.
func (l *Link) wordAt(addr uint64) (r *inRing, in, out int) {
	in, out = -1, -1
	if l.In != nil {
		r, in = l.In.flagAt(addr)
	}
	if l.Out != nil {
		out = l.Out.words.index(addr)
	}
	return r, in, out
}

// Complete implements [dgrdma.Handler].
func (p *peer) Complete(_ dgrdma.EndpointID, m *dgrdma.Message) {
	if l, ok := p.grants.Find(uint64(m.CompletionAddr)); ok {
		l.takeWord(uint64(m.CompletionAddr), m.CompletionValue)
	}
}

// Placed implements dgrdma.Placed.
func (p *peer) Placed(_ dgrdma.EndpointID, m *dgrdma.Message) {
	if m.Completes() {
		if l, ok := p.grants.Find(uint64(m.CompletionAddr)); ok && !l.plain {
			l.In.addPartial(m)
			return
		}
	}
	if m.Len == wordSize { // some peers write words as data (quirk F15)
		if l, ok := p.grants.Find(uint64(m.Addr)); ok && l.plain {
			l.takeWord(uint64(m.Addr), binary.LittleEndian.Uint32(p.wordAsData[:]))
		}
	}
}

// takeWord gives a word to the half that it is for.
func (l *Link) takeWord(at uint64, value uint32) {
	switch r, in, out := l.wordAt(at); {
	case in >= 0:
		l.In.takeWord(r, in, value)
	case out >= 0:
		l.Out.takeWord(out, value)
	}
}
