package rpcrdma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
)

// part sends a part of a Call.
func (f *foreign) part(xid uint32, b []byte, more bool) *Header {
	h := f.header(xid, TypeMsg)
	if more {
		h.Flags = FlagMore
	}
	f.send(h, b)
	return h
}

// TestParts checks that a Call of any parts, of 0 to 3 octets as well, is joined, with an ERROR, a refresh or a refused CONNPROP between them
// (RPC2-046, RPC2-106). The last part has the lists (RPC2-057).
func TestParts(t *testing.T) {
	f := newForeign(t, 31, Version2, nil)
	f.places = placeAll
	m := f.noise(5, msgCall, 3000, 4000, 10)
	rest := m.head
	for i := 0; len(rest) > 900; i++ {
		n := min(f.rng.IntN(5)*f.rng.IntN(300), len(rest))
		if i < 3 {
			n = i + 9*(1-min(i, 1)) // the first one tells whose it is
		}
		f.part(5, rest[:n], true)
		rest = rest[n:]
		switch i {
		case 1:
			f.send(&Header{Version: Version2, Type: TypeNoMsg}, nil)
		case 2:
			f.send(&Header{XID: 99, Version: Version2, Type: TypeError, Flags: FlagResponse, Report: Report{Code: CodeSystem}}, nil)
		case 3:
			f.send(&Header{XID: 8, Version: Version2, Type: TypeConnProp}, nil)
		}
		f.run()
	}
	h := f.header(5, TypeMsg)
	h.Reads = f.reads(m, 3, 0, none)
	f.send(h, rest)
	f.run()
	if r := f.take(TypeError); r.h.XID != 8 || r.h.Report.Code != CodeInvalHType {
		t.Errorf("%+v comes", r.h)
	}
	f.reply(f.noise(5, msgReply, 24))
	f.take(TypeMsg)
}

// TestBrokenSequences checks that a message that is not the next part is refused with INVAL_CONT, and that all that follows it with its XID is
// dropped, up to the last part (RPC2-008, RPC2-055, RPC2-056, RPC2-057, RPC2-084). A sequence of another XID goes on.
func TestBrokenSequences(t *testing.T) {
	cont := Report{Code: CodeInvalCont}
	t.Run("another Call", func(t *testing.T) {
		f := newForeign(t, 32, Version2, nil)
		m := f.noise(5, msgCall, 3000)
		f.part(5, m.head[:1000], true)
		f.call(6, nil, nil)
		f.refusedWith(6, cont)
		f.part(7, f.noise(7, msgCall, 100).head, true)
		f.refusedWith(7, cont)
		if n := f.end.m.malformed.n; n != 2 {
			t.Errorf("%d messages are counted", n)
		}
		f.part(7, nil, true)
		f.part(5, m.head[1000:2000], true)
		f.part(7, nil, false)
		f.part(5, m.head[2000:], false)
		f.reply(f.noise(5, msgReply, 24))
		f.take(TypeMsg)
		for _, xid := range []uint32{7, 6} { // their XIDs are free
			f.call(xid, nil, nil)
			f.reply(f.noise(xid, msgReply, 24))
			f.take(TypeMsg)
		}
	})
	t.Run("another type", func(t *testing.T) {
		f := newForeign(t, 33, Version2, nil)
		m := f.noise(5, msgCall, 3000)
		f.part(5, m.head[:1000], true)
		h := f.header(5, TypeNoMsg)
		h.Reads = []ReadChunk{{0, f.lend(m.head, false, 1)}}
		f.send(h, nil)
		f.refusedWith(5, cont)
		f.part(5, m.head[1000:2000], true)
		f.part(5, m.head[2000:], false)
		f.run()
		if len(f.work) > 0 || !f.silent() {
			t.Error("the Call is carried out")
		}
		f.noReads()
		f.call(5, nil, nil)
		f.reply(f.noise(5, msgReply, 24))
	})
	t.Run("lists", func(t *testing.T) {
		f := newForeign(t, 34, Version2, nil)
		m := f.noise(5, msgCall, 3000)
		f.part(5, m.head[:1000], true)
		h := f.header(5, TypeMsg)
		h.Flags = FlagMore
		h.HasReply, h.Reply = true, f.lend(make([]byte, 10), true, 1)
		f.send(h, m.head[1000:2000])
		f.refusedWith(5, cont)
		f.part(5, m.head[2000:], false)
		f.run()
		if len(f.work) > 0 || !f.silent() || len(f.end.m.rsp.calls) > 0 {
			t.Error("the Call is carried out")
		}
	})
}

