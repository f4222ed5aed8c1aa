package iwarp

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// state is what a direction is at.
type state uint8

const (
	opening   state = iota // its frame of set-up is to come
	unsettled              // that of the other direction is to come
	framed
	searching
	dead
)

// way is one direction of a connection.
type way struct {
	state    state
	buf      []byte
	marks    []mark // of the bytes in buf, and of those that are being used
	at       tcp.Ref
	pos      int64 // of the first byte of buf in the direction
	held     int   // that Decoder.held has for it
	absent   int   // bytes of the frame in buf that are not in the capture
	there    int   // bytes of it before the first absent one, if there is one
	noHeader bool  // of its header too
	doubts   int   // frames in a row that make no sense
	skipped  int   // bytes that were skipped since frames were lost
	crc      CRC   // Good: there is one; Off; else it is not known
	search   search

	tagged, untagged message
	in               ddp.Inbound
	blind            bool      // what is before the next message is not known
	loose            bool      // not all requests of the other direction are known
	msn              [4]uint32 // next of each queue; 0: not known
	requests         pending
	closed           bool // while it waits for the set-up of the other direction
	closedAt         tcp.Ref
	began            []byte // if the direction begins with what is none of set-up
}

// mark says where the bytes from a position on were captured.
type mark struct {
	pos int64
	at  tcp.Ref
}

// ref returns where a byte was captured.
func (v *way) ref(pos int64) tcp.Ref {
	at := v.at
	for _, m := range v.marks {
		if m.pos > pos {
			break
		}
		at = m.at
	}
	return at
}

// data takes the next bytes of a direction.
func (d *Decoder) data(c *Connection, w tcp.Way, b []byte, at tcp.Ref) {
	v := &c.ways[w]
	v.at = at
	if v.state == dead {
		return
	}
	v.marks = append(v.marks, mark{v.pos + int64(len(v.buf)), at})
	owned := len(v.buf) > 0
	if owned {
		v.buf = append(v.buf, b...)
	} else {
		v.buf = b
	}
	d.use(c, w)
	if !owned {
		v.buf = slices.Clone(v.buf)
	}
	d.account(c, w)
}

// consume takes n bytes off the front.
func (v *way) consume(n int) {
	v.buf = v.buf[n:]
	v.pos += int64(n)
	if len(v.buf) == 0 {
		v.buf = nil
	}
	for len(v.marks) > 1 && v.marks[1].pos <= v.pos {
		v.marks = v.marks[1:]
	}
	if len(v.buf) == 0 {
		v.marks = nil
	}
}

// use reads what can be read.
func (d *Decoder) use(c *Connection, w tcp.Way) {
	for d.err == nil && !c.ignored && d.step(c, w) {
	}
}

// step uses one thing of what waits, and reports whether there may be more.
func (d *Decoder) step(c *Connection, w tcp.Way) bool {
	v := &c.ways[w]
	switch v.state {
	case opening:
		return d.open(c, w)
	case unsettled:
		if len(v.buf) <= mostUnsettled {
			return false
		}
		d.settle(c)
		d.resume(c, 1-w)
		return true
	case framed:
		return d.frame(c, w)
	case searching:
		return d.find(c, w)
	}
	return false
}

// open reads the frame of set-up.
func (d *Decoder) open(c *Connection, w tcp.Way) bool {
	v := &c.ways[w]
	if len(v.buf) == 0 {
		return false
	}
	s, size, wrong := mpa.ReadSetUp(v.buf)
	switch {
	case size == 0 && !c.TCP.Halves[w].Begun():
		d.seek(c, w)
		return true
	case size == 0 && c.Number == 0:
		d.ignore(c)
		return false
	case size == 0:
		v.began = bytes.Clone(v.buf[:min(len(v.buf), mostBegan)])
		d.giveUp(c, w, fmt.Sprintf("it does not begin with a frame of MPA's set-up, but with %.16q", v.buf))
		return false
	case size > len(v.buf):
		return false
	}
	d.keep(c)
	e := d.begin(SetUp, c, w, v.ref(v.pos), v.ref(v.pos+int64(size)-1))
	if v.absent > 0 {
		s.Cut(v.there)
	}
	e.SetUp, e.Wrong, e.Absent = s, wrong, v.absent
	said := &Said{s, e.Last, v.absent}
	v.absent = 0
	said.Private = bytes.Clone(s.Private[:min(len(s.Private), mostPrivate)])
	switch {
	case s.Reply:
		c.Reply, c.Initiator, c.Known = said, 1-w, true
	default:
		c.Request, c.Initiator, c.Known = said, w, true
	}
	d.say(e)
	v.consume(size)
	v.state = unsettled
	v.msn = [4]uint32{1, 1, 1, 1}
	if c.ways[1-w].state != opening {
		d.resume(c, 1-w)
	}
	return true
}

