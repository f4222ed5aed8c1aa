package link

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
)

// reserved is the beginning of the memory that links do not use: the letter boxes
// are there, as the flags are in OpenCPI's endpoints.
const reserved = 16 << 10

// allocation is the unit in which memory is shared out; OpenCPI aligns buffers
// alike.
const allocation = 128

// block is an endpoint's memory, shared out to links.
type block struct {
	bytes []byte

	mu   sync.Mutex
	free []span // by address, never touching each other
}

type span struct{ at, n uint64 }

func newBlock(size int) (*block, error) {
	if size < 2*reserved || uint64(size) > 1<<32 {
		return nil, fmt.Errorf("link: memory of %d bytes; need %d to 2^32", size, 2*reserved)
	}
	return &block{
		bytes: make([]byte, size-reserved),
		free:  []span{{reserved, uint64(size-reserved) &^ (allocation - 1)}},
	}, nil
}

func (b *block) size() uint64 { return uint64(len(b.bytes)) + reserved }

// take finds room for n bytes. It is as it was left by who had it before.
func (b *block) take(n uint64) (addr uint32, err error) {
	n = max(n+allocation-1, allocation) &^ (allocation - 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.free {
		f := &b.free[i]
		if f.n < n {
			continue
		}
		addr = uint32(f.at)
		f.at += n
		if f.n -= n; f.n == 0 {
			b.free = slices.Delete(b.free, i, i+1)
		}
		return addr, nil
	}
	return 0, fmt.Errorf("link: no %d bytes in one piece left of %d; open the host with more memory: %w", n, b.size(), ErrNoMemory)
}

func (b *block) give(addr uint32, n uint64) {
	s := span{uint64(addr), max(n+allocation-1, allocation) &^ (allocation - 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	i, _ := slices.BinarySearchFunc(b.free, s, func(x, y span) int { return cmp.Compare(x.at, y.at) })
	b.free = slices.Insert(b.free, i, s)
	if i+1 < len(b.free) && s.at+s.n == b.free[i+1].at {
		b.free[i].n += b.free[i+1].n
		b.free = slices.Delete(b.free, i+1, i+2)
	}
	if i > 0 && b.free[i-1].at+b.free[i-1].n == b.free[i].at {
		b.free[i-1].n += b.free[i].n
		b.free = slices.Delete(b.free, i, i+1)
	}
}

// at returns n bytes from an address on, which were taken.
func (b *block) at(addr uint32, n uint64) []byte {
	from := uint64(addr) - reserved
	return b.bytes[from : from+n : from+n]
}

// grant lets a peer write: data from at on, or words at every pitch from at on,
// which go to whom they are for and not into memory.
type grant struct {
	at, end uint64
	data    []byte // nil: words, which owner takes
	pitch   uint32
	owner   wordTaker
}

// wordTaker is told of words that a peer writes. It runs on the goroutine that
// receives.
type wordTaker interface {
	takeWord(i int, value uint32)
	// released returns a number that changes with everything the application gives
	// back: reading it orders that before what is written now.
	released() uint64
}

// grants is what a peer may write, by address. A table is never changed, but
// replaced.
type grants struct {
	table atomic.Pointer[[]grant]
	// Where the last data and the last word were found; of the goroutine that
	// receives.
	lastData, lastWord int
}

func (g *grants) add(more ...grant) {
	g.replace(func(t []grant) []grant { return append(t, more...) })
}

func (g *grants) remove(of wordTaker) {
	g.replace(func(t []grant) []grant {
		return slices.DeleteFunc(t, func(x grant) bool { return x.owner == of })
	})
}

func (g *grants) replace(change func([]grant) []grant) {
	for {
		old := g.table.Load()
		var t []grant
		if old != nil {
			t = slices.Clone(*old)
		}
		t = change(t)
		slices.SortFunc(t, func(x, y grant) int { return cmp.Compare(x.at, y.at) })
		if g.table.CompareAndSwap(old, &t) {
			return
		}
	}
}

// find returns what addr belongs to; last is where the one before was. It is
// called by the goroutine that receives.
func (g *grants) find(addr uint64, last *int) *grant {
	p := g.table.Load()
	if p == nil {
		return nil
	}
	t := *p
	if i := *last; i < len(t) && t[i].at <= addr && addr < t[i].end {
		return &t[i]
	}
	i, found := slices.BinarySearchFunc(t, addr, func(x grant, a uint64) int { return cmp.Compare(x.at, a) })
	if !found {
		i--
	}
	if i < 0 || addr >= t[i].end {
		return nil
	}
	*last = i
	return &t[i]
}

// word returns which word of the grant is at addr; -1: none.
func (x *grant) word(addr uint64) int {
	off := addr - x.at
	if x.pitch == 0 {
		if off != 0 {
			return -1
		}
		return 0
	}
	if off%uint64(x.pitch) != 0 {
		return -1
	}
	return int(off / uint64(x.pitch))
}

// errNotGranted makes a message vanish: it is acknowledged, so that a peer that
// has not heard of a link's end is not held up by it.
var errNotGranted = dgrdma.Swallow(fmt.Errorf("link: nothing of this peer's is at this address"))

// Admit implements [dgrdma.Memory] for one peer.
func (p *peer) Admit(_ frame.EndpointID, m *frame.Message) ([]byte, error) {
	if m.Completes() {
		at := uint64(m.CompletionAddr)
		if x := p.grants.find(at, &p.grants.lastWord); x == nil || x.data != nil || x.word(at) < 0 {
			if m.CompletionAddr != letterBell {
				return nil, errNotGranted
			}
		}
	}
	n := uint64(m.Len)
	if n == 0 {
		return nil, nil
	}
	at := uint64(m.Addr)
	if at < reserved {
		return p.letterAt(at, n)
	}
	x := p.grants.find(at, &p.grants.lastData)
	if x == nil || at+n > x.end {
		return nil, errNotGranted
	}
	if x.data == nil {
		if n != 4 || x.word(at) < 0 {
			return nil, errNotGranted
		}
		return p.wordAsData[:], nil
	}
	x.owner.released()
	return x.data[at-x.at:][:n:n], nil
}

// Complete implements [dgrdma.Memory].
func (p *peer) Complete(_ frame.EndpointID, m *frame.Message) {
	if m.CompletionAddr == letterBell {
		p.letterCame(m.CompletionValue)
		return
	}
	p.take(uint64(m.CompletionAddr), m.CompletionValue)
}

// Placed implements endpoint.Placed: some peers write words as data.
func (p *peer) Placed(_ frame.EndpointID, m *frame.Message) {
	if m.Len == 4 && m.Addr >= reserved {
		p.take(uint64(m.Addr), binary.LittleEndian.Uint32(p.wordAsData[:]))
	}
}

func (p *peer) take(at uint64, value uint32) {
	if x := p.grants.find(at, &p.grants.lastWord); x != nil && x.data == nil {
		x.owner.takeWord(x.word(at), value)
	}
}
