package mpa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// script is the peer's end of a connection: what it says is known, and comes in steps.
type script struct {
	net.Conn
	in   []byte
	step int // octets that come at once; 0: all
	said []byte
}

func (s *script) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := len(s.in)
	if s.step > 0 {
		n = min(n, s.step)
	}
	n = copy(b, s.in[:n])
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(b []byte) (int, error) {
	s.said = append(s.said, b...)
	return len(b), nil
}

func (s *script) Close() error                { return nil }
func (s *script) SetDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr        { return &net.UnixAddr{Name: "siw", Net: "script"} }

// framed is one frame of a recorded direction.
type framed struct {
	wire    []byte
	h       ddp.Header
	payload []byte
	end     int // in the stream
}

func framesOf(stream []byte, at int) (all []framed) {
	for at < len(stream) {
		n := int(binary.BigEndian.Uint16(stream[at:]))
		f := framed{wire: stream[at : at+LengthSize+n+TrailerSize(n)]}
		if ddp.Parse(f.wire[LengthSize:LengthSize+n], &f.h) == nil {
			f.payload = f.wire[LengthSize+f.h.Size() : LengthSize+n]
		}
		at += len(f.wire)
		f.end = at
		all = append(all, f)
	}
	return all
}

// replay puts a stream of ours in the place of one side of a recorded connection. The peer says what it said then, in the
// order of the capture, and the program of this side does what it did then.
type replay struct {
	rec        *recorded
	own, peer  string
	request    SetUp
	reply      SetUp
	with       replayed
	wire       script
	conn       *Conn
	stream     *rdmap.Stream
	memory     capturedMemory
	said, hear []captured // the messages of this side, and of the peer, as recorded
	wrong      []error

	posted         uint64
	sent, received completed
	buffers        [][]byte
	answers, asked int // answers to our Reads that were fed, and Reads of the peer
	over           bool
	delivered      int // the peer's messages that were fed to their end
}

// captured is a message of a capture, and where in its stream it ends.
type captured struct {
	message
	end int
}

type completed struct{ list []rdmap.Completion }

func (c *completed) Complete(d *rdmap.Completion) { c.list = append(c.list, *d) }

func (r *replay) errorf(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Errorf(format, args...))
}

// newReplay reads what was recorded. It says false if there is nothing of the side.
func newReplay(rec *recorded, own string, with replayed, step int) (*replay, error) {
	r := &replay{rec: rec, own: own, peer: fromR, with: with, memory: capturedMemory{}}
	if own == fromR {
		r.peer = fromI
	}
	r.wire.step = step
	begins := map[string]int{}
	for way, s := range map[string]*SetUp{fromI: &r.request, fromR: &r.reply} {
		size, err := setupSize(rec.streams[way], way == fromR)
		if err != nil {
			return nil, err
		}
		if *s, err = parseSetup(rec.streams[way][:size], way == fromR); err != nil {
			return nil, err
		}
		begins[way] = size
	}
	for way, list := range map[string]*[]captured{own: &r.said, r.peer: &r.hear} {
		var in ddp.Inbound
		kinds := map[bool]*captured{true: {}, false: {}}
		for _, f := range framesOf(rec.streams[way], begins[way]) {
			m := kinds[f.h.Tagged]
			m.payload = append(m.payload, f.payload...)
			if err := in.Follows(&f.h, len(f.payload)); err != nil {
				return nil, err
			}
			if first, _ := in.Placed(&f.h, len(f.payload)); first != nil {
				m.first, m.end = *first, f.end
				*list = append(*list, *m)
				kinds[f.h.Tagged] = &captured{}
			}
		}
	}
	r.learn()
	return r, nil
}

// options are what the program of this side asked for.
func (r *replay) options() *Options {
	mine := r.request
	if r.own == fromR {
		mine = r.reply
	}
	o := &Options{Rev: int(mine.Rev), NoCRC: !mine.CRC && !(r.own == fromR && r.with.wantsCRC), IRD: int(mine.IRD), ORD: int(mine.ORD), Private: mine.Private, Strict: true}
	if !mine.Enhanced {
		o.IRD, o.ORD = 4, 4 // siwpeer's
	}
	if r.own == fromI {
		o.PeerToPeer, o.Ready = mine.PeerToPeer, mine.Ready
	}
	if r.with.reads != [2]int{} && r.own == fromR {
		o.IRD, o.ORD = r.with.reads[0], r.with.reads[1]
	}
	return o
}

// run replays everything and says what was not as it should be.
func (r *replay) run(t testing.TB) []error {
	if !r.open(t) {
		return r.wrong
	}
	frames := framesOf(r.rec.streams[r.peer], r.setupEnd(r.peer))
	posted := r.program(t, r.setupEnd(r.own), 0)
	for _, p := range r.rec.packets {
		if p.way == r.own {
			posted = r.program(t, p.end, posted)
			continue
		}
		for len(frames) > 0 && frames[0].end <= p.end {
			r.feed(t, &frames[0])
			frames = frames[1:]
		}
	}
	r.finish(t)
	return r.wrong
}

