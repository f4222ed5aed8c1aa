package frame

import "encoding/binary"

const (
	ackSize   = 24 // and rangeSize for each range
	rangeSize = 4
	byeSize   = 28
	probeSize = 22
	marksSize = 8

	// LeastSessionAck is the length of an acknowledgement without ranges, RangeSize that of a range, and MostSessionAck that of
	// the longest acknowledgement.
	LeastSessionAck = ackSize
	RangeSize       = rangeSize
	MostSessionAck  = ackSize + MostRanges*rangeSize + marksSize
	// MarksSize is how much longer an acknowledgement is that has [Marks].
	MarksSize = marksSize
	// MostRanges is how many ranges an acknowledgement has at most. Of more runs of ids it has the lowest 63 and the highest.
	MostRanges = 64
	// LongestDelay is the longest delay that an acknowledgement can tell, in microseconds: it stands for all that are longer.
	LongestDelay = 65535
)

// checkControl checks a control frame after its header.
func checkControl(b []byte) error {
	bad := func(off int, r Reason) error { return &Error{off, len(b), r} }
	if len(b) <= SessionHeaderSize {
		return bad(SessionHeaderSize, ShortControl)
	}
	kind := Control(b[SessionHeaderSize])
	if kind == NoControl || kind >= controls {
		return bad(SessionHeaderSize, UnknownControl)
	}
	if len(b) < controlSizes[kind] {
		return bad(SessionHeaderSize, ShortControl)
	}
	switch kind {
	case ControlAck:
		n := int(binary.LittleEndian.Uint16(b[22:]))
		if n > MostRanges {
			return bad(22, BadRanges)
		}
		if len(b) < ackSize+n*rangeSize+marksOf(b[19]) {
			return bad(22, ShortControl)
		}
		// The id after the cumulative acknowledgement did not arrive, or it would be part of that.
		end := 1
		for at := ackSize; at < ackSize+n*rangeSize; at += rangeSize {
			first, count := int(binary.LittleEndian.Uint16(b[at:])), int(binary.LittleEndian.Uint16(b[at+2:]))
			if first <= end || count == 0 {
				return bad(at, BadRanges)
			}
			end = first + count
		}
	case ControlProbe:
		size := len(b)
		if b[flagsAt]&FlagChecksum != 0 {
			size += ChecksumSize
		}
		if int(binary.LittleEndian.Uint16(b[20:])) != size {
			return bad(20, WrongProbe)
		}
	}
	return nil
}

// ControlSize returns how long the control frame is with which b begins, by what it says: without its checksum, and
// without what follows it. Not ok: b ends before that is said, or it is of an unknown kind.
func ControlSize(b []byte) (n int, ok bool) {
	if len(b) <= SessionHeaderSize {
		return 0, false
	}
	kind := Control(b[SessionHeaderSize])
	if kind == NoControl || kind >= controls {
		return 0, false
	}
	n = controlSizes[kind]
	switch kind {
	case ControlAck:
		if len(b) < n {
			return 0, false
		}
		n += int(binary.LittleEndian.Uint16(b[22:]))*rangeSize + marksOf(b[19])
	case ControlProbe:
		if len(b) < n {
			return 0, false
		}
		size := int(binary.LittleEndian.Uint16(b[20:]))
		if b[flagsAt]&FlagChecksum != 0 {
			size -= ChecksumSize
		}
		n = max(n, size)
	}
	return n, true
}

// SessionAck is what an ACK says in addition to its header, which has the cumulative acknowledgement, and as id the frame that
// arrived last: the echo, of which this is told.
//
//	offset  size  field
//	18      1     ControlAck
//	19      1     bit 0: that frame had arrived before; bit 1: there are marks; bits 3 to 5: its copy number
//	20      2     microseconds since it arrived; 65535: that, or more
//	22      2     number of ranges, up to 64
//	24      4 n   ranges, ascending: the distance of the first id from the cumulative acknowledgement, 16 bits, and
//	              how many ids it has, 16 bits
//	24+4n   4     Marks.Capable, if there are marks
//	28+4n   4     Marks.Congested
type SessionAck struct {
	Again  bool // the frame had arrived before
	Copy   uint8
	Delay  int // microseconds since it arrived; [LongestDelay]: that, or more
	Ranges Ranges
	Marks  Marks
}

// Marks counts the frames of a session that have arrived by the marks of explicit congestion notification (RFC 3168, section 5) with which they
// did. A frame that comes again counts once. An ACK without them says that none had one.
type Marks struct {
	Capable   uint32 // ECT(0)
	Congested uint32 // CE
}

const marksFlag = 2 // in byte 19 of an ACK

// marksOf returns the length of the marks of an ACK with those bits in byte 19.
func marksOf(bits byte) int {
	if bits&marksFlag != 0 {
		return marksSize
	}
	return 0
}

// Ranges are ids that arrived out of order.
type Ranges struct {
	b   []byte
	ack uint32
}

