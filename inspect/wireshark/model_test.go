package wireshark_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
)

// packet is a frame of a capture and what the others say about it. Numbers are
// places in the file, from 1; 0 is none.
type packet struct {
	number   int
	src, dst capture.Addr
	prefix   []byte
	data     []byte
	frame    frame.Frame
	checksum []byte // nil: it has none
	msgs     []frame.Message
	bytes    [][]byte
	session  *frame.SessionFrame // nil: it is of none
	captured *captured.Packet    // likewise

	doubled bool    // in a session: a copy of that number came before
	first   *packet // of its copies; itself, if it is that
	copies  []int   // of the first one: all, itself included
	ackedIn int
	acks    []int
	txns    []*transaction // by message
}

// isHello reports whether the frame is of a handshake for a session.
func (p *packet) isHello() bool {
	_, ok := p.handshake()
	return ok
}

func (p *packet) handshake() (h frame.Handshake, ok bool) {
	if len(p.msgs) != 1 || p.session != nil {
		return h, false
	}
	return frame.HandshakeOf(&p.frame, &p.msgs[0])
}

// hasData reports whether the frame is one that is acknowledged.
func (p *packet) hasData() bool {
	if p.session != nil {
		return p.session.Control == frame.NoControl || p.session.Control == frame.ControlBell
	}
	return len(p.msgs) > 0 && !p.isHello()
}

// name is an id, of a frame or a transaction, in its direction.
type name struct {
	src, dst capture.Addr
	from, to frame.EndpointID
	id       uint32
}

func (p *packet) name(id uint32) name { return name{p.src, p.dst, p.frame.Src, p.frame.Dst, id} }

// heard names an id of whoever p is sent to.
func (p *packet) heard(id frame.Seq) name {
	return name{p.dst, p.src, p.frame.Dst, p.frame.Src, uint32(id)}
}

// transaction is what a capture shows of one.
type transaction struct {
	have      int
	frames    []*packet // first copies
	completes int
}

// acked returns where the last of its frames was acknowledged.
func (x *transaction) acked() (last int) {
	for _, p := range x.frames {
		if p.ackedIn == 0 {
			return 0
		}
		last = max(last, p.ackedIn)
	}
	if x.completes == 0 {
		return 0
	}
	return last
}

// model reads a capture and works out what belongs together, in a way that is
// good for captures with fewer ids than would wrap.
func model(t testing.TB, file string, o captured.Options) []*packet {
	t.Helper()
	var all []*packet
	last := make(map[name]*packet)
	open := make(map[name]*transaction)
	for c, err := range captured.ReadFile(file, o) {
		if err != nil {
			t.Fatal(err)
		}
		p := &packet{number: c.Record, src: c.Src, dst: c.Dst, prefix: slices.Clone(c.Prefix), data: slices.Clone(c.Data)}
		content, sum := c.Whole()
		if sum == frame.WrongChecksum {
			t.Fatalf("packet %d: its checksum is wrong", c.Record)
		}
		if sum == frame.RightChecksum {
			p.checksum = slices.Clone(p.data[len(content):])
			p.data = p.data[:len(content):len(content)]
		}
		if c.Session() {
			if p.inSession(c, content); p.session == nil {
				t.Fatalf("packet %d is malformed", c.Record)
			}
			all = append(all, p)
			p.linkSession(last, open, all)
			continue
		}
		if p.frame, err = frame.Parse(p.data); err != nil {
			t.Fatalf("packet %d: %v", c.Record, err)
		}
		for cursor := p.frame.Cursor(); cursor.Next(); {
			p.msgs, p.bytes = append(p.msgs, cursor.Msg), append(p.bytes, cursor.Data)
		}
		all = append(all, p)
		p.link(last, open)
	}
	if len(all) == 0 {
		t.Fatalf("no frames in %s", file)
	}
	return all
}