// TestSequencesThatBeginWrong checks that of a sequence whose first part is refused all others are dropped, the last one as well
// (RPC2-057, RPC2-084), and that a message without a header leaves sequences alone, if their XID is 0 as well (RPC2-080).
func TestSequencesThatBeginWrong(t *testing.T) {
	f := newForeign(t, 37, Version2, nil)
	m := f.noise(5, msgCall, 3000)
	h := f.header(5, TypeMsg)
	h.Flags = FlagMore
	h.HasReply, h.Reply = true, f.lend(make([]byte, 10), true, 1)
	f.send(h, m.head[:1000])
	f.refusedWith(5, Report{Code: CodeInvalCont})
	f.send(h, m.head[1000:1100]) // wrong as well, and answered already
	f.part(5, m.head[1100:2000], true)
	f.part(5, m.head[2000:], false)
	f.run()
	if len(f.work) > 0 || !f.silent() {
		t.Errorf("%d Calls are in work, %d messages come", len(f.work), len(f.replies))
	}
	m = f.noise(0, msgCall, 3000)
	f.part(0, m.head[:1000], true)
	f.bytes(wire(0, Version2))
	f.part(0, m.head[1000:], false)
	f.reply(f.noise(0, msgReply, 24))
	f.take(TypeMsg)
}

// broken sends a message that no Decoder takes: a list word is 2.
func (f *foreign) broken(xid uint32, t Type) {
	b := f.header(xid, t).Append(nil)
	binary.BigEndian.PutUint32(b[len(b)-wordSize:], 2)
	f.bytes(append(b, rpcCall(xid, 100)...))
}

// TestRefusedBesideSequences checks that a message that is refused by itself begins no sequence, breaks none of another XID, and is answered also during one
// that is dropped, and after it; and that no other type than MSG is dropped with a sequence (RPC2-084).
func TestRefusedBesideSequences(t *testing.T) {
	bad := Report{Code: CodeBadXDR}
	carriedOut := func(f *foreign, xid uint32) {
		t.Helper()
		f.reply(f.noise(xid, msgReply, 24))
		f.take(TypeMsg)
	}
	f := newForeign(t, 41, Version2, nil)
	for _, kind := range []Type{TypeMsg, TypeNoMsg} {
		f.broken(9, kind)
		f.refusedWith(9, bad)
		f.call(9, nil, nil)
		carriedOut(f, 9)
	}
	m := f.noise(5, msgCall, 3000)
	f.part(5, m.head[:1000], true)
	f.broken(6, TypeMsg)
	f.refusedWith(6, bad)
	f.call(6, nil, nil)
	f.refusedWith(6, Report{Code: CodeInvalCont})
	f.part(5, m.head[1000:], false)
	carriedOut(f, 5)
	f.call(6, nil, nil)
	carriedOut(f, 6)

	// A sequence that is dropped.
	wrong := f.header(5, TypeMsg)
	wrong.Flags, wrong.HasReply, wrong.Reply = FlagMore, true, f.lend(make([]byte, 10), true, 1)
	f.send(wrong, m.head[:1000])
	f.refusedWith(5, Report{Code: CodeInvalCont})
	f.broken(6, TypeMsg)
	f.refusedWith(6, bad)
	f.part(5, m.head[1000:2000], true)
	special := f.header(5, TypeNoMsg)
	special.Reads = []ReadChunk{{0, f.lend(m.head, false, 1)}}
	f.send(special, nil)
	carriedOut(f, 5)
	f.part(5, m.head[2000:], false)
	f.run()
	if len(f.work) > 0 || !f.silent() {
		t.Errorf("%d Calls are in work, %d messages come", len(f.work), len(f.replies))
	}
	f.broken(5, TypeMsg)
	f.refusedWith(5, bad)

	// Another type that no Decoder takes is no part, whatever its XID; one that claims to be a part breaks the sequence.
	f.part(5, m.head[:1000], true)
	f.broken(5, TypeNoMsg)
	f.refusedWith(5, bad)
	f.part(5, m.head[1000:], false)
	carriedOut(f, 5)
	f.part(5, m.head[:1000], true)
	special = f.header(5, TypeNoMsg)
	special.Flags, special.Reads = FlagMore, []ReadChunk{{0, f.lend(m.head, false, 1)}}
	f.send(special, nil)
	f.refusedWith(5, Report{Code: CodeInvalCont})
	f.part(5, m.head[1000:], false)
	f.run()
	if len(f.work) > 0 || !f.silent() || len(f.end.m.rsp.calls) > 0 {
		t.Errorf("%d Calls are in work, %d messages come", len(f.work), len(f.replies))
	}

	// One whose last part is wrong as well: its XID is free then.
	f.send(wrong, m.head[:1000])
	f.refusedWith(5, Report{Code: CodeInvalCont})
	f.broken(5, TypeMsg)
	f.call(5, nil, nil)
	carriedOut(f, 5)
}

