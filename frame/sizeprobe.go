package frame

import "encoding/binary"

// SizeProbe asks whether frames of a length arrive, as RFC 8899 has it, and answers that. It
// stands behind the [Services] of a [Hello] that names both lives:
//
//	offset  size  field
//	0       1     0x50
//	1       1     0
//	2       2     Size
//
// A question has the length that it asks for, and zeros up to that. Whoever does not know it
// answers the introduction alone.
type SizeProbe struct {
	Size int // in bytes: of this frame, or, if it answers, of the longest question that came
}

const (
	sizeProbeMark = 0x50
	// SizeProbeSize is the length of a size probe in bytes, without the zeros behind it.
	SizeProbeSize = 4
)

// Put writes p to the first SizeProbeSize bytes of b.
func (p SizeProbe) Put(b []byte) {
	_ = b[SizeProbeSize-1]
	b[0], b[1] = sizeProbeMark, 0
	binary.LittleEndian.PutUint16(b[2:], uint16(p.Size))
}

// SizeProbe returns what is asked or answered of the length of frames. Not ok: nothing, or a
// question that did not arrive whole.
func (f *Frame) SizeProbe() (p SizeProbe, ok bool) {
	if _, ok := f.Services(); !ok {
		return SizeProbe{}, false
	}
	b := f.Rest()[ServicesSize:]
	if len(b) < SizeProbeSize || b[0] != sizeProbeMark || b[1] != 0 {
		return SizeProbe{}, false
	}
	c := f.Cursor()
	c.Next()
	h, _ := c.Msg.Hello()
	p = SizeProbe{int(binary.LittleEndian.Uint16(b[2:]))}
	return p, h.Peer != 0 && !h.Leaves && (h.Tells || p.Size == f.Size())
}
