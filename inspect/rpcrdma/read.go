package rpcrdma

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dgrdma/dgrdma/capture/tcp"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// read reads a Send. It reports whether it is one of RPC-over-RDMA.
func (d *Decoder) read(m *Message, whole *message) bool {
	c, s := m.Conn, &m.Conn.Sides[m.Way]
	m.Octets = whole.buf
	payload, err := d.codec.Decode(whole.buf, m.Header)
	m.Payload = m.Length - uint64(len(whole.buf)-len(payload))
	if err != nil {
		m.Payload = 0
	}
	if !c.certain {
		if c.certain = err == nil && shows(m.Header, payload); !c.certain {
			if c.tried++; c.tried >= mostTried {
				c.strange = true
				for w := range c.Sides {
					c.Sides[w].message = message{}
				}
			}
			return false
		}
	}
	s.Messages++
	if err != nil {
		d.unread(m, err, whole)
		return true
	}
	m.Kind = kindOf(m.Header)
	d.classify(m, payload)
	if c.Known {
		d.meet(c)
		d.versions(m)
	}
	if t := c.threshold(m.Way, m.Header.Version); t > 0 && m.Length > uint64(t) {
		c.found(TooLong, m, 0, m.Length, fmt.Sprintf("%s of %d octets, threshold %d", m.Kind, m.Length, t))
	}
	s.Version = m.Header.Version
	if m.Header.Version == codec.Version2 {
		d.spend2(m)
	}
	d.take(m, payload)
	return true
}

// shows reports whether a decoded message proves that its connection carries RPC-over-RDMA.
func shows(h *codec.Header, payload []byte) bool {
	switch h.Type {
	case codec.TypeConnProp:
		return true
	case codec.TypeMsg:
		xid, kind, ok := xidOf(payload)
		return ok && xid == h.XID && (kind == replyType || kind == callType && parseCall(payload).Known)
	}
	return false
}

// unread is for a message whose header does not decode.
func (d *Decoder) unread(m *Message, err error, whole *message) {
	s := &m.Conn.Sides[m.Way]
	if whole.broken { // the rest may make it whole
		s.holes++
		return
	}
	m.Fault = err
	text := err.Error()
	if f := (*codec.Fault)(nil); errors.As(err, &f) {
		text = fmt.Sprintf("%s, at octet %d of %d", f.Reason, f.At, m.Length)
	}
	m.Conn.found(Malformed, m, 0, 0, text)
	// What it was is not known: a Call or Reply may be gone.
	s.holes++
}

// kindOf tells what a header is of, as far as it tells by itself.
func kindOf(h *codec.Header) Kind {
	switch {
	case h.Type == codec.TypeError:
		return Error
	case h.Type == codec.TypeConnProp:
		return Properties
	case h.IsRefresh():
		return Refresh
	case h.Flags&codec.FlagMore != 0:
		return Part
	case h.Flags&codec.FlagResponse != 0:
		return ReplyKind
	}
	return CallKind
}

// classify tells Calls from Replies, and the reverse direction from the forward one.
func (d *Decoder) classify(m *Message, payload []byte) {
	c, h := m.Conn, m.Header
	head := payload
	p := c.Sides[m.Way].part(h)
	if p.begun && h.Type == codec.TypeMsg {
		if p.xid != h.XID {
			p.begun = false
			m.wrong("the parts of another message are not complete")
		} else {
			p.head = append(p.head, payload[:min(len(payload), mostHead-len(p.head))]...)
			head = p.head
		}
	}
	xid, kind, ok := xidOf(head)
	switch {
	case m.Wrong != "" || m.Kind == Error || m.Kind == Properties || m.Kind == Refresh:
	case h.Type == codec.TypeMsg && ok && xid != h.XID:
		m.wrong(fmt.Sprintf("the XID of the header is %#x, and that of the RPC message %#x", h.XID, xid))
	case h.Type == codec.TypeMsg && ok && kind > replyType:
		m.wrong(fmt.Sprintf("the RPC message is neither a Call nor a Reply, but of type %d", kind))
	case h.Type == codec.TypeMsg && !ok && m.Kind != Part && m.Payload < 8:
		m.wrong("there is no RPC message")
	case h.Type == codec.TypeMsg && ok:
		if isReply := kind == replyType; h.Version == codec.Version2 && isReply != (h.Flags&codec.FlagResponse != 0) {
			m.wrong("RESPONSE does not fit the RPC message")
		} else if m.Kind != Part {
			if m.Kind = CallKind; isReply {
				m.Kind = ReplyKind
			}
		}
	case h.Version == codec.Version1 && h.Type == codec.TypeMsg:
		m.Kind = c.guess(m.Way, h.XID)
	case h.Version == codec.Version1 && h.Type == codec.TypeNoMsg:
		c.roles(m.Way, len(h.Reads) > 0)
		if m.Kind = CallKind; len(h.Reads) == 0 && (!c.Known || m.Way != c.Client) {
			m.Kind = ReplyKind
		}
	}
	c.roles(m.Way, m.Kind == CallKind)
	fromClient := m.Way == c.Client
	switch m.Kind {
	case CallKind:
		m.Reverse = c.Known && !fromClient
	case ReplyKind, Error:
		m.Reverse = c.Known && fromClient
	case Part:
		m.Reverse = c.Known && fromClient == (h.Flags&codec.FlagResponse != 0)
	}
}

