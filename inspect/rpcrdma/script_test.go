package rpcrdma_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/inspect/rpcrdma"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/xdr"
)

// Sides of a script.
const (
	client tcp.Way = 0
	server tcp.Way = 1
)

// script makes the events of connections, one record each.
type script struct {
	t      testing.TB
	d      *rpcrdma.Decoder
	record int
	conn   *iwarp.Connection
	port   uint16
	kinds  []rpcrdma.Kind // of the messages
	last   rpcrdma.Message
	seen   *rpcrdma.Connection
}

func newScript(t testing.TB) *script {
	return &script{t: t, d: rpcrdma.New(), port: 40000}
}

// private is what Linux says of itself.
var private = codec.Private{SendSize: 4096, ReceiveSize: 4096, Invalidate: true}.Append(nil)

// connect begins a connection; what a side says is nil if it says nothing.
func (s *script) connect(says ...[]byte) {
	s.port++
	s.conn = &iwarp.Connection{TCP: &tcp.Connection{Ends: [2]netip.AddrPort{
		netip.AddrPortFrom(netip.MustParseAddr("10.0.0.3"), s.port), netip.MustParseAddrPort("10.0.0.2:20049")}, Begun: true}, Initiator: client, Known: true}
	s.seen = nil
	for w, b := range says {
		u := mpa.SetUp{Reply: w == 1, Private: b}
		s.record++
		said := &iwarp.Said{SetUp: u, At: s.ref()}
		if w == 0 {
			s.conn.Request = said
		} else {
			s.conn.Reply = said
		}
		s.event(&iwarp.Event{Kind: iwarp.SetUp, Way: tcp.Way(w), SetUp: u})
	}
}

func (s *script) ref() tcp.Ref {
	return tcp.Ref{Record: s.record, Time: time.Unix(1e9, int64(s.record)*int64(time.Millisecond))}
}

func (s *script) event(e *iwarp.Event) {
	e.Conn, e.First, e.Last = s.conn, s.ref(), s.ref()
	if m := s.d.Event(e); m != nil {
		s.kinds = append(s.kinds, m.Kind)
		s.last = *m
	}
	if e.Kind != iwarp.Gone {
		s.seen = s.d.Of(s.conn)
	}
}

// frames sends a message of RDMAP, in segments of at most 1400 octets.
func (s *script) frames(w tcp.Way, op rdmap.Opcode, h ddp.Header, b []byte, answers *iwarp.Request) {
	for n, at := 1, 0; ; n++ {
		part := b[at:min(len(b), at+1400)]
		e := &iwarp.Event{Kind: iwarp.Frame, Way: w, Opcode: op, Fits: true, Header: h, Length: len(part), Payload: part, Leading: len(part), Segments: n, Started: true}
		if e.Header.TO += uint64(at); !h.Tagged {
			e.Header.TO, e.Header.MO = 0, uint32(at)
		}
		at += len(part)
		e.Message, e.Header.Last = uint64(at), at == len(b)
		if op == rdmap.ReadRequest {
			e.HasOperands, e.Operands.Read = true, answers.Read
		} else if e.Header.Last {
			e.Answers = answers
		}
		s.record++
		if s.event(e); at == len(b) {
			return
		}
	}
}

// cut sends one as a capture with a snap length has it: zeros are in the place of all but the first n octets.
func (s *script) cut(w tcp.Way, n int, h codec.Header, payload []byte) {
	b := append(h.Append(nil), payload...)
	clear(b[n:])
	s.record++
	s.event(&iwarp.Event{Kind: iwarp.Frame, Way: w, Opcode: rdmap.Send, Fits: true, Header: sendLast, Length: len(b), Payload: b, Leading: n, Absent: len(b) - n, Segments: 1, Started: true, Message: uint64(len(b))})
}

// send sends a header and what follows it.
func (s *script) send(w tcp.Way, h codec.Header, payload []byte) {
	s.frames(w, rdmap.Send, ddp.Header{QN: 0}, append(h.Append(nil), payload...), nil)
}

// sendInvalidate does so and withdraws an STag.
func (s *script) sendInvalidate(w tcp.Way, stag uint32, h codec.Header, payload []byte) {
	s.frames(w, rdmap.SendInvalidate, ddp.Header{Invalidate: stag}, append(h.Append(nil), payload...), nil)
}

