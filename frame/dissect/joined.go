package dissect

import (
	"github.com/dgrdma/dgrdma/frame"
)

// The kernel hands several datagrams of one sender around as one, and cuts them
// at the device or not before the receiver: a capture taken on the sender's or
// on the receiver's host shows that one. All of them have the same length, only
// the last may be shorter. The capture does not say the length. But a frame
// says itself where it ends; if there another one begins between the same
// endpoints, that was the end of a datagram.

// maxPad is the most bytes that a known sender leaves behind the last message.
const maxPad = 7

// leastDatagram is a frame without messages, with its prefix.
const leastDatagram = PrefixSize + frame.HeaderSize

// joined is a datagram that is one or several.
type joined struct {
	data   []byte // what is left to be delivered, of which length was on the wire
	length int
	size   int // of each datagram but the last
}

// split prepares to deliver the frames of a datagram and returns how many there
// are.
func (j *joined) split(data []byte, length int) int {
	*j = joined{data, length, max(length, 1)}
	first := j.at(0)
	end, ok := endOf(&first)
	if !ok {
		return 1
	}
	end += PrefixSize
	for size := end; size <= end+maxPad && length-size >= leastDatagram; size++ {
		if j.size = size; j.fits() {
			return (length + size - 1) / size
		}
	}
	j.size = max(length, 1)
	return 1
}

// captured returns of how many datagrams something is there.
func (j *joined) captured() int { return (len(j.data) + j.size - 1) / j.size }

// at returns the frame whose datagram begins at an offset.
func (j *joined) at(off int) (p Packet) {
	data := j.data[min(off, len(j.data)):min(off+j.size, len(j.data))]
	n := min(PrefixSize, len(data))
	p.Prefix, p.Data = data[:n], data[n:]
	p.Length = max(0, min(j.size, j.length-off)-PrefixSize)
	return p
}

// next takes a datagram off the front. Not ok: nothing more of them was captured.
func (j *joined) next() (p Packet, ok bool) {
	if ok = len(j.data) > 0; ok {
		p = j.at(0)
		j.data, j.length = j.data[min(j.size, len(j.data)):], j.length-j.size
	}
	return p, ok
}

// fits reports whether frames between the same endpoints begin wherever a
// datagram does, as far as that was captured. The second one is looked at whole.
func (j *joined) fits() bool {
	first := j.at(0)
	one, _ := first.Header()
	for off := j.size; off < j.length; off += j.size {
		if j.length-off < leastDatagram {
			return false
		}
		if len(j.data)-off < leastDatagram {
			return true
		}
		p := j.at(off)
		h, ok := p.Header()
		if !ok || h.Src != one.Src || h.Dst != one.Dst || !plausiblePrefix(&p, &h) || off == j.size && !plausible(&p) {
			return false
		}
	}
	return true
}

// endOf returns where the frame at the start of p ends by what its headers say.
// Not ok: they do not make sense, or were not captured.
func endOf(p *Packet) (end int, ok bool) {
	h, ok := p.Header()
	if !ok {
		return 0, false
	}
	if !h.HasMessages() {
		if len(p.Data) < min(p.Length, frame.HeaderSize+frame.StampSize) {
			return 0, false
		}
		if stamped(p.Data) {
			return frame.HeaderSize + frame.StampSize, true
		}
		return frame.HeaderSize, true
	}
	more := true
	end = frame.HeaderSize
	for m := range p.Messages() {
		end += frame.PadLen(end-frame.HeaderSize) + frame.MessageHeaderSize + int(m.Len)
		more = m.More
	}
	return end, !more && end <= p.Length
}

// stamped reports whether a frame without messages has the stamp of our kind.
func stamped(data []byte) bool {
	f, err := frame.Parse(data)
	if err != nil {
		return false
	}
	_, ok := f.Stamp()
	return ok
}
