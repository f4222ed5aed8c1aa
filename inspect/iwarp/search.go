package iwarp

import (
	"container/heap"
	"encoding/binary"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// search is for a place where a frame begins.
type search struct {
	scanned    int        // bytes of buf at which no frame begins, or a candidate
	candidates candidates // places where one may begin that is not whole yet
	looked     int        // bytes that were looked at
	checked    int        // bytes of which a checksum was made
	tried      int        // candidates that became whole, which tests compare with the bytes
}

// candidate is where a frame may begin and end, in the direction.
type candidate struct{ begin, end int64 }

// candidates are a heap: the one that is whole first is the first one.
type candidates []candidate

func (c candidates) Len() int           { return len(c) }
func (c candidates) Less(i, j int) bool { return c[i].end < c[j].end }
func (c candidates) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)        { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// restart goes on behind a hole.
func (s *search) restart() { s.scanned, s.candidates = 0, nil }

// mostCandidates bounds those of a search. Of random bytes one in a thousand is one.
const mostCandidates = 1024

// frameSize returns how long the frame is that begins with the two bytes of its length.
func frameSize(b []byte) int {
	n := int(binary.BigEndian.Uint16(b))
	return mpa.LengthSize + n + mpa.TrailerSize(n)
}

// headerSize returns how long the header of a frame is, of which the length is there.
func headerSize(b []byte) int {
	if len(b) <= mpa.LengthSize {
		return ddp.UntaggedHeader
	}
	return ddp.HeaderSize(b[mpa.LengthSize])
}

// plausible reports whether a frame that begins with b may be one, as far as its header tells. Fewer bytes than a header make none.
func plausible(b []byte) bool {
	if len(b) < mpa.LengthSize+ddp.TaggedHeader {
		return false
	}
	n := int(binary.BigEndian.Uint16(b))
	size := headerSize(b)
	if n < size || len(b) < mpa.LengthSize+size {
		return false
	}
	var h ddp.Header
	if ddp.Parse(b[mpa.LengthSize:mpa.LengthSize+size], &h) != nil {
		return false
	}
	_, fits := rdmap.OpcodeOf(&h)
	return fits
}

// find looks for a frame in what waits.
func (d *Decoder) find(c *Connection, w tcp.Way) bool {
	v := &c.ways[w]
	s := &v.search
	searched, checked := MostSearched, MostChecked
	if c.Number == 0 {
		searched, checked = strangeSearched, strangeChecked
	}
	at := -1
	proves := func(place int) bool {
		size := frameSize(v.buf[place:])
		s.checked += size
		return s.checked <= checked && mpa.Intact(v.buf[place:place+size])
	}
	for at < 0 && len(s.candidates) > 0 && s.candidates[0].end <= v.pos+int64(len(v.buf)) {
		s.tried++
		if place := int(heap.Pop(&s.candidates).(candidate).begin - v.pos); proves(place) {
			at = place
		}
	}
	for ; at < 0 && len(v.buf)-s.scanned >= mpa.LengthSize+ddp.UntaggedHeader; s.scanned++ {
		s.looked++
		b := v.buf[s.scanned:]
		switch {
		case b[mpa.LengthSize]&0x3f != 1 || !plausible(b): // most bytes end here
		case len(b) >= frameSize(b):
			if proves(s.scanned) {
				at = s.scanned
			}
		case len(s.candidates) < mostCandidates:
			begin := v.pos + int64(s.scanned)
			heap.Push(&s.candidates, candidate{begin, begin + int64(frameSize(b))})
		}
	}
	switch {
	case at >= 0:
		d.found(c, w, at)
		return true
	case s.looked > searched || s.checked > checked:
		d.giveUp(c, w, "no frame was found by its CRC")
	case s.scanned > maxFrame:
		n := s.scanned - maxFrame // candidates before that were whole
		s.scanned -= n
		v.skipped += n
		v.consume(n)
	}
	return false
}

// found goes on with the frame at some place of what waits.
func (d *Decoder) found(c *Connection, w tcp.Way, at int) {
	v := &c.ways[w]
	first := c.Number == 0
	d.keep(c)
	v.skipped += at
	v.consume(at)
	kind := Found
	if (first || c.Request == nil && c.Reply == nil) && !c.began {
		c.began, kind = true, Begins
	}
	ref := v.ref(v.pos)
	e := d.begin(kind, c, w, ref, ref)
	e.N = v.skipped
	v.state, v.crc, v.skipped, v.search, v.doubts = framed, Good, 0, search{}, 0
	d.say(e)
}