func (r *replay) setupEnd(way string) int {
	size, _ := setupSize(r.rec.streams[way], way == fromR)
	return size
}

// open sets the connection up and compares what we say with what siw said.
func (r *replay) open(t testing.TB) bool {
	r.wire.in = r.rec.streams[r.peer][:r.setupEnd(r.peer)]
	var err error
	if r.own == fromI {
		r.conn, err = Initiate(t.Context(), &r.wire, r.options())
		r.compareSetup(&r.request, false)
	} else {
		var q *Request
		if q, err = Await(t.Context(), &r.wire, 0); err != nil {
			r.errorf("the request: %w", err)
			return false
		}
		if r.with.rejects {
			if err := q.Reject(t.Context(), r.reply.Private); err != nil {
				r.errorf("rejecting: %w", err)
			}
			r.compareSetup(&r.reply, true)
			return false
		}
		r.conn, err = q.Accept(t.Context(), r.options())
		r.compareSetup(&r.reply, true)
	}
	var rejected *RejectedError
	if r.own == fromI && r.reply.Reject {
		if !errors.As(err, &rejected) || !bytes.Equal(rejected.Private, r.reply.Private) {
			r.errorf("rejected with %x, and heard %v", r.reply.Private, err)
		}
		return false
	}
	if err != nil {
		r.errorf("set-up: %w", err)
		return false
	}
	a := r.conn.Agreed()
	cfg := rdmap.Config{Initiator: r.own == fromI, IRD: a.IRD, ORD: a.ORD, Sends: 100, Receives: 100, Memory: &r.memory,
		Sent: &r.sent, Received: &r.received}
	cfg.Ready = map[Ready]rdmap.Ready{ReadyWrite: rdmap.ReadyWrite, ReadyRead: rdmap.ReadyRead, ReadySend: rdmap.ReadySend}[a.Ready]
	r.stream = rdmap.New(cfg)
	longest := 1
	for i := range r.hear {
		longest = max(longest, len(r.hear[i].payload)+1)
	}
	for range r.with.receives {
		b := make([]byte, longest)
		if err := r.stream.PostReceive(rdmap.Receive{ID: uint64(len(r.buffers)), Data: b}); err != nil {
			r.errorf("a receive: %w", err)
		}
		r.buffers = append(r.buffers, b)
	}
	return true
}

// compareSetup looks for the fields in which our request or reply differs from siw's.
func (r *replay) compareSetup(theirs *SetUp, reply bool) {
	size, err := setupSize(r.wire.said, reply)
	if err != nil || size > len(r.wire.said) {
		r.errorf("our set-up frame %x: %v", r.wire.said, err)
		return
	}
	ours, err := parseSetup(r.wire.said[:size], reply)
	if err != nil {
		r.errorf("our set-up frame %x: %w", r.wire.said, err)
		return
	}
	if differs := differences(&ours, theirs); fmt.Sprint(differs) != fmt.Sprint(r.with.setup) {
		r.errorf("the set-up frame differs in %v from siw's, and should in %v:\n%+v\n%+v", differs, r.with.setup, ours, *theirs)
	}
	r.wire.said = r.wire.said[size:]
}

// differences names the fields in which two set-up frames differ.
func differences(ours, theirs *SetUp) (differs []string) {
	for _, f := range []struct {
		name        string
		ours, their any
	}{
		{"revision", ours.Rev, theirs.Rev}, {"CRC", ours.CRC, theirs.CRC}, {"reject", ours.Reject, theirs.Reject},
		{"enhanced", ours.Enhanced, theirs.Enhanced}, {"reserved", ours.Reserved, theirs.Reserved},
		{"IRD", ours.IRD, theirs.IRD}, {"ORD", ours.ORD, theirs.ORD},
		{"peer-to-peer", ours.PeerToPeer, theirs.PeerToPeer}, {"ready", ours.Ready, theirs.Ready},
		{"private", string(ours.Private), string(theirs.Private)},
	} {
		if f.ours != f.their {
			differs = append(differs, f.name)
		}
	}
	return differs
}

// program does what the program of this side did until its stream was as long as end. It begins with message i.
func (r *replay) program(t testing.TB, end, i int) int {
	for ; i < len(r.said) && r.said[i].end <= end && !r.over; i++ {
		w, ok := r.work(&r.said[i])
		if !ok {
			continue
		}
		r.posted++
		w.ID = r.posted
		if err := r.stream.Post(&w); err != nil {
			r.errorf("posting %v: %w", w.Op, err)
		}
	}
	if err := drain(r.conn, driver{r.stream}); err != nil {
		r.errorf("sending: %w", err)
	}
	return i
}

