package rpcrdma

import (
	"slices"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// Bounds of what waits, of all connections. Both are arbitrary.
const (
	mostCalls    = 16 << 10
	mostSegments = 64 << 10
	mostMoved    = 16 << 20 // octets that chunks moved for a whole Call or Reply; beyond it [mostHead] are kept of each
)

// Decoder follows the connections of a capture. It belongs to one goroutine.
type Decoder struct {
	connections map[*iwarp.Connection]*Connection
	codec       *codec.Decoder
	header      codec.Header
	message     Message
	calls       int // that wait
	segments    int // of these
	moved       int // octets that are kept for these
	pairs       map[hosts]*pair
}

// New returns a Decoder that has seen nothing.
func New() *Decoder {
	return &Decoder{connections: map[*iwarp.Connection]*Connection{}, codec: codec.NewDecoder(codec.DefaultLimits()), pairs: map[hosts]*pair{}}
}

// Of returns what is known of a connection, nil if it is not one of RPC-over-RDMA. After the connection's end it is forgotten.
func (d *Decoder) Of(c *iwarp.Connection) *Connection {
	if k := d.connections[c]; k != nil && k.certain {
		return k
	}
	return nil
}

// Event takes the next event, and returns the message that it completes, if there is one. It keeps nothing of e.
func (d *Decoder) Event(e *iwarp.Event) *Message {
	c := d.connections[e.Conn]
	if c == nil {
		if e.Kind == iwarp.Gone {
			return nil
		}
		c = &Connection{IWARP: e.Conn}
		for w := range c.Sides {
			c.Sides[w].room = room{calls: map[uint32]*Call{}, tags: map[uint32]*segment{}}
			c.Sides[w].properties = codec.DefaultProperties()
		}
		d.connections[e.Conn] = c
	}
	if e.Kind == iwarp.Gone {
		d.gone(c, e)
		delete(d.connections, e.Conn)
		return nil
	}
	if c.strange {
		return nil
	}
	s := &c.Sides[e.Way]
	s.seen = s.seen || e.Kind == iwarp.SetUp || e.Kind == iwarp.Frame
	if e.Late != "" {
		s.late++
	}
	switch e.Kind {
	case iwarp.SetUp:
		if p := codec.ParsePrivate(e.SetUp.Private); p.SendSize > 0 {
			c.certain = true
		}
	case iwarp.Begins:
		c.Sides[0].holes++
		c.Sides[1].holes++
	case iwarp.Missing, iwarp.Lost, iwarp.GivenUp, iwarp.Incomplete:
		s.holes++
		s.message = message{buf: s.message.buf[:0]}
	case iwarp.Frame:
		return d.frame(c, e)
	}
	return nil
}

// frame takes a segment of a message of RDMAP.
func (d *Decoder) frame(c *Connection, e *iwarp.Event) *Message {
	s := &c.Sides[e.Way]
	bad := e.CRC == iwarp.Bad || e.Fault != nil || e.NoHeader || !e.Fits
	if bad {
		s.holes++
		s.message.broken = true
		return nil
	}
	switch e.Opcode {
	case rdmap.Send, rdmap.SendSE, rdmap.SendInvalidate, rdmap.SendSEInvalidate:
		return d.send(c, e)
	case rdmap.Write:
		d.write(c, e)
	case rdmap.ReadRequest:
		d.readRequest(c, e)
	case rdmap.ReadResponse:
		d.readResponse(c, e)
	}
	return nil
}

// write takes a segment of an RDMA Write, which places a part of a Reply.
func (d *Decoder) write(c *Connection, e *iwarp.Event) {
	s := c.Sides[1-e.Way].room.find(e.Header.STag, e.Header.TO, uint64(e.Length), false)
	if s == nil {
		return
	}
	s.done += uint64(e.Length)
	s.call.Placed += uint64(e.Length)
	s.call.placing(e.Last)
	if s.keeps() && e.Absent == 0 {
		d.brings(s, e.Payload, e.Header.TO-s.Offset)
	}
}

// readRequest takes an RDMA Read, which fetches a part of a Call.
func (d *Decoder) readRequest(c *Connection, e *iwarp.Event) {
	r := &e.Operands.Read
	if !e.HasOperands || e.Absent > 0 {
		return
	}
	s := c.Sides[1-e.Way].room.find(r.SourceSTag, r.SourceTO, uint64(r.Size), true)
	if s != nil {
		s.call.reading.begins(e.Last)
	}
	if by := &c.Sides[e.Way]; s != nil && s.keeps() && len(by.pulled) < mostPulled {
		by.pulled = append(by.pulled, pull{s, r.SinkSTag, r.SinkTO, uint64(r.Size), r.SourceTO - s.Offset})
	}
}

// readResponse takes a segment of the answer.
func (d *Decoder) readResponse(c *Connection, e *iwarp.Event) {
	by := &c.Sides[1-e.Way]
	h := &e.Header
	for _, p := range by.pulled {
		if p.stag == h.STag && h.TO >= p.to && h.TO-p.to <= p.size && e.Absent == 0 {
			d.brings(p.from, e.Payload, p.at+h.TO-p.to)
			break
		}
	}
	if a := e.Answers; h.Last && a != nil && a.Whole && a.Opcode == rdmap.ReadRequest {
		r := &a.Read
		by.pulled = slices.DeleteFunc(by.pulled, func(p pull) bool { return p.stag == r.SinkSTag && p.to == r.SinkTO })
		if s := c.Sides[e.Way].room.find(r.SourceSTag, r.SourceTO, uint64(r.Size), true); s != nil {
			s.done += uint64(r.Size)
			s.call.Fetched += uint64(r.Size)
			s.call.Reading += s.call.reading.ends(e.Last)
			if !s.call.Known && s.call.special {
				s.call.RPC = parseCall(s.call.head)
				s.call.compound()
				s.call.args = nil
			}
		}
	}
}

// send takes a segment of a Send.
func (d *Decoder) send(c *Connection, e *iwarp.Event) *Message {
	m := &c.Sides[e.Way].message
	if e.Segments == 1 && e.Started {
		*m = message{buf: m.buf[:0], first: e.First, begun: true}
	}
	m.add(e.Payload[:e.Leading], e.Length)
	if !e.Header.Last {
		return nil
	}
	defer func() { m.begun = false }()
	if !m.begun || !e.Started {
		c.Sides[e.Way].holes++
		return nil
	}
	invalidates := e.Opcode == rdmap.SendInvalidate || e.Opcode == rdmap.SendSEInvalidate
	d.message = Message{Conn: c, Way: e.Way, First: m.first, Last: e.Last, Length: m.length, Header: &d.header, Invalidates: invalidates, Late: e.Late != ""}
	if invalidates {
		d.message.STag = e.Header.Invalidate
	}
	if d.read(&d.message, m) {
		return &d.message
	}
	return nil
}

// gone counts what a connection leaves.
func (d *Decoder) gone(c *Connection, e *iwarp.Event) {
	if e.Why != "" { // it is not the end that it ended with
		c.Sides[0].holes++
		c.Sides[1].holes++
	}
	for w := range c.Sides {
		s := &c.Sides[w]
		if peer := &c.Sides[1-w]; peer.seen && peer.holes == 0 && c.certain {
			for _, call := range s.room.first() {
				c.Found[Unanswered].add(call.At.Record, tcp.Way(w), 0, 0, call.Name())
			}
		}
		if c.Sides[1-w].holes == 0 && s.seen && s.holes == 0 { // the Calls that these answer would have been seen
			for _, o := range c.Sides[1-w].unasked {
				c.Found[Unasked].add(o.record, tcp.Way(1-w), 0, 0, "")
			}
		}
	}
	d.leave(c)
	for w := range c.Sides {
		s := &c.Sides[w]
		for _, call := range s.room.calls {
			d.drop(call)
		}
		s.message, s.parts, s.pulled, s.unasked, s.room = message{}, [2]part{}, nil, nil, room{}
	}
}

// follow has a Call wait for its Reply, unless there are too many.
func (d *Decoder) follow(c *Call, h *codec.Header) bool {
	n := len(h.Reply)
	for i := range h.Reads {
		n += len(h.Reads[i].Segments)
	}
	for _, w := range h.Writes {
		n += len(w)
	}
	if d.calls >= mostCalls || d.segments+n > mostSegments {
		return false
	}
	c.lend(h)
	c.room.calls[c.XID] = c
	d.calls++
	d.segments += n
	return true
}

// drop ends the waiting of a Call.
func (d *Decoder) drop(c *Call) {
	for _, s := range c.segments {
		c.room.unlink(s)
	}
	d.calls--
	d.segments -= len(c.segments)
	d.moved -= len(c.head) + len(c.answer) + len(c.target)
	if c.room.calls[c.XID] == c {
		delete(c.room.calls, c.XID)
	}
}

// first returns the Calls that wait, in the order of the capture.
func (r *room) first() []*Call {
	all := make([]*Call, 0, len(r.calls))
	for _, c := range r.calls {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Call) int { return a.At.Record - b.At.Record })
	return all
}
