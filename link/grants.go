package link

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// grant is the memory of a link, of which its peer may write what the link admits.
type grant struct {
	at, end uint64
	link    *Link
}

// grants is what a peer may write, by address. A table is never changed, but
// replaced.
type grants struct {
	table atomic.Pointer[[]grant]
	last  int // where the one before was found; of the goroutine that receives
}

func (g *grants) add(x grant) {
	g.replace(func(t []grant) []grant {
		i, _ := slices.BinarySearchFunc(t, x.at, byAddress)
		return slices.Insert(slices.Clone(t), i, x)
	})
}

func (g *grants) remove(l *Link) {
	g.replace(func(t []grant) []grant {
		i, found := slices.BinarySearchFunc(t, l.memory.at, byAddress)
		if !found || t[i].link != l {
			return t
		}
		return slices.Delete(slices.Clone(t), i, i+1)
	})
}

func byAddress(x grant, at uint64) int { return cmp.Compare(x.at, at) }

func (g *grants) replace(change func([]grant) []grant) {
	for {
		old := g.table.Load()
		var t []grant
		if old != nil {
			t = *old
		}
		t = change(t)
		if g.table.CompareAndSwap(old, &t) {
			return
		}
	}
}

// find returns the link that an address belongs to. It is called by the goroutine
// that receives.
func (g *grants) find(addr uint64) *Link {
	p := g.table.Load()
	if p == nil {
		return nil
	}
	t := *p
	if i := g.last; i < len(t) && t[i].at <= addr && addr < t[i].end {
		return t[i].link
	}
	i, found := slices.BinarySearchFunc(t, addr, byAddress)
	if !found {
		i--
	}
	if i < 0 || addr >= t[i].end {
		return nil
	}
	g.last = i
	return t[i].link
}

// words are addresses at which a peer writes words, which go to whom they are for
// and not into memory.
type words struct {
	at, end uint64
	pitch   uint32
}

func wordsAt(at, n, pitch uint32) words {
	return words{uint64(at), uint64(at) + uint64(n)*uint64(pitch), pitch}
}

// index returns which word is at addr; -1: none.
func (w *words) index(addr uint64) int {
	if addr < w.at || addr >= w.end {
		return -1
	}
	off := uint32(addr - w.at)
	i := off / w.pitch
	if i*w.pitch != off {
		return -1
	}
	return int(i)
}

// errNotGranted makes a message vanish: it is acknowledged, so that a peer that
// has not heard of a link's end is not held up by it.
var errNotGranted = dgrdma.Swallow(fmt.Errorf("link: nothing of this peer's is at this address"))

// Admit implements [dgrdma.Memory] for one peer.
func (p *peer) Admit(_ dgrdma.EndpointID, m *dgrdma.Message) ([]byte, error) {
	if !m.Completes() {
		return p.admitPlain(m)
	}
	if m.CompletionAddr == letterBell {
		return p.letterAt(uint64(m.Addr), uint64(m.Len))
	}
	l := p.grants.find(uint64(m.CompletionAddr))
	switch {
	case l == nil:
		return nil, errNotGranted
	case l.plain:
		if in, out := l.wordAt(uint64(m.CompletionAddr)); in < 0 && out < 0 {
			return nil, errNotGranted
		}
		return p.admitPlain(m)
	}
	return l.admit(m)
}

// admit admits a message of a host: a credit, or one of the transaction that fills
// the buffer whose flag it completes at.
func (l *Link) admit(m *dgrdma.Message) ([]byte, error) {
	switch in, out := l.wordAt(uint64(m.CompletionAddr)); {
	case in >= 0:
		return l.In.admit(in, m)
	case out >= 0 && m.Len == 0:
		return nil, nil
	}
	return nil, errNotGranted
}

// admitPlain admits data of peers of other kinds: in transactions that complete
// elsewhere or not at all, and words as data.
func (p *peer) admitPlain(m *dgrdma.Message) ([]byte, error) {
	at, n := uint64(m.Addr), uint64(m.Len)
	if n == 0 {
		return nil, nil
	}
	l := p.grants.find(at)
	if l == nil || !l.plain {
		return nil, errNotGranted
	}
	if l.In != nil && at < l.In.words.at {
		off := at - l.memory.at
		if off+n > uint64(len(l.In.bytes)) {
			return nil, errNotGranted
		}
		l.In.freed.Load() // orders what the application gave back before what is written now
		return l.In.bytes[off:][:n:n], nil
	}
	if in, out := l.wordAt(at); n != wordSize || in < 0 && out < 0 {
		return nil, errNotGranted
	}
	return p.wordAsData[:], nil
}

// wordAt returns which flag of ours, or which word of credits, is at an address; -1:
// none.
func (l *Link) wordAt(addr uint64) (in, out int) {
	in, out = -1, -1
	if l.In != nil {
		in = l.In.words.index(addr)
	}
	if l.Out != nil && in < 0 {
		out = l.Out.words.index(addr)
	}
	return in, out
}

// Complete implements [dgrdma.Memory].
func (p *peer) Complete(_ dgrdma.EndpointID, m *dgrdma.Message) {
	if m.CompletionAddr == letterBell {
		p.letterCame(m.CompletionValue)
		return
	}
	if l := p.grants.find(uint64(m.CompletionAddr)); l != nil {
		l.takeWord(uint64(m.CompletionAddr), m.CompletionValue)
	}
}

// Placed implements dgrdma.Placed.
func (p *peer) Placed(_ dgrdma.EndpointID, m *dgrdma.Message) {
	if m.Completes() {
		if l := p.grants.find(uint64(m.CompletionAddr)); l != nil && !l.plain {
			l.In.placed(m)
			return
		}
	}
	if m.Len == wordSize { // some peers write words as data (quirk F15)
		if l := p.grants.find(uint64(m.Addr)); l != nil && l.plain {
			l.takeWord(uint64(m.Addr), binary.LittleEndian.Uint32(p.wordAsData[:]))
		}
	}
}

// takeWord gives a word to whom it is for.
func (l *Link) takeWord(at uint64, value uint32) {
	switch in, out := l.wordAt(at); {
	case in >= 0:
		l.In.takeWord(in, value)
	case out >= 0:
		l.Out.takeWord(out, value)
	}
}
