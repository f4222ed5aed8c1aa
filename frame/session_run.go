package frame

import "encoding/binary"

// SessionRun is a [Run] of frames of a session.
type SessionRun struct {
	words [5]uint64
	kind  uint16 // and whether more follows
	data  int
}

// sessionRunHeaders is the length of the headers of a session frame with one message.
const sessionRunHeaders = SessionHeaderSize + MessageHeaderSize

// Begin makes r that of a frame with that header and that message, of which no other follows.
func (r *SessionRun) Begin(h *SessionHeader, m *Message) {
	var b [sessionRunHeaders]byte
	h.Put(b[:])
	m.Put(b[SessionHeaderSize:])
	le := binary.LittleEndian
	for i := range r.words {
		r.words[i] = le.Uint64(b[8*i:])
	}
	r.kind, r.data = le.Uint16(b[40:]), int(m.Len)
}

// Next makes r that of the frame that goes on, and m its message.
func (r *SessionRun) Next(m *Message) {
	m.Index++
	m.Addr += uint32(m.Len)
	r.words[0] += 1 << 32 // the id; what it carries over is nothing
	r.words[4] = uint64(m.Index) | uint64(m.Addr)<<16 | uint64(m.Len)<<48
}

// Put writes the headers to the beginning of b.
func (r *SessionRun) Put(b []byte) {
	_ = b[sessionRunHeaders-1]
	le := binary.LittleEndian
	le.PutUint64(b, r.words[0])
	le.PutUint64(b[8:], r.words[1])
	le.PutUint64(b[16:], r.words[2])
	le.PutUint64(b[24:], r.words[3])
	le.PutUint64(b[32:], r.words[4])
	le.PutUint16(b[40:], r.kind)
}

// Size returns the length of the frame.
func (r *SessionRun) Size() int { return sessionRunHeaders + r.data }

// Data returns the data of a frame that begins with r, whose length is as r says.
func (r *SessionRun) Data(b []byte) (data []byte, ok bool) {
	if len(b) != r.Size() {
		return nil, false
	}
	le := binary.LittleEndian
	if le.Uint64(b) != r.words[0] || le.Uint64(b[8:]) != r.words[1] || le.Uint64(b[16:]) != r.words[2] ||
		le.Uint64(b[24:]) != r.words[3] || le.Uint64(b[32:]) != r.words[4] || le.Uint16(b[40:]) != r.kind {
		return nil, false
	}
	return b[sessionRunHeaders:], true
}