// guess tells a Call from a Reply of which the octets that say it were not captured: a Reply has the XID of a Call that waits, and else a client sends Calls.
// What else a server sends, a Reply to a Call that was not captured or a Call, is not known.
func (c *Connection) guess(w tcp.Way, xid uint32) Kind {
	c.roles(w, false)
	switch {
	case c.Sides[1-w].room.calls[xid] != nil:
		return ReplyKind
	case c.Known && w == c.Client:
		return CallKind
	}
	return Unread
}

// wrong notes what is wrong with an RPC message.
func (m *Message) wrong(text string) {
	m.Wrong = text
	m.Conn.found(Malformed, m, 0, 0, text)
}

// versions follows which version is spoken.
func (d *Decoder) versions(m *Message) {
	c, s := m.Conn, &m.Conn.Sides[m.Way]
	v := m.Header.Version
	if m.Way == c.Client && m.Kind != Error {
		if at, same := c.falls(v); at != 0 {
			text := "a new connection"
			if same {
				text = "the same connection"
			}
			c.found(FallBack, m, at, 0, text)
			c.fell = true
		}
	}
	if v == codec.Version2 && s.first2 == 0 {
		s.first2 = m.Last.Record
	}
}

// take does what a message of a kind is for.
func (d *Decoder) take(m *Message, payload []byte) {
	c, s := m.Conn, &m.Conn.Sides[m.Way]
	if m.Wrong != "" {
		s.holes++ // a Call or a Reply may be gone
		return
	}
	p := s.part(m.Header)
	head, length := payload, m.Payload
	if p.begun && m.Header.Type == codec.TypeMsg {
		head, length = p.head, p.length+m.Payload
	}
	switch m.Kind {
	case Unread:
		s.holes++
	case Part:
		if !p.begun {
			*p = part{begun: true, xid: m.Header.XID, head: append(p.head[:0], payload[:min(len(payload), mostHead)]...)}
		}
		p.length += m.Payload
	case CallKind:
		d.call(m, head, length)
		p.begun = false
	case ReplyKind:
		d.reply(m, head, length)
		p.begun = false
	case Error:
		d.reported(m)
	case Properties:
		s.props = m.Header.XID
		if !s.properties.Apply(m.Header.Properties) {
			c.found(Malformed, m, 0, 0, "there are too many properties")
		}
	}
}

// call takes a Call.
func (d *Decoder) call(m *Message, head []byte, length uint64) {
	c, s := m.Conn, &m.Conn.Sides[m.Way]
	h := m.Header
	k := &Call{XID: h.XID, At: m.Last, Reverse: m.Reverse, RPC: parseCall(head), Inline: length, inv: h.InvHandle, late: m.Late, room: &s.room}
	m.Call, m.rpc = k, head
	s.Calls++
	if k.Reverse {
		c.found(ReverseCalls, m, 0, 0, k.Name())
	}
	if before := s.room.calls[k.XID]; before != nil {
		c.found(Twice, m, before.At.Record, 0, k.Name())
		d.drop(before)
	} else if at := c.again(k); at != 0 {
		c.found(Again, m, at, 0, k.Name())
	}
	if !d.follow(k, h) {
		s.holes++
		return
	}
	k.compound()
	peer := &c.Sides[1-m.Way]
	if i := slices.IndexFunc(peer.unasked, func(o orphan) bool { return o.xid == k.XID && o.record >= m.Last.Record }); m.Late && i >= 0 {
		peer.unasked = slices.Delete(peer.unasked, i, i+1)
		d.drop(k)
	}
	d.spend1(m)
	s.use.step(s, m)
	if k.handles() > 1 {
		if p, ok := c.said(m.Way); ok && p.Invalidate || h.Version == codec.Version2 {
			c.found(SeveralTags, m, 0, 0, k.Name())
		}
	}
	if n, ok := k.written(); ok && n >= leastData && len(h.Reads) == 0 {
		c.found(InlineData, m, 0, n, k.Name())
	}
	k.args = nil
}

