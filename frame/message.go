package frame

import "encoding/binary"

// MessageHeaderSize is the length of a message header in bytes.
const MessageHeaderSize = 24

// MaxData is the most data bytes that one message can carry.
const MaxData = 65535

// MaxMessages is the most data messages that one transaction can have
// (DGRDMA-003).
const MaxMessages = 65535

// Offsets within a message header.
const (
	msgTxn   = 0
	msgCAddr = 4
	msgCVal  = 8
	msgCount = 12
	msgIndex = 14
	msgAddr  = 16
	msgLen   = 20
	msgType  = 22
	msgMore  = 23
)

// NoCompletion in both completion words means that the transaction writes no
// completion (OpenCPI, not in the specification).
const NoCompletion = 0xFFFFFFFF

// Message is a message header.
type Message struct {
	Txn             uint32
	CompletionAddr  uint32
	CompletionValue uint32
	Count           uint16 // data messages in the transaction; 0: completion only
	Index           uint16 // place of this message among them, from 1
	Addr            uint32
	Len             uint16
	Type            uint8
	More            bool
}

// Completes reports whether the transaction ends with a completion write.
func (m *Message) Completes() bool {
	return m.CompletionAddr != NoCompletion || m.CompletionValue != NoCompletion
}

// SameTransaction reports whether m and o agree in the fields that all messages
// of a transaction share (DGRDMA-023).
func (m *Message) SameTransaction(o *Message) bool {
	return m.Txn == o.Txn && m.CompletionAddr == o.CompletionAddr &&
		m.CompletionValue == o.CompletionValue && m.Count == o.Count
}

// Put writes m to the first MessageHeaderSize bytes of b.
func (m *Message) Put(b []byte) {
	_ = b[MessageHeaderSize-1]
	binary.LittleEndian.PutUint32(b[msgTxn:], m.Txn)
	binary.LittleEndian.PutUint32(b[msgCAddr:], m.CompletionAddr)
	binary.LittleEndian.PutUint32(b[msgCVal:], m.CompletionValue)
	binary.LittleEndian.PutUint16(b[msgCount:], m.Count)
	binary.LittleEndian.PutUint16(b[msgIndex:], m.Index)
	binary.LittleEndian.PutUint32(b[msgAddr:], m.Addr)
	binary.LittleEndian.PutUint16(b[msgLen:], m.Len)
	b[msgType] = m.Type
	b[msgMore] = 0
	if m.More {
		b[msgMore] = 1
	}
}

func (m *Message) get(b []byte) {
	_ = b[MessageHeaderSize-1]
	m.Txn = binary.LittleEndian.Uint32(b[msgTxn:])
	m.CompletionAddr = binary.LittleEndian.Uint32(b[msgCAddr:])
	m.CompletionValue = binary.LittleEndian.Uint32(b[msgCVal:])
	m.Count = binary.LittleEndian.Uint16(b[msgCount:])
	m.Index = binary.LittleEndian.Uint16(b[msgIndex:])
	m.Addr = binary.LittleEndian.Uint32(b[msgAddr:])
	m.Len = binary.LittleEndian.Uint16(b[msgLen:])
	m.Type = b[msgType]
	m.More = b[msgMore] != 0
}

// PadLen returns the number of bytes from n to the next multiple of 8.
func PadLen(n int) int { return -n & 7 }

// Cursor walks the messages of a frame that Parse accepted:
//
//	for c := f.Cursor(); c.Next(); {
//		use(c.Msg, c.Data)
//	}
type Cursor struct {
	Msg  Message
	Data []byte

	rest []byte
}

// Begin puts the cursor before the first message of a frame.
func (c *Cursor) Begin(f *Frame) { c.rest = f.chained() }

// Next steps to the next message and reports whether there is one.
func (c *Cursor) Next() bool { return c.Into(&c.Msg) }

// Into is Next that reads the message into m, where it stays: to copy what was read a
// moment ago field by field waits for it.
func (c *Cursor) Into(m *Message) bool {
	if len(c.rest) < MessageHeaderSize {
		return false
	}
	m.get(c.rest)
	end := MessageHeaderSize + int(m.Len)
	c.Data = c.rest[MessageHeaderSize:end:end]
	if m.More {
		c.rest = c.rest[end+PadLen(end):]
	} else {
		c.rest = nil
	}
	return true
}