// Range is some ids in sequence.
type Range struct {
	First uint32
	Count int
}

// Len returns how many ranges there are.
func (r Ranges) Len() int { return len(r.b) / rangeSize }

// At returns a range.
func (r Ranges) At(i int) Range {
	b := r.b[i*rangeSize:][:rangeSize]
	return Range{r.ack + uint32(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))}
}

// SessionAck returns what an ACK says. Not ok: f is none.
func (f *SessionFrame) SessionAck() (a SessionAck, ok bool) {
	if f.Control != ControlAck {
		return SessionAck{}, false
	}
	b := f.body
	le := binary.LittleEndian
	n := int(le.Uint16(b[4:])) * rangeSize
	a = SessionAck{
		Again:  b[1]&1 != 0,
		Copy:   b[1] & copyMask >> copyShift,
		Delay:  int(le.Uint16(b[2:])),
		Ranges: Ranges{b[ackSize-SessionHeaderSize:][:n], f.Ack},
	}
	if marksOf(b[1]) > 0 {
		m := b[ackSize-SessionHeaderSize+n:]
		a.Marks = Marks{le.Uint32(m), le.Uint32(m[4:])}
	}
	return a, true
}

// PutSessionAckFrame writes an ACK to b, and returns how long it is. Ranges are ascending, and none touches another. They begin more than one
// id after h.Ack, and less than 65536; there are at most [MostRanges].
func PutSessionAckFrame(b []byte, h *SessionHeader, again bool, copied uint8, delay int, ranges []Range) int {
	h.Control = ControlAck
	h.Put(b)
	le := binary.LittleEndian
	b[19] = min(copied, MostCopies) << copyShift
	if again {
		b[19] |= 1
	}
	le.PutUint16(b[20:], uint16(min(max(delay, 0), LongestDelay)))
	le.PutUint16(b[22:], uint16(len(ranges)))
	at := ackSize
	for _, r := range ranges {
		le.PutUint16(b[at:], uint16(r.First-h.Ack))
		le.PutUint16(b[at+2:], uint16(r.Count))
		at += rangeSize
	}
	return at
}

// PutMarks adds marks to an ACK of n bytes, if there are some, and returns how long it is.
func PutMarks(b []byte, n int, m Marks) int {
	if m == (Marks{}) {
		return n
	}
	b[19] |= marksFlag
	binary.LittleEndian.PutUint32(b[n:], m.Capable)
	binary.LittleEndian.PutUint32(b[n+4:], m.Congested)
	return n + marksSize
}

// Bye ends a session. It names both epochs: to guess a BYE takes 64 bits.
//
//	offset  size  field
//	18      1     ControlBye
//	19      1     Reason
//	20      4     Sender
//	24      4     Receiver
type Bye struct {
	Reason           uint8
	Sender, Receiver uint32 // epochs
}

// PutBye writes a BYE to b, and returns how long it is.
func PutBye(b []byte, h *SessionHeader, y Bye) int {
	h.Control = ControlBye
	h.Put(b)
	b[19] = y.Reason
	binary.LittleEndian.PutUint32(b[20:], y.Sender)
	binary.LittleEndian.PutUint32(b[24:], y.Receiver)
	return byeSize
}

// Bye returns what a BYE says. Not ok: f is none.
func (f *SessionFrame) Bye() (y Bye, ok bool) {
	if f.Control != ControlBye {
		return Bye{}, false
	}
	le := binary.LittleEndian
	return Bye{f.body[1], le.Uint32(f.body[2:]), le.Uint32(f.body[6:])}, true
}

// PutProbe writes to b a question whether frames of that length arrive, with the checksum if there is one, and returns how
// long it is without that.
func PutProbe(b []byte, h *SessionHeader, size int) int {
	h.Control = ControlProbe
	n := size
	if h.Checks {
		n -= ChecksumSize
	}
	clear(b[SessionHeaderSize:n])
	h.Put(b)
	binary.LittleEndian.PutUint16(b[20:], uint16(size))
	return n
}

// PutProbed writes the answer to a question whether frames of a length arrive, and returns how long it is.
func PutProbed(b []byte, h *SessionHeader, size int) int {
	h.Control = ControlProbed
	h.Put(b)
	b[19] = 0
	binary.LittleEndian.PutUint16(b[20:], uint16(size))
	return probeSize
}

// Probe returns the length of which a PROBE or PROBED tells. Not ok: f is neither.
func (f *SessionFrame) Probe() (size int, ok bool) {
	if f.Control != ControlProbe && f.Control != ControlProbed {
		return 0, false
	}
	return int(binary.LittleEndian.Uint16(f.body[2:])), true
}

// PutReset writes to b the answer to a data frame, or a bell, of a session that the endpoint does not have, and returns how long it is: never
// longer than what it answers. h is the header of that frame.
func PutReset(b []byte, h SessionHeader) int {
	h.Dst, h.Src = h.Src, h.Dst
	h.Control = ControlReset
	h.Put(b)
	return SessionHeaderSize + 1
}
