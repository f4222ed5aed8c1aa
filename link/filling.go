package link

import (
	"fmt"
	"hash/maphash"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// filling is what came of the transaction that fills a buffer, so that a flag is
// believed only when exactly the bytes came that it states: what is in the buffer
// otherwise is of another message, and may be of another peer.
type filling struct {
	txn    uint32
	begun  bool
	prefix uint32 // bytes from the buffer's beginning on
	apart  uint64 // of the others: see came
}

// came notes that the bytes from one offset to another came. Those that are not next
// add the mark of their end and take off that of their beginning: so runs that join
// up add to what one run of all of them would, and others do not, because nobody can
// guess the marks.
func (f *filling) came(from, to uint32) {
	if from == f.prefix {
		f.prefix = to
		return
	}
	f.apart += mark(to) - mark(from)
}

// exactly reports whether the first n bytes came, each of them once, and no others.
func (f *filling) exactly(n uint32) bool {
	if f.prefix == n {
		return f.apart == 0 // as below, in less time
	}
	return f.apart == mark(n)-mark(f.prefix)
}

var markSeed = maphash.MakeSeed()

// mark is a random number that stands for an offset.
func mark(off uint32) uint64 { return maphash.Comparable(markSeed, off) }

// admit admits a message of the transaction that fills buffer i. Only one does
// between two times that the application gives the buffer back, and with nothing but
// that buffer: so nothing changes what the application was handed out.
func (c *Consumer) admit(i int, m *dgrdma.Message) ([]byte, error) {
	f := &c.filling[i]
	n, off := uint64(m.Len), uint64(m.Addr)-c.link.memory.At-uint64(i)*c.wire.pitch
	var bad string
	switch {
	case c.flags[i].Load() != 0:
		bad = "was filled before it was given back"
	case f.begun && f.txn != m.Txn:
		bad = "is filled by two transactions"
	case n > 0 && m.Count == 0:
		bad = "gets data that its transaction does not count"
	case n > 0 && (off > uint64(c.wire.size) || off+n > uint64(c.wire.size)):
		bad = fmt.Sprintf("completes with data that is not in it, at %#x", m.Addr)
	default:
		f.begun, f.txn = true, m.Txn
		if n == 0 {
			return nil, nil
		}
		return c.bytes[uint64(i)*c.wire.pitch+off:][:n:n], nil
	}
	c.link.fail(fmt.Errorf("buffer %d %s: %w", i, bad, ErrProtocol))
	return nil, errNotGranted
}

// placed notes data that admit admitted.
func (c *Consumer) placed(m *dgrdma.Message) {
	i := c.words.index(uint64(m.CompletionAddr))
	off := m.Addr - uint32(c.link.memory.At) - uint32(i)*uint32(c.wire.pitch)
	c.filling[i].came(off, off+uint32(m.Len))
}
