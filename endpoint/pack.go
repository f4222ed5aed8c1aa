package endpoint

import (
	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// minFragment is the least room for which a message is cut in two: less is
// not worth the header. Arbitrary.
const minFragment = 64

// layout is how data is cut into messages for one kind of peer.
type layout struct {
	chunk, final int
	noLength4    bool
	full         int // data bytes of a message that has a frame to itself
}

func (c *Conn) layout() layout {
	p := &c.profile
	return layout{p.Chunk, p.Final, p.NoLength4, c.frameMax - frame.HeaderSize - frame.MessageHeaderSize}
}

// cut returns how many of the n bytes left of a segment go into a message with
// that much room; 0 if it is better to start a new frame.
func (l *layout) cut(n, room int) int {
	if roundUp(n, l.final) <= room {
		if l.noLength4 && n == 4 {
			return 2
		}
		return n
	}
	if room < minFragment && room < l.full {
		return 0
	}
	return room &^ (l.chunk - 1)
}

// messages returns how many messages a transaction becomes if its first frame
// has that much room.
func (l *layout) messages(t *Transaction, room int) (count int) {
	for i := range t.Segments {
		n := len(t.Segments[i].Bytes)
		for n > 0 {
			take := 0
			if room >= 0 {
				take = l.cut(n, room)
			}
			if take == 0 {
				room = l.full
				continue
			}
			if whole := l.cut(n, l.full); room == l.full && n > 2*whole {
				// One frame after the other is full.
				frames := n/whole - 1
				count += frames
				n -= frames * whole
				continue
			}
			count++
			n -= take
			room = l.after(room, take)
		}
	}
	return count
}

// after returns the room left when a message took that many bytes.
func (l *layout) after(room, take int) int {
	length := roundUp(take, l.final)
	room -= length + frame.PadLen(length) + frame.MessageHeaderSize
	if room < 0 {
		return l.full
	}
	return room
}

// alone returns the bytes of a frame's body that the transaction takes if it is
// not cut, and false if one frame is not enough.
func (l *layout) alone(t *Transaction) (bytes int, fits bool) {
	limit := l.full + frame.MessageHeaderSize
	for i := range t.Segments {
		n := len(t.Segments[i].Bytes)
		if n == 0 {
			continue
		}
		bytes += frame.PadLen(bytes) + frame.MessageHeaderSize + roundUp(n, l.final)
		if bytes > limit {
			return bytes, false
		}
	}
	return max(bytes, frame.MessageHeaderSize), true
}

// fillWhole fills a frame with one message from the midst of a long segment, and
// returns the frame's length. 0: the transaction is not in such a place. It does
// what fill does, for most frames of large transactions, in less time.
func (c *Conn) fillWhole(b []byte, t *Transaction) int {
	if !t.begun || t.segment == len(t.Segments) {
		return 0
	}
	s := &t.Segments[t.segment]
	rest := s.Bytes[t.offset:]
	if len(rest) <= c.frameMax {
		return 0 // it may be the end
	}
	t.packed++
	m := frame.Message{
		Txn: t.id, CompletionAddr: t.Completion.Addr(), CompletionValue: t.Completion.Value(),
		Count: t.count, Index: t.packed, Addr: s.Addr + uint32(t.offset), Len: uint16(c.leastChunk),
	}
	const at = frame.HeaderSize + frame.MessageHeaderSize
	m.Put(b[frame.HeaderSize:])
	copy(b[at:at+c.leastChunk], rest)
	t.offset += c.leastChunk
	t.frames++
	return at + c.leastChunk
}

// fill adds messages of queued transactions to w and returns the first of them
// and how many there are. Guarded by mu.
func (c *Conn) fill(now ack.Instant, w *frame.Writer) (first *Transaction, n int) {
	l := c.layout()
	for t := c.posted.unpacked; t != nil; t = c.posted.unpacked {
		if !t.begun {
			if !c.mayOpen(t) {
				break
			}
			room := w.Room()
			if bytes, fits := l.alone(t); fits && bytes > room+frame.MessageHeaderSize && !w.Empty() {
				// Small transactions are not cut: frames stay fewer.
				break
			}
			count := l.messages(t, room)
			if count > frame.MaxMessages && !w.Empty() {
				break // Post found that it fits when it starts a frame
			}
			c.begin(now, t, count)
		}
		before := t.packed
		empty := t.count == 0
		c.pour(w, &l, t)
		if t.packed > before || (empty && t.complete) {
			t.frames++
			if n++; first == nil {
				first = t
			}
		}
		if !t.complete {
			break
		}
		c.posted.unpacked = t.next
	}
	return first, n
}

// mayOpen reports whether the peer can take one more transaction, of which nothing was
// sent, and whether it is its turn.
func (c *Conn) mayOpen(t *Transaction) bool {
	oldest := c.posted.head
	switch {
	case !oldest.begun:
		return true
	case t.Fence && t != oldest:
		return false
	}
	return int(c.nextTxn-oldest.id) < c.profile.OpenTransactions
}

func (c *Conn) begin(now ack.Instant, t *Transaction, count int) {
	t.begun, t.begunAt = true, now
	t.id = c.nextTxn
	t.count = uint16(count)
	c.nextTxn++
	if bit := c.profile.SkipBit; c.nextTxn&bit != 0 {
		c.nextTxn = (c.nextTxn | (bit - 1)) + 1
	}
}

// pour adds as many of the transaction's messages as fit.
func (c *Conn) pour(w *frame.Writer, l *layout, t *Transaction) {
	m := frame.Message{
		Txn: t.id, CompletionAddr: t.Completion.Addr(), CompletionValue: t.Completion.Value(), Count: t.count,
	}
	if t.count == 0 {
		if w.Room() >= 0 {
			if c.profile.Session {
				m.Index = frame.NotHello
			}
			w.Add(&m)
			t.packedWhole()
		}
		return
	}
	for t.segment < len(t.Segments) {
		s := &t.Segments[t.segment]
		rest := s.Bytes[t.offset:]
		if len(rest) == 0 {
			t.segment, t.offset = t.segment+1, 0
			continue
		}
		room := w.Room()
		if room < 0 {
			return
		}
		take := l.cut(len(rest), room)
		if take == 0 {
			return
		}
		t.packed++
		m.Index = t.packed
		m.Addr = s.Addr + uint32(t.offset)
		m.Len = uint16(roundUp(take, l.final))
		dst := w.Add(&m)
		clear(dst[copy(dst, rest[:take]):])
		t.offset += take
	}
	t.packedWhole()
}