// find finds the Call that a message answers, and ends its waiting.
func (d *Decoder) find(m *Message) *Call {
	c, s := m.Conn, &m.Conn.Sides[m.Way]
	k := c.Sides[1-m.Way].room.calls[m.Header.XID]
	if k == nil {
		if peer := &c.Sides[1-m.Way]; m.Kind == Error && peer.props == m.Header.XID && peer.props != 0 {
			return nil // it is about the properties
		}
		if len(s.unasked) < mostUnasked {
			s.unasked = append(s.unasked, orphan{m.Header.XID, m.Last.Record})
		}
		return nil
	}
	m.Call = k
	d.drop(k)
	waited := &c.Sides[1-m.Way]
	waited.use.step(waited, m)
	return k
}

// reply takes a Reply.
func (d *Decoder) reply(m *Message, head []byte, length uint64) {
	c := m.Conn
	m.grants()
	k := d.find(m)
	var of RPC
	if k != nil {
		of = k.RPC
		if m.Header.Type == codec.TypeNoMsg {
			head = k.answer
		}
	}
	m.rpc = head
	m.Status = parseReply(head, &of)
	if k == nil {
		return
	}
	if why := k.compare(m.Header); why != "" && c.Sides[m.Way].holes == 0 {
		c.found(Returned, m, k.At.Record, 0, k.Name()+": "+why)
	}
	if m.Invalidates {
		m.invalidation(k)
	}
	d.data(m, k)
	m.verifier(k)
	m.Status.results = nil
}

// invalidation checks what a Reply invalidates.
func (m *Message) invalidation(k *Call) {
	c := m.Conn
	p, said := c.said(1 - m.Way)
	switch {
	case m.Header.Version == codec.Version2 && m.STag != k.inv:
		c.found(Invalidation, m, k.At.Record, 0, fmt.Sprintf("STag %#x, and the Call allows %#x", m.STag, k.inv))
	case !k.hasHandle(m.STag):
		c.found(Invalidation, m, k.At.Record, 0, fmt.Sprintf("STag %#x, which its Call does not have", m.STag))
	case m.Header.Version == codec.Version1 && said && !p.Invalidate:
		c.found(Invalidation, m, k.At.Record, 0, fmt.Sprintf("STag %#x, and its peer has not said that it takes that", m.STag))
	}
}

// data looks at where the data of a READ are.
func (d *Decoder) data(m *Message, k *Call) {
	n, ok := m.Status.read(&k.RPC)
	if !ok {
		return
	}
	c := m.Conn
	placed := uint64(0)
	for _, w := range m.Header.Writes {
		placed += w.Length()
	}
	switch {
	case placed == n || n == 0:
		if placed == 0 && n == 0 {
			return
		}
	case placed > 0:
		if c.Sides[m.Way].holes == 0 {
			c.found(Returned, m, k.At.Record, 0, fmt.Sprintf("%s: its results have %d octets of data, and %d in chunks", k.Name(), n, placed))
		}
	case k.hasWrite():
		c.found(Unplaced, m, k.At.Record, n, k.Name())
	case n >= leastData && m.Header.Type == codec.TypeMsg:
		c.found(InlineData, m, k.At.Record, n, k.Name())
	}
}

// reported takes an ERROR.
func (d *Decoder) reported(m *Message) {
	c := m.Conn
	m.grants()
	r := &m.Header.Report
	other := 0
	if k := d.find(m); k != nil {
		other = k.At.Record
	}
	name := r.Code.Name(m.Header.Version)
	for i := range c.Errors {
		if c.Errors[i].Code == name {
			c.Errors[i].add(m.Last.Record, m.Way, other, 0, "")
			return
		}
	}
	e := Reported{Code: name}
	e.add(m.Last.Record, m.Way, other, 0, "")
	c.Errors = append(c.Errors, e)
}
