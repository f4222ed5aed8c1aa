package frame

// Writer lays messages into the buffer of one frame, aligned as the protocol
// asks, with zero padding between them. The zero Writer has no room.
type Writer struct {
	buf  []byte
	end  int // end of the last message's data; before the first the length of the header
	last int // offset of the last message header; 0 before the first
}

// Init makes w write into b from the start. The frame header's bytes are left
// alone; the frame can grow to len(b).
func (w *Writer) Init(b []byte) { w.InitAfter(b, HeaderSize) }

// InitAfter is Init of a frame with a header of that length: HeaderSize, or SessionHeaderSize.
func (w *Writer) InitAfter(b []byte, header int) { w.buf, w.end, w.last = b, header, 0 }

// Room returns how many data bytes a further message could carry; negative if
// not even its header fits.
func (w *Writer) Room() int {
	return len(w.buf) - w.next() - MessageHeaderSize
}

func (w *Writer) next() int { return w.end + PadLen(w.end-HeaderSize) }

// Add appends a message with m.Len data bytes and returns where they belong.
// It sets m.More of the message before; the caller leaves it false. There must
// be Room for it.
func (w *Writer) Add(m *Message) (data []byte) {
	at := w.next()
	clear(w.buf[w.end:at])
	if w.last != 0 {
		w.buf[w.last+msgMore] = 1
	}
	m.Put(w.buf[at:])
	w.last = at
	at += MessageHeaderSize
	w.end = at + int(m.Len)
	return w.buf[at:w.end:w.end]
}

// Len returns the length of the frame so far, header included.
func (w *Writer) Len() int { return w.end }

// Empty reports whether no message was added.
func (w *Writer) Empty() bool { return w.last == 0 }