// inSession takes a frame of a session.
func (p *packet) inSession(c *captured.Packet, content []byte) {
	f, err := frame.ParseSession(slices.Clone(content))
	if err != nil {
		return
	}
	own := *c
	own.Data = slices.Clone(c.Data)
	p.session, p.captured = &f, &own
	p.frame.Dst, p.frame.Src = f.Dst, f.Src
	for cursor := f.Cursor(); cursor.Next(); {
		p.msgs, p.bytes = append(p.msgs, cursor.Msg), append(p.bytes, cursor.Data)
	}
}

// linkSession finds what a frame of a session has to do with those before: copies have numbers, and what is acknowledged is all up to an id, and ranges.
func (p *packet) linkSession(last map[name]*packet, open map[name]*transaction, all []*packet) {
	p.first = p
	if p.hasData() {
		if old := last[p.name(p.session.ID)]; old != nil {
			p.first = old
		} else {
			last[p.name(p.session.ID)] = p
			p.join(open)
		}
	}
	for _, n := range p.first.copies {
		if q := all[n-1]; q.session.Copy == p.session.Copy && p.session.Copy < frame.MostCopies {
			p.doubled = true
		}
	}
	p.first.copies = append(p.first.copies, p.number)
	if p.session.Control == frame.ControlReset {
		return
	}
	a, _ := p.session.SessionAck()
	for _, q := range all {
		if q.session == nil || !q.hasData() || q.first != q || q.ackedIn != 0 || q.frame.Src == p.frame.Src {
			continue
		}
		in := int32(q.session.ID-p.session.Ack) <= 0
		for i := range a.Ranges.Len() {
			r := a.Ranges.At(i)
			in = in || q.session.ID-r.First < uint32(r.Count)
		}
		if in {
			q.ackedIn = p.number
			p.acks = append(p.acks, q.number)
		}
	}
}

func (p *packet) link(last map[name]*packet, open map[name]*transaction) {
	if p.isHello() { // it has no id
		p.first, p.copies = p, []int{p.number}
		return
	}
	id := p.name(uint32(p.frame.Seq))
	old := last[id]
	if old != nil && len(old.msgs) == len(p.msgs) && bytes.Equal(old.data[frame.HeaderSize:], p.data[frame.HeaderSize:]) &&
		(len(p.msgs) > 0 || old.frame.Header == p.frame.Header) {
		p.first = old
	} else {
		last[id], p.first = p, p
		p.join(open)
	}
	p.first.copies = append(p.first.copies, p.number)
	for i := range int(p.frame.AckCount) {
		if acked := last[p.heard(p.frame.AckStart.Add(i))]; acked != nil && acked.ackedIn == 0 {
			acked.ackedIn = p.number
			p.acks = append(p.acks, acked.number)
		}
	}
}

func (p *packet) join(open map[name]*transaction) {
	for _, m := range p.msgs {
		if p.session != nil && m.Type == frame.TypeServices && m.Count == 0 {
			continue // a list, and no transaction
		}
		id := p.name(m.Txn)
		x := open[id]
		if x == nil {
			x = new(transaction)
			open[id] = x
		}
		p.txns = append(p.txns, x)
		if n := len(x.frames); n == 0 || x.frames[n-1] != p {
			x.frames = append(x.frames, p)
		}
		if x.have++; x.have >= int(m.Count) {
			x.completes = p.number
			delete(open, id)
		}
	}
}

var plainFields = append([]string{
	"_ws.col.Info", "dgrdma.prefix", "dgrdma.dst", "dgrdma.src", "dgrdma.seq", "dgrdma.ack.start", "dgrdma.ack.count", "dgrdma.ack.last",
	"dgrdma.flags", "dgrdma.flags.messages", "dgrdma.flags.checksum", "dgrdma.checksum", "dgrdma.checksum.right", "dgrdma.flags.reserved", "dgrdma.messages", "dgrdma.padding", "dgrdma.msg.txn",
	"dgrdma.msg.completion.addr", "dgrdma.msg.completion.value", "dgrdma.msg.count", "dgrdma.msg.index", "dgrdma.msg.addr",
	"dgrdma.msg.len", "dgrdma.msg.type", "dgrdma.msg.more", "dgrdma.msg.data", "dgrdma.session.handshake", "dgrdma.session.sender",
	"dgrdma.session.receiver", "dgrdma.session.check", "dgrdma.malformed",
}, serviceFields...)