// write is an RDMA Write.
func (s *script) write(w tcp.Way, g codec.Segment, b []byte) {
	s.frames(w, rdmap.Write, ddp.Header{Tagged: true, STag: g.Handle, TO: g.Offset}, b, nil)
}

// fetch is an RDMA Read with its answer.
func (s *script) fetch(w tcp.Way, g codec.Segment, b []byte) {
	r := &iwarp.Request{Opcode: rdmap.ReadRequest, Whole: true, Read: rdmap.ReadHeader{SinkSTag: 77, SinkTO: 1 << 40, Size: uint32(len(b)), SourceSTag: g.Handle, SourceTO: g.Offset}}
	s.frames(w, rdmap.ReadRequest, ddp.Header{QN: 1}, make([]byte, 28), r)
	s.frames(1-w, rdmap.ReadResponse, ddp.Header{Tagged: true, STag: 77, TO: 1 << 40}, b, r)
}

// gone ends the connection.
func (s *script) gone() { s.event(&iwarp.Event{Kind: iwarp.Gone}) }

// v1 is a header of version 1, as Linux's client and server fill it.
func v1(w tcp.Way, xid uint32) codec.Header {
	return codec.Header{XID: xid, Version: 1, Credit: []uint32{128, 2}[w], Type: codec.TypeMsg}
}

func reply1(w tcp.Way, xid, granted uint32) codec.Header {
	return codec.Header{XID: xid, Version: 1, Credit: granted, Type: codec.TypeMsg}
}

// callOf is an RPC Call.
func callOf(xid, program, version, procedure uint32, args ...func(*xdr.Encoder)) []byte {
	var e xdr.Encoder
	for _, x := range []uint32{xid, 0, 2, program, version, procedure, 0, 0, 0, 0} {
		e.Uint32(x)
	}
	for _, a := range args {
		a(&e)
	}
	return e.Bytes()
}

// replyOf is an RPC Reply that the Call was accepted.
func replyOf(xid uint32, results ...func(*xdr.Encoder)) []byte {
	var e xdr.Encoder
	for _, x := range []uint32{xid, 1, 0, 0, 0, 0} {
		e.Uint32(x)
	}
	for _, r := range results {
		r(&e)
	}
	return e.Bytes()
}

const nfs = 100003

func null(xid uint32) []byte { return callOf(xid, nfs, 3, 0) }

// readArgs, readResults, writeArgs are those of NFS 3, with n octets of data of which so many follow inline.
func readArgs(n int) func(*xdr.Encoder) {
	return func(e *xdr.Encoder) {
		e.Opaque(make([]byte, 20))
		e.Uint64(0)
		e.Uint32(uint32(n))
	}
}

func readResults(n, inline int) func(*xdr.Encoder) {
	return func(e *xdr.Encoder) {
		e.Uint32(0)
		e.Bool(true)
		e.Fixed(make([]byte, 84))
		e.Uint32(uint32(n))
		e.Bool(true)
		e.Uint32(uint32(n))
		e.Fixed(make([]byte, inline))
	}
}

func writeArgs(n, inline int) func(*xdr.Encoder) {
	return func(e *xdr.Encoder) {
		e.Opaque(make([]byte, 20))
		e.Uint64(0)
		e.Uint32(uint32(n))
		e.Uint32(0)
		e.Uint32(uint32(n))
		e.Fixed(make([]byte, inline))
	}
}

// found says what was found, with the record where.
func (s *script) found() (all []string) {
	names := [...]string{"malformed", "overrun", "too long", "several STags", "inline", "unplaced", "returned", "invalidation", "fall-back", "again", "twice", "unanswered", "unasked", "reverse", "restarted", "no credits"}
	if s.seen == nil {
		return []string{"no RPC-over-RDMA"}
	}
	for w, f := range s.seen.Found {
		if f.N > 0 {
			all = append(all, fmt.Sprintf("%s %d at %d/%d of %d: %s", names[w], f.N, f.Record, f.Other, f.Way, f.Text))
		}
	}
	for _, e := range s.seen.Errors {
		all = append(all, fmt.Sprintf("%s %d at %d/%d of %d", e.Code, e.N, e.Record, e.Other, e.Way))
	}
	return all
}

// Headers of DDP of a Send.
var (
	sendHeader = ddp.Header{}
	sendLast   = ddp.Header{Last: true}
)