// resume goes on with a direction that has waited for the set-up of the other one.
func (d *Decoder) resume(c *Connection, w tcp.Way) {
	defer func(before bool) { d.settling = before }(d.settling)
	d.settling = true
	d.settle(c)
	d.use(c, w)
	d.account(c, w)
	if v := &c.ways[w]; v.closed && c.Number > 0 {
		v.closed = false
		d.say(d.begin(Finished, c, w, v.closedAt, v.closedAt))
	}
}

// resumeUnsettled does so if the direction waits.
func (d *Decoder) resumeUnsettled(c *Connection, w tcp.Way) {
	if c.ways[w].state == unsettled {
		d.resume(c, w)
	}
}

// mostBegan is how much is kept of what another protocol begins with. Arbitrary: it tells which one.
const mostBegan = 32

// mostPrivate is how much is kept of private data: as much as is allowed.
const mostPrivate = 512

// settle has frames follow in directions whose set-up was seen. CRC is used if either side wants it.
func (d *Decoder) settle(c *Connection) {
	crc := Unchecked
	switch {
	case c.Request != nil && c.Request.CRC, c.Reply != nil && c.Reply.CRC:
		crc = Good
	case c.Request != nil && c.Reply != nil:
		crc = Off
	}
	for i := range c.ways {
		w := tcp.Way(i)
		v := &c.ways[w]
		if v.state != unsettled {
			continue
		}
		v.state, v.crc = framed, crc
		wants := c.Reply // of who receives
		if w != c.Initiator {
			wants = c.Request
		}
		if refused := c.Reply != nil && c.Reply.Reject; wants != nil && wants.Markers && !refused {
			d.giveUp(c, w, "its receiver asked for markers, which are not understood")
		}
	}
}

// ignore says that the connection is none of iWARP.
func (d *Decoder) ignore(c *Connection) {
	c.ignored = true
	c.TCP.Ignore()
	d.drop(c)
}

// giveUp ends a direction.
func (d *Decoder) giveUp(c *Connection, w tcp.Way, why string) {
	v := &c.ways[w]
	if c.Number == 0 {
		d.ignore(c)
		return
	}
	at := v.at
	n := v.skipped + len(v.buf)
	d.dropWay(c, w)
	v.state = dead
	v.tagged, v.untagged = message{}, message{}
	d.resumeUnsettled(c, 1-w)
	d.forget(c, 1-w) // its answers are not seen any more
	e := d.begin(GivenUp, c, w, at, at)
	e.N, e.Why, e.Began = n, why, v.began
	d.say(e)
}

// forget drops requests whose answers cannot be told any more.
func (d *Decoder) forget(c *Connection, w tcp.Way) {
	v := &c.ways[w]
	v.requests.clear()
	v.loose = true
	d.count(c, w)
}

// missing says that n bytes are not in the capture.
func (d *Decoder) missing(c *Connection, w tcp.Way, n int, at tcp.Ref) {
	v := &c.ways[w]
	v.at = at
	switch v.state {
	case dead:
		return
	case unsettled:
		d.resume(c, w)
		d.resume(c, 1-w)
	case opening:
		if n = d.missingInSetUp(c, w, n); n == 0 {
			d.account(c, w)
			return
		}
		if v.state == unsettled { // more than the frame of set-up
			d.resume(c, w)
			d.resume(c, 1-w)
			break
		}
		if c.Number > 0 {
			d.absence(c, w, n)
		}
		d.seek(c, w)
	}
	if v.state == framed {
		d.missingInFrames(c, w, n)
	} else if v.state == searching {
		v.pass(n)
	}
	d.account(c, w)
}