// TestSequenceOfACallInWork checks that parts with the XID of a Call that is in work are dropped, all of them, and that the Call is answered (RPC2-002, RPC2-084).
func TestSequenceOfACallInWork(t *testing.T) {
	f := newForeign(t, 42, Version2, nil)
	f.call(5, nil, nil)
	f.run()
	out := len(f.end.pool.out)
	m := f.noise(6, msgCall, 3000)
	f.part(5, m.head[:1000], true)
	f.part(5, m.head[1000:2000], true)
	f.part(5, m.head[2000:], false)
	f.run()
	if n := len(f.end.pool.out); n > out || f.end.m.malformed.n != 1 || !f.silent() {
		t.Errorf("%d buffers are out, and were %d; %d messages are counted", n, out, f.end.m.malformed.n)
	}
	f.reply(f.noise(5, msgReply, 24))
	f.take(TypeMsg)
}

// TestHeadOfALongCall checks what the program is given of a Call that is too long: what has come before, if that begins as a Call of the XID does; and that a
// Call in parts that is as long as it may be is taken (RPC2-104).
func TestHeadOfALongCall(t *testing.T) {
	reply := rpcReply(50, 100)
	for name, x := range map[string]struct {
		first []byte
		want  int // octets of Message
		more  int // octets that follow
	}{
		"a Call": {rpcCall(50, 100), 100, 401}, "as long as it may be": {rpcCall(50, 100), 500, 400}, "another XID": {rpcCall(51, 100), 0, 401}, "a Reply": {reply, 0, 401},
		"cut": {rpcCall(50, 100)[:7], 0, 494}, "just the kind": {rpcCall(50, 100)[:8], 8, 493},
	} {
		c := usual()
		c.Side, c.Highest, c.MaxCall = Server, Version2, 500
		s := begin(t, c)
		s.credit = Credit2(8, 8)
		s.receive(Header{XID: 1, Type: TypeConnProp}, nil)
		s.receive(Header{XID: 50, Type: TypeMsg, Flags: FlagMore}, x.first)
		s.receive(Header{XID: 50, Type: TypeMsg}, pattern(x.more, 1))
		if len(s.incoming) != 1 {
			t.Fatalf("%s: %d Calls are delivered", name, len(s.incoming))
		}
		in := s.incoming[0]
		if long := x.more+len(x.first) > 500; len(in.Message) != x.want || (in.TooLong > 0) != long || x.want > 0 && !bytes.Equal(in.Message[:len(x.first)], x.first) {
			t.Errorf("%s: %d octets, the Call counts as %d octets long", name, len(in.Message), in.TooLong)
		}
	}
}

// TestFirstPartIsTooLong checks that a Call whose first part is longer than a Call may be is handed to the program with its head, before the other parts
// have come, and that these are dropped (RPC2-104).
func TestFirstPartIsTooLong(t *testing.T) {
	c := usual()
	c.Side, c.Highest, c.MaxCall = Server, Version2, 500
	s := begin(t, c)
	s.credit = Credit2(8, 8)
	s.receive(Header{XID: 1, Type: TypeConnProp}, nil)
	out := len(s.pool.out)
	head := rpcCall(50, 600)
	s.receive(Header{XID: 50, Type: TypeMsg, Flags: FlagMore}, head)
	if len(s.incoming) != 1 || s.incoming[0].TooLong != 600 || !bytes.Equal(s.incoming[0].Message, head) {
		t.Fatalf("%d Calls are delivered", len(s.incoming))
	}
	s.receive(Header{XID: 50, Type: TypeMsg, Flags: FlagMore}, pattern(400, 1))
	s.m.Fail(s.now, s.incoming[0], Report{Code: CodeSystem})
	s.run()
	s.receive(Header{XID: 50, Type: TypeMsg}, pattern(400, 1))
	if h, _ := s.message(); h.Type != TypeError || h.Report.Code != CodeSystem || h.XID != 50 || len(s.incoming) != 1 || len(s.pool.out) != out {
		t.Errorf("%+v, %d Calls, %d buffers are out, and were %d", h, len(s.incoming), len(s.pool.out), out)
	}
}

