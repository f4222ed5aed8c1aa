package captured

import (
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// The kernel hands several datagrams of one sender around as one, and cuts them
// at the device or not before the receiver: a capture taken on the sender's or
// on the receiver's host shows that one. All of them have the same length, only
// the last may be shorter. The capture does not say the length. But a frame
// says itself where it ends; if there another one begins between the same
// endpoints, that was the end of a datagram.
//
// An endpoint may have several ids at one address. Then its peer's id is what
// all frames share, as source or as destination. That says less, so all else
// must fit: each is a plausible frame and ends with its datagram. What OpenCPI's
// driver pads on its way to several ids is not taken apart.

// maxPad is the most bytes that a known sender leaves behind the last message.
const maxPad = 7

// leastDatagram is a frame without messages, with its prefix.
const leastDatagram = frame.PrefixSize + frame.HeaderSize

// joined is a datagram that is one or several.
type joined struct {
	data   []byte // what was captured of length bytes
	length int
	size   int // of each datagram but the last
}

// split finds out how long each datagram is.
func (j *joined) split() int {
	j.size = j.length
	first := j.at(0)
	if size, ok := j.splitSeal(&first); ok {
		return size
	}
	end, known := endOf(&first)
	if !known {
		return j.length
	}
	end += frame.PrefixSize
	for size := end; size <= end+maxPad && j.length-size >= leastDatagram; size++ {
		if j.size = size; j.fits() {
			return size
		}
	}
	j.size = j.length
	return j.length
}

// at returns the frame whose datagram begins at an offset.
func (j *joined) at(off int) (p Packet) {
	p.fill(j.data[min(off, len(j.data)):min(off+j.size, len(j.data))], min(j.size, j.length-off))
	return p
}

// fits reports whether frames of one conversation begin wherever a datagram does,
// as far as that was captured. The second one is looked at whole, and sealed ones; all of them if
// their endpoints are not the same.
func (j *joined) fits() bool {
	first := j.at(0)
	one, _ := first.Header()
	sameSrc, sameDst := true, true
	for off := j.size; off < j.length; off += j.size {
		if j.length-off < leastDatagram {
			return false
		}
		if len(j.data)-off < leastDatagram {
			break
		}
		p := j.at(off)
		h, ok := p.Header()
		sameSrc, sameDst = sameSrc && h.Src == one.Src, sameDst && h.Dst == one.Dst
		if !ok || !sameSrc && !sameDst || !plausiblePrefix(&p, &h) || (off == j.size || h.Flags&datagram.Flag != 0) && !plausible(&p) {
			return false
		}
	}
	return sameSrc && sameDst || j.filled()
}

// filled reports whether each datagram is a plausible frame and nothing behind
// it, as far as that was captured.
func (j *joined) filled() bool {
	for off := 0; len(j.data)-off >= leastDatagram; off += j.size {
		p := j.at(off)
		end, known := endOf(&p)
		if !plausible(&p) || end > p.Length || known && end < p.Length {
			return false
		}
	}
	return true
}

// endOf returns where the frame at the start of p ends by what its headers say, and
// what peers of our own kind say behind them, a checksum included. Not known: that was not captured, or does
// not make sense; it does not end before that.
func endOf(p *Packet) (end int, known bool) {
	end, known = contentEnd(p)
	if frame.HasChecksum(p.Data) {
		return frame.CheckedSize(end), known
	}
	return end, known
}

// contentEnd is endOf without the checksum.
func contentEnd(p *Packet) (end int, known bool) {
	h, ok := p.Header()
	if !ok {
		return frame.HeaderSize, false
	}
	if p.Seal() != datagram.Plain {
		return p.Length, true
	}
	if p.Session() {
		return sessionEnd(p)
	}
	if !h.HasMessages() {
		return frame.HeaderSize, true
	}
	more, said := true, 0 // bytes after the messages
	end = frame.HeaderSize
	for m := range p.Messages() {
		if end == frame.HeaderSize {
			said = saidAfter(&h, &m)
		}
		end += frame.MessageHeaderSize + int(m.Len)
		if more = m.More; more {
			end += frame.PadLen(end - frame.HeaderSize)
		}
	}
	if more {
		end += frame.MessageHeaderSize
	}
	if said > 0 {
		return behind(p, end, said)
	}
	return end, !more
}

// saidAfter returns how long is what may be said after the message of a handshake.
func saidAfter(of *frame.Header, m *frame.Message) (size int) {
	switch h, _ := frame.HandshakeOf(&frame.Frame{Header: *of}, m); {
	case h.Kind.HasServices():
		return frame.ServicesSize
	case h.Kind == frame.HandshakeRefused:
		return frame.RefusalSize
	}
	return 0
}

// behind returns where a frame ends that may have services or a refusal, of
// that size at end. In a frame that was cut before that, there are some or none.
func behind(p *Packet, end, size int) (int, bool) {
	if len(p.Data) < min(p.Length, end+size) {
		return end, false
	}
	f, _ := frame.Parse(p.Data) // endOf has seen the headers
	return len(p.Data) - len(f.Padding()), true
}