// work is the request that made siw send a message; not ok: no request of the program did.
func (r *replay) work(m *captured) (w rdmap.Work, ok bool) {
	h := &m.first
	switch op := rdmap.Opcode(h.Control & 15); op {
	case rdmap.Write:
		if h.STag == 1 {
			return w, false // the message that opens the stream
		}
		return rdmap.Work{Op: rdmap.OpWrite, STag: h.STag, TO: h.TO, Data: m.payload}, true
	case rdmap.ReadRequest:
		q := parseRead(m.payload)
		if q.sink == 0 {
			return w, false // likewise
		}
		return rdmap.Work{Op: rdmap.OpRead, STag: q.stag, TO: q.to, Data: r.memory.bytes(q.sink, q.sinkTO, q.size)}, true
	case rdmap.Send, rdmap.SendSE, rdmap.SendInvalidate, rdmap.SendSEInvalidate:
		return rdmap.Work{Op: rdmap.OpSend, Data: m.payload, Invalidate: h.Invalidate,
			Solicited:    op == rdmap.SendSE || op == rdmap.SendSEInvalidate,
			Invalidating: op == rdmap.SendInvalidate || op == rdmap.SendSEInvalidate}, true
	}
	return w, false
}

// feed has a frame of the peer's arrive.
func (r *replay) feed(t testing.TB, f *framed) {
	if r.over {
		return
	}
	if opcode(&message{first: f.h}) == rdmap.ReadRequest {
		r.prepare(parseRead(f.payload), r.asked)
		r.asked++
	}
	r.wire.in = r.translate(f)
	if at := r.with.damage - (f.end - len(f.wire)); r.with.damage > 0 && at >= 0 && at < len(f.wire) {
		r.wire.in = bytes.Clone(r.wire.in)
		r.wire.in[at] ^= 5
	}
	for len(r.wire.in) > 0 && !r.over {
		if err := r.conn.Receive(driver{r.stream}); err != nil {
			r.fault(err)
		}
	}
	if !r.over && f.h.Last {
		r.delivered++
		r.checkWrite()
	}
	if err := drain(r.conn, driver{r.stream}); err != nil {
		r.errorf("sending: %w", err)
	}
	r.over = r.over || r.stream.Err() != nil
}

// fault is what a queue pair does with an error of its carrier.
func (r *replay) fault(err error) {
	r.over = true
	var f ddp.Fault
	if errors.As(err, &f) {
		r.stream.Fail(f, nil)
	}
}

// translate makes the peer answer our requests instead of siw's: with the STag and offsets of our Reads, and with CRC
// if we have agreed on it.
func (r *replay) translate(f *framed) []byte {
	recordedCRC := r.request.CRC || r.reply.CRC
	if recordedCRC && frameCRC(f.wire) != binary.LittleEndian.Uint32(f.wire[len(f.wire)-CRCSize:]) {
		return f.wire // it was damaged, and stays it
	}
	if rdmap.Opcode(f.h.Control&15) != rdmap.ReadResponse && recordedCRC == r.conn.Agreed().CRC {
		return f.wire
	}
	wire := bytes.Clone(f.wire)
	if rdmap.Opcode(f.h.Control&15) == rdmap.ReadResponse {
		theirs, ours := reads(messages(r.said)), reads(r.heard())
		if r.answers < len(theirs) && r.answers < len(ours) {
			q, mine := theirs[r.answers], ours[r.answers]
			h := f.h
			if h.STag == q.sink {
				h.STag = mine.sink
			}
			h.TO += mine.sinkTO - q.sinkTO
			h.Put(wire[LengthSize:])
		}
		if f.h.Last {
			r.answers++
		}
	}
	sum := uint32(0)
	if r.conn.Agreed().CRC {
		sum = frameCRC(wire)
	}
	binary.LittleEndian.PutUint32(wire[len(wire)-CRCSize:], sum)
	return wire
}

// heard is what the peer has heard of us: whole messages.
func (r *replay) heard() (list []message) {
	var in ddp.Inbound
	payloads := map[bool][]byte{}
	for _, f := range framesOf(r.wire.said, 0) {
		sum := uint32(0)
		if r.conn.Agreed().CRC {
			sum = frameCRC(f.wire)
		}
		if sum != binary.LittleEndian.Uint32(f.wire[len(f.wire)-CRCSize:]) {
			r.errorf("CRC of our frame %x", f.wire)
		}
		payloads[f.h.Tagged] = append(payloads[f.h.Tagged], f.payload...)
		if err := in.Follows(&f.h, len(f.payload)); err != nil {
			r.errorf("our frame %x: %w", f.wire, err)
		}
		if first, _ := in.Placed(&f.h, len(f.payload)); first != nil {
			list = append(list, message{*first, payloads[f.h.Tagged]})
			delete(payloads, f.h.Tagged)
		}
	}
	return list
}

// driver is a stream as its carrier knows it.
type driver struct{ *rdmap.Stream }

func (driver) Begin() {}
func (driver) End()   {}