// pass goes over what waits, and n bytes behind it.
func (v *way) pass(n int) {
	v.skipped += len(v.buf) + n
	v.pos += int64(len(v.buf) + n)
	v.buf, v.marks, v.absent = nil, nil, 0
	v.search.restart()
}

// missingInSetUp goes on with the frame of set-up if its header is there, and returns how many bytes are missing after it.
func (d *Decoder) missingInSetUp(c *Connection, w tcp.Way, n int) int {
	v := &c.ways[w]
	_, size, _ := mpa.ReadSetUp(v.buf)
	part := min(n, size-len(v.buf))
	if len(v.buf) < mpa.SetUpHeader || part <= 0 {
		return n
	}
	d.fill(c, w, part)
	return n - part
}

// fill puts zeros in the place of the next bytes, which are missing in the frame that has begun.
func (d *Decoder) fill(c *Connection, w tcp.Way, n int) {
	v := &c.ways[w]
	if v.absent == 0 {
		v.there = len(v.buf)
	}
	v.marks = append(v.marks, mark{v.pos + int64(len(v.buf)), v.at})
	v.buf = slices.Grow(v.buf, n)[:len(v.buf)+n]
	clear(v.buf[len(v.buf)-n:])
	v.absent += n
	d.use(c, w)
}

func (d *Decoder) absence(c *Connection, w tcp.Way, n int) {
	e := d.begin(Missing, c, w, c.ways[w].at, c.ways[w].at)
	e.N = n
	d.say(e)
}

// missingInFrames keeps step as long as the length of the frame that has begun is known.
func (d *Decoder) missingInFrames(c *Connection, w tcp.Way, n int) {
	v := &c.ways[w]
	for n > 0 && v.state == framed && len(v.buf) >= mpa.LengthSize {
		size := frameSize(v.buf)
		if len(v.buf) < mpa.LengthSize+ddp.UntaggedHeader && len(v.buf) < mpa.LengthSize+headerSize(v.buf) {
			v.noHeader = true
		}
		part := min(n, size-len(v.buf))
		n -= part
		d.fill(c, w, part)
	}
	if n == 0 || v.state != framed {
		return
	}
	d.absence(c, w, n)
	v.pass(n)
	d.lose(c, w)
}

// lose looks for frames again, if there is a proof for them.
func (d *Decoder) lose(c *Connection, w tcp.Way) {
	v := &c.ways[w]
	if v.crc == Off {
		d.giveUp(c, w, "without CRC nothing proves where a frame begins")
		return
	}
	d.seek(c, w)
}

// seek begins to look for frames.
func (d *Decoder) seek(c *Connection, w tcp.Way) {
	v := &c.ways[w]
	v.state, v.search = searching, search{}
	d.blind(c, w)
	d.resumeUnsettled(c, 1-w)
}

// blind notes that frames of a direction were not captured: what they began, asked for and answered is not known.
func (d *Decoder) blind(c *Connection, w tcp.Way) {
	v := &c.ways[w]
	v.blind, v.loose = true, true
	v.in, v.tagged, v.untagged, v.msn = ddp.Inbound{}, message{}, message{}, [4]uint32{}
	d.forget(c, 1-w)
}

// last says what a direction ends with.
func (d *Decoder) last(c *Connection, w tcp.Way) {
	v := &c.ways[w]
	d.resumeUnsettled(c, w)
	switch n := len(v.buf); {
	case v.state == searching && n+v.skipped > 0:
		d.giveUp(c, w, "no frame was found again")
	case n > 0 && v.state != dead:
		e := d.begin(Incomplete, c, w, v.ref(v.pos), v.at)
		e.N = n
		d.say(e)
	}
}