// checkPlain compares what is in one frame alone.
func checkPlain(t *testing.T, p *packet, r row) {
	t.Helper()
	equal := func(field string, want ...int) {
		if got := r.numbers(t, field); !slices.Equal(got, want) {
			t.Errorf("packet %d: %s is %v, want %v", p.number, field, got, want)
		}
	}
	ofMessages := func(field string, value func(*frame.Message) int) {
		var want []int
		for i := range p.msgs {
			want = append(want, value(&p.msgs[i]))
		}
		equal(field, want...)
	}
	if p.session != nil {
		checkSession(t, fmt.Sprintf("packet %d", p.number), r, wantSession(p.captured))
		return
	}
	h := p.frame.Header
	equal("dgrdma.dst", int(h.Dst))
	equal("dgrdma.src", int(h.Src))
	equal("dgrdma.seq", int(h.Seq))
	equal("dgrdma.ack.start", int(h.AckStart))
	equal("dgrdma.ack.count", int(h.AckCount))
	if h.AckCount > 0 {
		equal("dgrdma.ack.last", int(h.AckStart.Add(int(h.AckCount)-1)))
	} else {
		equal("dgrdma.ack.last")
	}
	equal("dgrdma.flags", int(h.Flags))
	equal("dgrdma.flags.reserved", int(h.Flags)>>2)
	equal("dgrdma.flags.checksum", int(h.Flags)>>1&1)
	if p.checksum != nil {
		equal("dgrdma.checksum", int(binary.LittleEndian.Uint32(p.checksum)))
		equal("dgrdma.checksum.right", 1)
	} else {
		equal("dgrdma.checksum")
		equal("dgrdma.checksum.right")
	}
	equal("dgrdma.flags.messages", int(h.Flags)&1)
	equal("dgrdma.messages", len(p.msgs))
	ofMessages("dgrdma.msg.txn", func(m *frame.Message) int { return int(m.Txn) })
	ofMessages("dgrdma.msg.completion.addr", func(m *frame.Message) int { return int(m.CompletionAddr) })
	ofMessages("dgrdma.msg.completion.value", func(m *frame.Message) int { return int(m.CompletionValue) })
	ofMessages("dgrdma.msg.count", func(m *frame.Message) int { return int(m.Count) })
	ofMessages("dgrdma.msg.index", func(m *frame.Message) int { return int(m.Index) })
	ofMessages("dgrdma.msg.addr", func(m *frame.Message) int { return int(m.Addr) })
	ofMessages("dgrdma.msg.len", func(m *frame.Message) int { return int(m.Len) })
	ofMessages("dgrdma.msg.type", func(m *frame.Message) int { return int(m.Type) })
	ofMessages("dgrdma.msg.more", func(m *frame.Message) int {
		if m.More {
			return 1
		}
		return 0
	})
	var data []string
	for _, b := range p.bytes {
		if len(b) > 0 {
			data = append(data, hex.EncodeToString(b))
		}
	}
	for field, want := range map[string]string{
		"dgrdma.msg.data": strings.Join(data, ","), "dgrdma.prefix": hex.EncodeToString(p.prefix),
		"dgrdma.padding": hex.EncodeToString(p.frame.Padding()), "dgrdma.malformed": "",
	} {
		if r[field] != want {
			t.Errorf("packet %d: %s is %q, want %q", p.number, field, r[field], want)
		}
	}
	if is, ok := p.handshake(); ok {
		equal("dgrdma.session.handshake", int(p.msgs[0].Index))
		equal("dgrdma.session.sender", int(is.Sender))
		equal("dgrdma.session.receiver", int(is.Receiver))
		equal("dgrdma.session.check", int(is.Check))
	} else {
		equal("dgrdma.session.handshake")
	}
	checkServices(t, p, r)
	checkInfo(t, p, r["_ws.col.Info"])
}