// TestLongSequences checks that a Call that gets longer than the limit is refused at once, its memory given back, and the rest of it dropped
// (RPC2-058, RPC2-104).
func TestLongSequences(t *testing.T) {
	f := newForeign(t, 35, Version2, func(c *Config) { c.MaxCall = 20000 })
	m := f.noise(5, msgCall, 3000)
	for range 6 {
		f.part(5, m.head, true)
		f.run()
	}
	if !f.silent() {
		t.Fatal("a Call within the limit is refused")
	}
	f.part(5, m.head, true)
	f.refusedWith(5, Report{Code: CodeSystem})
	if len(f.end.m.rsp.calls) > 0 || f.end.m.rsp.collecting != nil {
		t.Error("the Call is kept")
	}
	for b, what := range f.end.pool.out {
		if what != "receive" && len(b.B) > 4096 {
			t.Errorf("%d octets are kept", len(b.B))
		}
	}
	f.part(5, m.head, true)
	f.part(5, m.head, false)
	f.run()
	if !f.silent() {
		t.Error("the rest is answered")
	}
	f.call(5, nil, nil)
	f.reply(f.noise(5, msgReply, 24))
}

// TestUnfinishedSequences checks that a Call whose parts stop coming ends the connection: empty parts do not count.
// Attack P7 (SECURITY.md).
func TestUnfinishedSequences(t *testing.T) {
	f := newForeign(t, 36, Version2, nil)
	m := f.noise(5, msgCall, 3000)
	start := f.pair.now
	tick := func(after time.Duration) {
		f.pair.now = start.Add(after)
		f.end.m.Tick(f.pair.now)
		f.end.drive()
	}
	f.part(5, m.head[:100], true)
	f.run()
	tick(9 * time.Second)
	f.part(5, m.head[100:101], true)
	f.run()
	tick(18 * time.Second)
	f.part(5, nil, true)
	f.run()
	if f.closed != nil {
		t.Fatal(f.closed)
	}
	tick(19 * time.Second)
	if !errors.Is(f.closed, ErrProtocol) || !strings.Contains(f.closed.Error(), "parts of a Call") {
		t.Errorf("the connection ends with %v", f.closed)
	}
}

// TestPartsWaitForCredits checks that no peer is left for parts that it may not send: while this side owes it all of its credits, because its send queue is full, the time for the next part
// does not run. It begins with the message that grants credits, for the parts of a Call at a server and those of a Reply at a client (RPC2-016, RPC2-058).
func TestPartsWaitForCredits(t *testing.T) {
	for _, side := range []Side{Server, Client} {
		for parts := 1; parts <= MinWindow; parts++ {
			c := both(side)
			c.Window = MinWindow
			s := begin(t, c)
			s.credit = Credit2(MinWindow, MinWindow)
			s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp}, nil)
			h := Header{XID: 7, Version: 2, Type: TypeMsg, Flags: FlagMore}
			message := rpcCall(7, 1000)
			if side == Client {
				s.call(&Call{Head: rpcCall(7, 40), MaxReply: 20000})
				h.Flags |= FlagResponse
				message = rpcReply(7, 1000)
			}
			for s.m.credits.(*credits2).owed > 0 { // so that none of it is owed before the parts
				s.m.credits.(*credits2).owed--
			}
			s.credit = Credit2(MinWindow, 1)
			s.room = 0
			for range parts {
				s.receive(h, message[:100])
				message = message[100:]
			}
			tick := func(after time.Duration) {
				s.now = s.now.Add(after)
				s.m.Tick(s.now)
				s.run()
			}
			tick(9 * time.Second)
			if s.closed != nil {
				t.Fatalf("side %d, %d parts: %v", side, parts, s.closed)
			}
			tick(20 * time.Second)
			if (s.closed == nil) != (parts == MinWindow) {
				t.Errorf("side %d, %d parts of %d without credits: %v", side, parts, MinWindow, s.closed)
			}
			if s.closed != nil {
				continue
			}
			s.room = 64
			s.run() // grants credits
			tick(9 * time.Second)
			if s.closed != nil {
				t.Errorf("side %d: %v, 9 s after credits were granted", side, s.closed)
			}
			if tick(2 * time.Second); !errors.Is(s.closed, ErrProtocol) {
				t.Errorf("side %d: %v, 11 s after credits were granted", side, s.closed)
			}
		}
	}
}
