package rpcrdma

import (
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/capture/tcp"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// Call is one that waits for its Reply, or has it.
type Call struct {
	XID     uint32
	At      tcp.Ref // with the last octet of its last Send
	Reverse bool
	RPC     // Known if the program is

	Inline  uint64 // length of its message in Sends
	Fetched uint64 // octets that RDMA Reads brought
	Placed  uint64 // octets that RDMA Writes brought
	// Reading is how long RDMA Reads for it waited for their answers, and Writing how long it took from the first RDMA Write to the last one.
	Reading, Writing time.Duration

	segments []*segment // in the order of Read list, Write list, Reply chunk
	// positions are those of Read chunks of a part of the message.
	positions  []uint32
	writes     []int  // how many segments each Write chunk has
	reply      int    // how many segments the Reply chunk has; -1: there is none
	reads      int    // how many segments the Read list has
	inv        uint32 // of version 2: the handle that may be invalidated
	inline4    uint64 // octets of data that a WRITE of NFS 4 has in the message
	head       []byte // of the Call at Position 0
	answer     []byte // of the Reply in the Reply chunk
	target     []byte // of a symbolic link, in a chunk
	special    bool   // the Call is at Position 0
	late       bool   // it was read after what came later: RDMA Writes for it may have passed before
	reading    stretch
	placedFrom time.Time
	room       *room
}

// segment is one of a Call's chunks.
type segment struct {
	codec.Segment
	call       *Call
	base       uint64 // offset of it in its chunk
	done       uint64 // octets that were read or written
	read       bool
	whole      bool     // it is of the chunk that has the whole Call, or the whole Reply
	target     bool     // it is of the chunk that has the target of a symbolic link
	prev, next *segment // with the same handle
}

// room is what one side of a connection gave to the other one: the memory of its Calls.
type room struct {
	calls map[uint32]*Call
	tags  map[uint32]*segment // the latest with that handle
}

// mostAlike is how many segments with the same handle are looked at. Arbitrary: Linux has one such handle, for pads.
const mostAlike = 64

// find returns the segment in which n octets at a place are, or nil.
func (r *room) find(stag uint32, to uint64, n uint64, read bool) *segment {
	s := r.tags[stag]
	for range mostAlike {
		if s == nil {
			return nil
		}
		if s.read == read && to >= s.Offset && to-s.Offset <= uint64(s.Length) && n <= uint64(s.Length)-(to-s.Offset) {
			return s
		}
		s = s.next
	}
	return nil
}

// link adds a segment to those with its handle.
func (r *room) link(s *segment) {
	if s.next = r.tags[s.Handle]; s.next != nil {
		s.next.prev = s
	}
	r.tags[s.Handle] = s
}

func (r *room) unlink(s *segment) {
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case s.next == nil:
		delete(r.tags, s.Handle)
	default:
		r.tags[s.Handle] = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
}

// lend keeps the chunks of a Call.
func (c *Call) lend(h *codec.Header) {
	add := func(chunk codec.Chunk, read, whole bool) {
		base, target := uint64(0), !whole && (read && c.isNFS3(nfs3Symlink) || !read && c.isNFS3(nfs3ReadLink))
		for _, s := range chunk {
			at := &segment{Segment: s, call: c, base: base, read: read, whole: whole, target: target}
			base += uint64(s.Length)
			c.segments = append(c.segments, at)
			c.room.link(at)
		}
	}
	for i := range h.Reads {
		r := &h.Reads[i]
		c.special = c.special || r.Position == 0 && h.Type == codec.TypeNoMsg
		if r.Position > 0 {
			c.positions = append(c.positions, r.Position)
		}
		add(r.Segments, true, r.Position == 0)
	}
	c.reads = len(c.segments)
	for _, w := range h.Writes {
		c.writes = append(c.writes, len(w))
		add(w, false, false)
	}
	c.reply = -1
	if h.HasReply {
		c.reply = len(h.Reply)
		add(h.Reply, false, true)
	}
}

// hasHandle reports whether one of the Call's segments has a handle.
func (c *Call) hasHandle(handle uint32) bool {
	for _, s := range c.segments {
		if s.Handle == handle {
			return true
		}
	}
	return false
}

// handles counts different handles, up to two, of segments that are not empty.
func (c *Call) handles() int {
	var first *segment
	for _, s := range c.segments {
		switch {
		case s.Length == 0:
		case first == nil:
			first = s
		case s.Handle != first.Handle:
			return 2
		}
	}
	if first == nil {
		return 0
	}
	return 1
}

// keeps reports whether the octets that a segment moves are kept, as far as there is room for them.
func (s *segment) keeps() bool { return s.whole || s.target }

// brings keeps what was moved at an offset of the whole Call, of the whole Reply, or of a target, as far as it follows what is there.
func (d *Decoder) brings(s *segment, b []byte, offset uint64) {
	into := &s.call.answer
	switch {
	case s.target:
		into = &s.call.target
	case s.read:
		into = &s.call.head
	}
	at, most := s.base+offset, uint64(mostKept)
	if d.moved >= mostMoved {
		most = mostHead
	}
	if n := uint64(len(*into)); at <= n && n < most && at+uint64(len(b)) > n {
		*into = append(*into, b[n-at:min(uint64(len(b)), most-at)]...)
		d.moved += len(*into) - int(n)
	}
}

// hasWrite reports whether the Call has a Write chunk that is not empty.
func (c *Call) hasWrite() bool {
	for i := range c.writes {
		if c.writes[i] > 0 {
			return true
		}
	}
	return false
}

// compare says how the chunks of a Reply are not those of its Call, or not what was written. It is empty if they are.
func (c *Call) compare(h *codec.Header) string {
	if len(h.Writes) != len(c.writes) {
		return fmt.Sprintf("the Call has %d Write chunks, and the Reply %d", len(c.writes), len(h.Writes))
	}
	at := c.reads
	for i, w := range h.Writes {
		given := c.segments[at : at+c.writes[i]]
		at += c.writes[i]
		if why := c.compareChunk(w, given); why != "" {
			return why
		}
	}
	switch {
	case h.HasReply && c.reply < 0:
		return "the Reply has a Reply chunk, and the Call has none"
	case h.HasReply:
		return c.compareChunk(h.Reply, c.segments[at:])
	case h.Type == codec.TypeNoMsg:
		return "the Reply has neither a message nor a Reply chunk"
	}
	return ""
}

// compareChunk compares a chunk of a Reply with the segments that were given for it.
func (c *Call) compareChunk(returned codec.Chunk, given []*segment) string {
	if len(returned) != len(given) {
		return fmt.Sprintf("a chunk of the Call has %d segments, and that of the Reply %d", len(given), len(returned))
	}
	ended := false
	for i, r := range returned {
		g := given[i]
		switch {
		case r.Handle != g.Handle || r.Offset != g.Offset:
			return fmt.Sprintf("segment %d is STag %#x at %#x in the Call, and STag %#x at %#x in the Reply", i+1, g.Handle, g.Offset, r.Handle, r.Offset)
		case r.Length > g.Length:
			return fmt.Sprintf("segment %d returns %d octets of %d", i+1, r.Length, g.Length)
		case r.Length > 0 && ended:
			return fmt.Sprintf("segment %d has octets, although the one before is not full", i+1)
		case uint64(r.Length) != g.done && !c.late:
			return fmt.Sprintf("segment %d returns %d octets, and %d were written", i+1, r.Length, g.done)
		}
		ended = ended || r.Length < g.Length
	}
	return ""
}

// Special reports whether the whole Call is fetched by RDMA Read, so that its program is known only then.
func (c *Call) Special() bool { return c.special }

// Moved returns the octets of a whole Call that RDMA Reads brought, and of a whole Reply that RDMA Writes brought: [mostKept] of each at most.
func (c *Call) Moved() (call, reply []byte) { return c.head, c.answer }