// checkServices compares what frames of handshakes list.
func checkServices(t *testing.T, p *packet, r row) {
	t.Helper()
	var count, names, bases, knows []string
	if list, told := p.frame.Services(); told {
		knows = []string{strconv.Itoa(list.Known)}
		count = []string{strconv.Itoa(len(list.All()))}
		for _, s := range list.All() {
			names, bases = append(names, s.Name.String()), append(bases, fmt.Sprintf("0x%08x", s.Base))
		}
	}
	for field, want := range map[string][]string{
		"dgrdma.session.services": count, "dgrdma.session.service.name": names, "dgrdma.session.service.base": bases,
		"dgrdma.session.knows": knows,
	} {
		if got := r.list(field); !slices.Equal(got, want) {
			t.Errorf("packet %d: %s is %q, want %q", p.number, field, got, want)
		}
	}
}

var serviceFields = []string{"dgrdma.session.services", "dgrdma.session.service.name", "dgrdma.session.service.base", "dgrdma.session.knows"}

// checkInfo: frames and their messages are described as package frame does it,
// behind what is remarkable about them, and three messages at most.
func checkInfo(t *testing.T, p *packet, got string) {
	t.Helper()
	if strings.HasPrefix(got, "[") {
		_, got, _ = strings.Cut(got, "] ")
	}
	want := p.frame.String()
	if n := len(p.msgs); n > 3 {
		parts := strings.SplitAfterN(want, "]", 4)
		want = strings.Join(parts[:3], "") + fmt.Sprintf(" and %d more", n-3)
	}
	if got != want {
		t.Errorf("packet %d: info is %q, want %q", p.number, got, want)
	}
}

var linkFields = []string{
	"dgrdma.analysis.retransmission_of", "dgrdma.analysis.duplicate_of", "dgrdma.analysis.copy", "dgrdma.analysis.previous_copy",
	"dgrdma.analysis.next_copy", "dgrdma.analysis.acked_in", "dgrdma.analysis.acks", "dgrdma.txn.begins_in", "dgrdma.txn.completes_in",
	"dgrdma.txn.acked_in", "dgrdma.txn.frame", "dgrdma.analysis.retransmission",
}

// checkLinks compares what frames say about each other, after a second pass.
func checkLinks(t *testing.T, all []*packet, got map[int]row) {
	t.Helper()
	for _, p := range all {
		r := got[p.number]
		equal := func(field string, want ...int) {
			want = slices.DeleteFunc(want, func(n int) bool { return n == 0 })
			if got := r.numbers(t, field); !slices.Equal(got, want) {
				t.Errorf("packet %d: %s is %v, want %v", p.number, field, got, want)
			}
		}
		copies := p.first.copies
		nth := slices.Index(copies, p.number)
		var again, duplicate, previous, next, count int
		if nth > 0 {
			previous, count = copies[nth-1], nth+1
			if p.hasData() && !p.doubled {
				again = p.first.number
			} else {
				duplicate = p.first.number
			}
		}
		if nth+1 < len(copies) {
			next = copies[nth+1]
		}
		equal("dgrdma.analysis.retransmission_of", again)
		equal("dgrdma.analysis.duplicate_of", duplicate)
		equal("dgrdma.analysis.copy", count)
		equal("dgrdma.analysis.previous_copy", previous)
		equal("dgrdma.analysis.next_copy", next)
		equal("dgrdma.analysis.acked_in", p.first.ackedIn)
		equal("dgrdma.analysis.acks", p.acks...)
		if marked := r["dgrdma.analysis.retransmission"] != ""; marked != (again != 0) {
			t.Errorf("packet %d: expert information on a retransmission: %v", p.number, marked)
		}
		var begins, completes, acked, frames []int
		var last *transaction
		for _, x := range p.first.txns {
			if x == last {
				continue
			}
			last = x
			begins, completes, acked = append(begins, x.frames[0].number), append(completes, x.completes), append(acked, x.acked())
			if p.number == x.frames[0].number || p.number == x.completes {
				for _, q := range x.frames {
					frames = append(frames, q.number)
				}
			}
		}
		equal("dgrdma.txn.begins_in", begins...)
		equal("dgrdma.txn.completes_in", completes...)
		equal("dgrdma.txn.acked_in", acked...)
		equal("dgrdma.txn.frame", frames...)
	}
}
