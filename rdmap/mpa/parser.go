package mpa

import (
	"encoding/binary"
	"hash/crc32"
	"runtime/debug"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// What is around the segment (ULPDU) in a frame (FPDU): its length before it, pad and CRC after it.
const (
	LengthSize = 2
	CRCSize    = 4
	// maxSegment is the longest segment, maxFrame the longest frame (MPA-001).
	maxSegment = 1<<16 - 1
	maxFrame   = LengthSize + maxSegment + 3 + CRCSize
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// TrailerSize returns how many octets of pad and CRC follow a segment of n octets.
func TrailerSize(n int) int { return -(LengthSize+n)&3 + CRCSize }

// Intact reports whether the CRC at the end of a whole frame is that of what is before it.
func Intact(frame []byte) bool {
	sum := len(frame) - CRCSize
	return crc32.Checksum(frame[:sum], castagnoli) == binary.LittleEndian.Uint32(frame[sum:])
}

// parser takes the frames of one direction out of bytes that come in any pieces. The
// bytes that it has not used belong to a frame of which there is not enough yet: they have to
// come again, with more behind them.
type parser struct {
	crc bool
	in  ddp.Inbound

	// Without CRC a frame is taken piece by piece: the header when it is whole, then
	// payload as it comes.
	header  ddp.Header
	payload int        // octets of the segment's payload
	asked   int        // for how many of these octets the sink has been asked: span is where the last of them go
	part    ddp.Header // what it was asked with, if not for all of them
	span    ddp.Span
	placed  int // octets of span that are in place
	tail    int // octets of pad and CRC that are to come
	midway  bool
	stopped error
}

// parse uses up to all of b. It is called between Begin and End of the sink. After an
// error it returns the same again.
func (p *parser) parse(b []byte, sink ddp.Sink) (used int, err error) {
	if p.stopped != nil {
		return 0, p.stopped
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if at, lost := p.span.Recovered(recover()); lost { // in copy
			p.span.Leave()
			err = p.lost(at)
			p.stopped = err
		}
	}()
	for err == nil {
		var n int
		if p.crc {
			n, err = p.whole(b[used:], sink)
		} else {
			n, err = p.piece(b[used:], sink)
		}
		used += n
		if n == 0 {
			break
		}
	}
	p.stopped = err
	return used, err
}

// whole uses the frame at the beginning of b if it is complete. Only a frame whose CRC is right
// touches memory (MPA-009).
func (p *parser) whole(b []byte, sink ddp.Sink) (int, error) {
	if len(b) < LengthSize {
		return 0, nil
	}
	n := int(binary.BigEndian.Uint16(b))
	size := LengthSize + n + TrailerSize(n)
	if len(b) < size {
		return 0, nil
	}
	if !Intact(b[:size]) {
		return 0, ddp.Checksum
	}
	if err := p.begin(b[LengthSize:LengthSize+n], n, sink); err != nil {
		return 0, err
	}
	if err := p.copy(b[LengthSize+p.header.Size():LengthSize+n], sink); err != nil {
		return 0, err
	}
	return size, p.finish(sink)
}

// piece uses what b has of the next part of a frame.
func (p *parser) piece(b []byte, sink ddp.Sink) (int, error) {
	if !p.midway {
		return p.head(b, sink)
	}
	used := min(len(b), p.missing())
	if err := p.copy(b[:used], sink); err != nil {
		return 0, err
	}
	if p.missing() > 0 {
		return used, nil
	}
	n := min(len(b)-used, p.tail)
	p.tail -= n
	used += n
	if p.tail > 0 {
		return used, nil
	}
	p.midway = false
	return used, p.finish(sink)
}

// head uses length and header.
func (p *parser) head(b []byte, sink ddp.Sink) (int, error) {
	if len(b) <= LengthSize {
		if len(b) == LengthSize && binary.BigEndian.Uint16(b) < ddp.TaggedHeader {
			return 0, ddp.Malformed
		}
		return 0, nil
	}
	n := int(binary.BigEndian.Uint16(b))
	size := ddp.HeaderSize(b[LengthSize])
	if n >= size && len(b) < LengthSize+size {
		return 0, nil
	}
	if err := p.begin(b[LengthSize:min(len(b), LengthSize+n)], n, sink); err != nil {
		return 0, err
	}
	p.midway, p.tail = true, TrailerSize(n)
	return LengthSize + size, nil
}

// begin asks where the payload goes of the segment of n octets that begins with b.
func (p *parser) begin(b []byte, n int, sink ddp.Sink) error {
	if err := ddp.Parse(b, &p.header); err != nil {
		return err
	}
	p.payload = n - p.header.Size()
	if err := p.in.Follows(&p.header, p.payload); err != nil {
		return err
	}
	span, err := sink.Place(&p.header, p.payload)
	if err != nil {
		return err
	}
	p.asked = 0
	return p.fill(span)
}

// next asks where the payload goes behind the span, which is full.
func (p *parser) next(sink ddp.Sink) error {
	p.part = p.header
	if p.part.Tagged {
		p.part.TO += uint64(p.asked)
	} else {
		p.part.MO += uint32(p.asked)
	}
	span, err := sink.Place(&p.part, p.payload-p.asked)
	if err != nil {
		return err
	}
	return p.fill(span)
}

// fill has the span filled next.
func (p *parser) fill(span ddp.Span) error {
	n, most := len(span.Bytes), p.payload-p.asked
	if n > most || n == 0 && most > 0 {
		return ddp.LocalMPA
	}
	p.span, p.placed = span, 0
	p.asked += n
	return nil
}

// rest is where payload goes that is to come, or the first of it.
func (p *parser) rest() []byte { return p.span.Bytes[p.placed:] }

// missing is how much payload is to come.
func (p *parser) missing() int { return p.payload - p.asked + len(p.rest()) }

// copy puts payload in its place, and finds out where more goes.
func (p *parser) copy(b []byte, sink ddp.Sink) error {
	for {
		if len(b) > 0 && !p.span.Enter() {
			return ddp.TaggedSTag
		}
		if len(b) > 0 {
			n := copy(p.rest(), b)
			p.span.Leave()
			p.placed += n
			b = b[n:]
		}
		if len(p.rest()) > 0 || p.asked == p.payload {
			return nil
		}
		if err := p.next(sink); err != nil {
			return err
		}
	}
}

// lost is the error of payload that has no place any more, from the octet at at on.
func (p *parser) lost(at int) error {
	return &ddp.LostError{Span: p.span, At: at, Received: true, Header: p.header, Payload: p.payload}
}

// finish delivers the message of which a segment is in place, if that was the last.
func (p *parser) finish(sink ddp.Sink) error {
	p.span, p.placed = ddp.Span{}, 0
	first, n := p.in.Placed(&p.header, p.payload)
	if first == nil {
		return nil
	}
	return sink.Deliver(first, n)
}
