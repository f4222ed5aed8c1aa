package mpa

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime/debug"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// errLength is a fault of the stream on this side.
var errLength = errors.New("the stream gave a message whose data is not as long as it says")

// framer cuts messages into frames. One message is never mixed with another (DDP-005).
type framer struct {
	crc bool
	// copies says that all payload is copied into the slab.
	copies bool
	// segment is the longest segment (MULPDU), header included; 0: the longest of our own kind.
	segment int

	message ddp.Message
	active  bool   // there is more of message to send
	framed  uint32 // octets of message that are in frames
	span    int    // where they go on: in Data, or -1: in Inline
	at      int

	before mark     // of the frame that is being built
	from   ddp.Span // what gather touches
}

// fill puts frames into b until it is full or the source has no more messages. It is called
// between Begin and End of the source. With an error b has the frames before it, and the
// message that caused it is given up.
func (f *framer) fill(b *batch, src ddp.Source) (dry bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if at, lost := f.from.Recovered(recover()); lost { // in gather
			f.from.Leave()
			err = &ddp.LostError{Span: f.from, At: at}
			b.cut(f.before)
			b.close()
			f.drop()
		}
		f.from = ddp.Span{}
	}()
	for b.ended < maxMessages {
		if !f.active {
			if !src.Next(&f.message) {
				dry = true
				break
			}
			if err = f.start(); err != nil {
				break
			}
		}
		n := int(min(int64(f.message.Length-f.framed), int64(f.payload())))
		copies := f.copies || 2*len(f.message.Data) > maxPieces/4
		if !f.fits(b, n, copies) {
			break
		}
		if err = f.frame(b, n, copies); err != nil {
			break
		}
	}
	b.close()
	if err != nil {
		f.drop()
	}
	return dry, err
}

// start begins with a new message.
func (f *framer) start() error {
	m := &f.message
	sum := uint64(m.InlineSize)
	for i := range m.Data {
		sum += uint64(len(m.Data[i].Bytes))
	}
	if m.InlineSize < 0 || m.InlineSize > len(m.Inline) || sum != uint64(m.Length) {
		return errLength
	}
	f.active, f.framed, f.span, f.at = true, 0, -1, 0
	return nil
}

// drop ends work on the message, and holds no memory of it any more.
func (f *framer) drop() {
	f.active = false
	f.message.Data = nil
}

// payload returns how much of the message goes into a frame.
func (f *framer) payload() int {
	if f.segment == 0 {
		return longPayload
	}
	return f.segment - f.message.Size()
}

// fits says whether there is room for a frame with n octets of payload.
func (f *framer) fits(b *batch, n int, copies bool) bool {
	slab := LengthSize + f.message.Size() + TrailerSize(maxSegment)
	pieces := 1
	if copies {
		slab += n
	} else {
		spans := len(f.message.Data) - max(f.span, 0)
		slab += min(n, ddp.InlineSize+spans*minReference)
		pieces += 2 * spans
	}
	return b.used+slab <= len(b.slab) && b.n+pieces < maxPieces && (b.size == 0 || b.size+n <= maxBatch)
}

// frame puts the next frame of the message, with n octets of payload, into b.
func (f *framer) frame(b *batch, n int, copies bool) error {
	m := &f.message
	h := m.Header
	if h.Tagged {
		h.TO += uint64(f.framed)
	} else {
		h.MO = f.framed
	}
	h.Last = f.framed+uint32(n) == m.Length
	f.before = b.mark()
	segment := h.Size() + n
	binary.BigEndian.PutUint16(b.slab[b.used:], uint16(segment))
	b.used += LengthSize
	b.used += h.Put(b.slab[b.used:])
	if !f.gather(b, n, copies) {
		b.cut(f.before)
		return ErrWithdrawn
	}
	pad := TrailerSize(segment) - CRCSize
	b.used += copy(b.slab[b.used:], "\x00\x00\x00"[:pad])
	sum := uint32(0)
	if f.crc {
		sum = crc32.Checksum(b.slab[f.before.used:b.used], castagnoli)
	}
	binary.LittleEndian.PutUint32(b.slab[b.used:], sum)
	b.used += CRCSize
	b.size += LengthSize + segment + pad + CRCSize
	f.framed += uint32(n)
	if h.Last {
		b.ends[b.ended] = uint32(b.size)
		b.ended++
		f.drop()
	}
	return nil
}

// gather puts the next n octets of the message into b, copied or by reference. Not ok: their owner has
// withdrawn them.
func (f *framer) gather(b *batch, n int, copies bool) bool {
	for n > 0 {
		f.from = ddp.Span{Bytes: f.message.Inline[:f.message.InlineSize]}
		if f.span >= 0 {
			f.from = f.message.Data[f.span]
		}
		part := f.from.Bytes[f.at:][:min(n, len(f.from.Bytes)-f.at)]
		refers := !copies && f.span >= 0 && len(part) >= minReference
		if len(part) > 0 {
			if !f.from.Enter() {
				return false
			}
			if refers {
				ddp.Probe(part) // a peer that has half of a frame cannot be told why no more comes
			} else {
				b.used += copy(b.slab[b.used:], part)
			}
			f.from.Leave()
		}
		if refers {
			b.close()
			b.refer(&ddp.Span{Bytes: part, Guard: f.from.Guard, Epoch: f.from.Epoch})
		}
		n -= len(part)
		f.at += len(part)
		if f.at == len(f.from.Bytes) {
			f.span++
			f.at = 0
		}
	}
	return true
}
