package link

import (
	"fmt"

	"github.com/dgrdma/dgrdma/endpoint/space"
)

// leastMemory is what every link takes, so that the host's memory bounds what peers can make it keep
// for links: about once more the same.
const leastMemory = 2 << 10

// takeMemory finds memory for a link of the peer, none of which is in quarantine.
func (p *peer) takeMemory(n uint64) (space.Span, error) {
	h := p.host
	p.mu.Lock() // no link is retired between the look at the quarantine and Take
	defer p.mu.Unlock()
	s, ok := h.block.Take(n, p.quarantine...)
	if ok {
		return s, nil
	}
	h.counters.memory.Add(1)
	if len(p.quarantine) > 0 {
		return s, fmt.Errorf("link: no %d bytes in one piece left of %d without those of %d ended links whose end this peer has not answered: %w", n, h.size, len(p.quarantine), ErrNoMemory)
	}
	return s, fmt.Errorf("link: no %d bytes in one piece left of %d; open the host with more memory: %w", n, h.size, ErrNoMemory)
}

// allocate takes as much memory as the halves of this side need, and lets the peer write there. in
// describes the half that receives, and gets its addresses. out describes the half that sends, and
// gets the address of its credits, which are creditWords words.
func (l *Link) allocate(in, out *half, creditWords uint32, o *Options) error {
	var need uint64
	if in != nil {
		in.setPitches()
		need += in.memory()
	}
	if out != nil {
		need += uint64(creditWords) * wordSize
	}
	need = max(need, leastMemory)
	var err error
	if l.memory, err = l.peer.takeMemory(need); err != nil {
		return err
	}
	at := uint32(l.memory.At)
	if in != nil {
		n := in.Buffers * in.Pitch
		in.Data, in.Flags = at, at+n
		data := l.host.block.Bytes(space.Span{At: l.memory.At, N: uint64(n)})
		if l.plain {
			clear(data) // nothing says whether all of a message came
		}
		l.In = newConsumer(l, in, data)
		l.In.handle = o.Handle
		at = in.Flags + in.Buffers*in.FlagPitch
	}
	if out != nil {
		out.Credit = at
		l.Out = newProducer(l, o)
		l.Out.words = wordsAt(at, creditWords, wordSize)
	}
	l.peer.grants.Add(l.memory, l)
	return nil
}
