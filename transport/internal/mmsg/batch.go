package mmsg

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Batch collects messages, each gathered from pieces of memory, for one call
// of sendmmsg. It belongs to one goroutine.
type Batch struct {
	headers  []header
	iovecs   []unix.Iovec
	names    []Name
	controls []byte
	control  int
	n, vecs  int
	waiting  Waiting
}

// NewBatch makes room for messages of altogether that many pieces, each message
// with that many bytes of control messages.
func NewBatch(messages, pieces, control int) *Batch {
	return &Batch{
		headers: make([]header, messages), iovecs: make([]unix.Iovec, pieces), names: make([]Name, messages),
		controls: make([]byte, messages*control), control: control,
	}
}

// Reset empties the batch.
func (b *Batch) Reset() {
	b.n, b.vecs = 0, 0
	b.waiting.Begin()
}

// Len returns the number of messages.
func (b *Batch) Len() int { return b.n }

// Begin starts a message to the address of length bytes that is to be written
// to the returned Name. nil: the batch is full.
func (b *Batch) Begin(length int) *Name {
	if b.n == len(b.headers) || b.vecs == len(b.iovecs) {
		return nil
	}
	h, name := &b.headers[b.n], &b.names[b.n]
	*h = header{}
	if length > 0 {
		h.Name, h.Namelen = &name[0], uint32(length)
	}
	h.Iov = &b.iovecs[b.vecs]
	b.n++
	return name
}

// Fits reports whether there is room for so many more pieces.
func (b *Batch) Fits(pieces int) bool { return len(b.iovecs)-b.vecs >= pieces }

// Add puts p at the end of the message. Not ok: there is no room.
func (b *Batch) Add(p []byte) bool {
	h := &b.headers[b.n-1]
	if h.Iovlen > 0 {
		// Neighbours in memory make one piece.
		last := &b.iovecs[b.vecs-1]
		if uintptr(unsafe.Pointer(last.Base))+uintptr(last.Len) == uintptr(unsafe.Pointer(unsafe.SliceData(p))) {
			last.SetLen(int(last.Len) + len(p))
			return true
		}
	}
	if b.vecs == len(b.iovecs) {
		return false
	}
	v := &b.iovecs[b.vecs]
	v.Base = unsafe.SliceData(p)
	v.SetLen(len(p))
	b.vecs++
	h.SetIovlen(int(h.Iovlen) + 1)
	return true
}

// AddUint16 adds a control message with that value to the message.
func (b *Batch) AddUint16(level, kind int32, value uint16) {
	*(*uint16)(unsafe.Pointer(&b.addControl(level, kind, 2)[0])) = value
}

// AddControl adds a control message with that content to the message.
func (b *Batch) AddControl(level, kind int32, content []byte) {
	copy(b.addControl(level, kind, len(content)), content)
}

// addControl adds a control message, for which NewBatch made room, and returns where its
// content goes.
func (b *Batch) addControl(level, kind int32, length int) []byte {
	m := &b.headers[b.n-1]
	room := b.controls[(b.n-1)*b.control:][:b.control]
	c := room[m.Controllen:][:unix.CmsgSpace(length)]
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(length))
	m.Control = &room[0]
	m.SetControllen(int(m.Controllen) + len(c))
	return c[unix.CmsgLen(0):][:length]
}

// Send gives messages to the kernel, from the first on, and returns how many it
// took; if that is none, why: an unix.Errno, or net.ErrClosed. It waits for room
// in the socket's buffer; unix.EAGAIN: there is none, and waiting longer is no use.
func (b *Batch) Send(s *Socket, first int) (int, error) {
	if !s.Hold() {
		return 0, net.ErrClosed
	}
	defer s.Release()
	for {
		n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&b.headers[first])),
			uintptr(b.n-first), unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			b.waiting.Went()
			return int(n), nil
		case unix.EAGAIN:
			if err := b.waiting.For(s); err != nil {
				return 0, err
			}
		case unix.EINTR:
		default:
			return 0, e
		}
	}
}
