package frame

import "encoding/binary"

// Run is what the headers of a frame are, as the words in which a processor compares them, if
// the frame goes on where the one before ended: it holds one message of the same transaction,
// with as many bytes for the addresses behind those, under the next index and the next id.
type Run struct {
	words [4]uint64
	kind  uint16 // and whether more follows
	data  int
}

// runHeaders is the length of the headers of a frame with one message.
const runHeaders = HeaderSize + MessageHeaderSize

// Begin makes r that of a frame with that header and that message, of which no other follows.
func (r *Run) Begin(h *Header, m *Message) {
	r.words[0] = uint64(h.Dst) | uint64(h.Src)<<16 | uint64(h.Seq)<<32 | uint64(h.AckStart)<<48
	r.words[1] = uint64(h.AckCount) | uint64(h.Flags)<<8 | uint64(m.Txn)<<16 | uint64(m.CompletionAddr)<<48
	r.words[2] = uint64(m.CompletionAddr)>>16 | uint64(m.CompletionValue)<<16 | uint64(m.Count)<<48
	r.words[3] = uint64(m.Index) | uint64(m.Addr)<<16 | uint64(m.Len)<<48
	r.kind, r.data = uint16(m.Type), int(m.Len)
}

// Next makes r that of the frame that goes on, and m its message.
func (r *Run) Next(m *Message) {
	m.Index++
	m.Addr += uint32(m.Len)
	const seq = 0xFFFF << 32
	r.words[0] = r.words[0]&^seq | (r.words[0]+1<<32)&seq
	r.words[3] = uint64(m.Index) | uint64(m.Addr)<<16 | uint64(m.Len)<<48
}

// Put writes the headers to the beginning of b.
func (r *Run) Put(b []byte) {
	_ = b[runHeaders-1]
	le := binary.LittleEndian
	le.PutUint64(b, r.words[0])
	le.PutUint64(b[8:], r.words[1])
	le.PutUint64(b[16:], r.words[2])
	le.PutUint64(b[24:], r.words[3])
	le.PutUint16(b[32:], r.kind)
}

// Size returns the length of the frame.
func (r *Run) Size() int { return runHeaders + r.data }

// Data returns the data of a frame that begins with r, whose length is as r says.
func (r *Run) Data(b []byte) (data []byte, ok bool) {
	if len(b) != r.Size() {
		return nil, false
	}
	le := binary.LittleEndian
	if le.Uint64(b) != r.words[0] || le.Uint64(b[8:]) != r.words[1] || le.Uint64(b[16:]) != r.words[2] ||
		le.Uint64(b[24:]) != r.words[3] || le.Uint16(b[32:]) != r.kind {
		return nil, false
	}
	return b[runHeaders:], true
}
