package outgoing

import "math"

// Lending says which bytes of transactions leave from where they are, without a copy.
type Lending struct {
	Least int // bytes that a frame has of its transaction then, at least
	Most  int // how many such bytes a batch may have, and those of another frame
}

const (
	// leastLent is how many bytes of its transaction a frame has at least that leaves with
	// them where they are: fewer are copied sooner than the system is told of another piece.
	// With 8932 it carries 1.1 times as much, with 1408, over UDP, less.
	leastLent = 4096
	// mostLent bounds such bytes of a batch: 256 KiB carry 0.95 times as much.
	mostLent = 1 << 20
	// leastSealed is that where frames are sealed: the bytes are copied once, to where they are sealed, and are still in the
	// nearest cache then. Arbitrary.
	leastSealed = 512
	// mostSealed bounds such bytes: half as many carry 0.9 times as much, twice as many hardly more.
	mostSealed = 1 << 18
)

// LendingOf returns what an endpoint lends whose frames are sealed, or not. Where something looks at each frame
// in one piece, it lends nothing.
func LendingOf(sealed, onePiece bool) Lending {
	l := Lending{Least: leastLent, Most: mostLent}
	if sealed {
		l = Lending{Least: leastSealed, Most: mostSealed}
	}
	if onePiece {
		l.Least = math.MaxInt
	}
	return l
}

// Frame returns the buffer of a frame that begins with so many bytes, which are still to be written, and
// ends with these bytes of a transaction; and the bytes, if they stay where they are: they are needed until another batch has
// ended. After the buffer there is room for that many more.
func (b *Batch) Frame(head int, end []byte, spare int) (buf, rest []byte) {
	head += b.headroom
	if length := head + len(end); len(end) < b.lending.Least {
		buf = b.Buffer(length + spare)[:length]
		copy(buf[head:], end)
		return buf, nil
	}
	if b.lent == 0 {
		b.lends.Store(true)
	}
	b.lent += len(end)
	return b.Buffer(head + spare)[:head], end
}

// IsLending reports whether the batch has bytes of transactions that were not copied. Any goroutine may call it.
func (b *Batch) IsLending() bool { return b.lends.Load() }

// Abandon notes that no batch is sent any more, so that all bytes are back. Any goroutine may call it.
func (b *Batch) Abandon() { b.lends.Store(false) }
