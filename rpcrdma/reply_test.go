package rpcrdma

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// offer makes a Call that offers two Write chunks and, in version 2 where both may be there, a Reply chunk.
func (s *script) offer(t *testing.T) (c *Call, back Header) {
	t.Helper()
	max := 100
	if s.version == Version2 {
		max = 40000
	}
	c = s.call(&Call{Head: rpcCall(7, 100), Into: [][]byte{make([]byte, 5000), make([]byte, 6000)}, MaxReply: max})
	h, _ := s.message()
	back = s.reply(7)
	for _, w := range h.Writes {
		back.Writes = append(back.Writes, append(Chunk(nil), w...))
	}
	if h.HasReply {
		back.HasReply, back.Reply = true, append(Chunk(nil), h.Reply...)
		for i := range back.Reply {
			back.Reply[i].Length = 0
		}
	}
	return c, back
}

// segmented is a machine of version 2 whose peer takes segments of 1000 octets at most, so that chunks have several.
func segmented(t testing.TB) *script {
	c := usual()
	c.Highest = Version2
	s := begin(t, c)
	s.credit = Credit2(8, 8)
	p := DefaultProperties()
	p.SegmentSize, p.SegmentCount = 1000, 256
	s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Properties: p.List()}, nil)
	s.credit = Credit2(8, 1)
	return s
}

// TestHostileReplies checks that a Reply whose lists are not those that were offered fails its Call alone, that the program gets nothing
// of it, and that all memory is withdrawn (RPC2-039, RPC2-045, RPC2-102, RPC1-052).
func TestHostileReplies(t *testing.T) {
	for name, change := range map[string]func(h *Header){
		"a Write chunk less":             func(h *Header) { h.Writes = h.Writes[:1] },
		"no Write list":                  func(h *Header) { h.Writes = nil },
		"a Write chunk more":             func(h *Header) { h.Writes = append(h.Writes, h.Writes[0]) },
		"chunks exchanged":               func(h *Header) { h.Writes[0], h.Writes[1] = h.Writes[1], h.Writes[0] },
		"a segment less":                 func(h *Header) { h.Writes[0] = h.Writes[0][1:] },
		"a segment more":                 func(h *Header) { h.Writes[0] = append(h.Writes[0], h.Writes[0][0]) },
		"a segment that is empty":        func(h *Header) { h.Writes[0] = append(h.Writes[0], Segment{}) },
		"an octet longer":                func(h *Header) { h.Writes[0][0].Length++ },
		"as long as can be":              func(h *Header) { h.Writes[0][0].Length = 1<<32 - 1 },
		"another handle":                 func(h *Header) { h.Writes[1][0].Handle++ },
		"another offset":                 func(h *Header) { h.Writes[1][0].Offset++ },
		"a Reply chunk not asked for":    func(h *Header) { h.HasReply, h.Reply = true, Chunk{h.Writes[0][0]} },
		"a Reply chunk without segments": func(h *Header) { h.HasReply, h.Reply = true, nil },
		"payload and a Reply chunk":      func(h *Header) { h.HasReply, h.Reply = true, Chunk{{h.Writes[0][0].Handle, 9, 0}} },
		"payload, and an octet in the Reply chunk": func(h *Header) {
			if !h.HasReply {
				h.HasReply, h.Reply = true, Chunk{{}}
			}
			h.Reply[0].Length = 1
		},
		"only a Reply chunk":              func(h *Header) { h.Type, h.HasReply, h.Reply = TypeNoMsg, true, Chunk{{1, 40, 1}} },
		"only a Reply chunk, not written": func(h *Header) { h.Type, h.HasReply, h.Reply = TypeNoMsg, true, Chunk{{1, 0, 1}} },
	} {
		for kind, open := range map[string]func() *script{
			"version 1": func() *script { return open(t, Version1) }, "version 2": func() *script { return open(t, Version2) },
			"version 2, segments": func() *script { return segmented(t) },
		} {
			s := open()
			c, h := s.offer(t)
			change(&h)
			payload := rpcReply(7, 40)
			if h.Type == TypeNoMsg {
				payload = nil
			}
			s.receive(h, payload)
			if s.done(); !errors.Is(c.Err, ErrReply) || !c.Sent || c.Message != nil || c.Reply != nil || c.Placed != [MaxInto]int{-1, -1, -1, -1} {
				t.Errorf("%s, %s: returned %+v", kind, name, c)
			}
			s.clean(0)
			s.call(&Call{Head: rpcCall(8, 40)})
			if s.receive(s.reply(8), rpcReply(8, 28)); s.done().Err != nil || s.closed != nil {
				t.Errorf("%s, %s: the next Call fails (%v)", kind, name, s.closed)
			}
		}
	}
}

// TestSegmentsFilledInOrder checks that the segments of a chunk that comes back are those that were given, filled in order, and none beyond its end: the last one of a run of memory may be
// shorter than others (RPC2-039, RPC2-102).
func TestSegmentsFilledInOrder(t *testing.T) {
	for _, x := range []struct {
		lengths []uint32
		n       int // what was written; -1: the Reply cannot be used
	}{
		{[]uint32{1000, 1000, 500}, 2500}, {[]uint32{1000, 1000, 499}, 2499}, {[]uint32{1000, 1000, 0}, 2000}, {[]uint32{1000, 0, 0}, 1000}, {[]uint32{7, 0, 0}, 7}, {[]uint32{0, 0, 0}, 0},
		{[]uint32{1000, 1000, 501}, -1}, {[]uint32{1000, 1000, 1000}, -1}, {[]uint32{1001, 1000, 500}, -1}, {[]uint32{1000, 999, 1}, -1}, {[]uint32{0, 1000, 500}, -1}, {[]uint32{1000, 0, 500}, -1},
		{[]uint32{1000, 1000}, -1}, {[]uint32{1000, 1000, 500, 0}, -1},
	} {
		c := usual()
		c.Highest = Version2
		s := begin(t, c)
		s.credit = Credit2(8, 8)
		p := DefaultProperties()
		p.SegmentSize, p.SendSize, p.ReceiveSize = 1000, 1024, 1024
		s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Properties: p.List()}, nil)
		call := s.call(&Call{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, 2500)}, MaxReply: 100})
		h, _ := s.message()
		if len(h.Writes) != 1 || len(h.Writes[0]) != 3 {
			t.Fatalf("sent %+v", h)
		}
		given := append(Chunk(nil), h.Writes[0]...)
		given = append(given, given[2])[:len(x.lengths)]
		for i, n := range x.lengths {
			given[i].Length = n
		}
		back := s.reply(7)
		back.Writes = []Chunk{given}
		s.receive(back, rpcReply(7, 100))
		s.done()
		if used := call.Err == nil; used != (x.n >= 0) || used && call.Placed[0] != x.n || !used && !errors.Is(call.Err, ErrReply) {
			t.Errorf("%v: placed %v, %v", x.lengths, call.Placed, call.Err)
		}
	}
}

// TestBadReplyInChunk checks that what is in a Reply chunk is looked at as well (RPC2-066).
func TestBadReplyInChunk(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for name, message := range map[string][]byte{
			"": rpcReply(7, 40), "another xid": rpcReply(8, 40), "a Call": rpcCall(7, 40), "too short": rpcReply(7, 40)[:7],
		} {
			s := open(t, version)
			c := s.call(&Call{Head: rpcCall(7, 100), MaxReply: 50000})
			h, _ := s.message()
			back := s.reply(7)
			back.Type, back.HasReply, back.Reply = TypeNoMsg, true, s.place(h.Reply, message)
			s.receive(back, nil)
			if s.done(); (c.Err == nil) != (name == "") {
				t.Errorf("%q: %v", name, c.Err)
			}
			s.clean(map[bool]int{true: 1}[name == ""])
		}
	})
}

// TestReplyToNothing checks that Replies and ERRORs without a Call are dropped, and do not end the connection (RPC2-111, RPC1-052,
// RPC1-064).
func TestReplyToNothing(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		c := s.call(&Call{Head: rpcCall(7, 40)})
		for range 100 {
			s.receive(s.reply(99), rpcReply(99, 40))
			e := s.reply(99)
			e.Type, e.Report.Code = TypeError, CodeChunk
			s.receive(e, nil)
		}
		s.receive(s.reply(7), rpcReply(7, 40))
		if s.done() != c || c.Err != nil || s.closed != nil || s.m.req.unmatched != 200 {
			t.Errorf("%v, %v, %d dropped", c.Err, s.closed, s.m.req.unmatched)
		}
		s.receive(s.reply(7), rpcReply(7, 40)) // again
		if len(s.returned) != 0 || s.closed != nil {
			t.Error("a Reply counts twice")
		}
		s.clean(1)
	})
}

// TestMismatch checks that a Reply is dropped whose header is not that of its message (RPC1-002, RPC2-066, RPC2-090, RPC2-110).
func TestMismatch(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		s.call(&Call{Head: rpcCall(7, 40)})
		for _, payload := range [][]byte{rpcReply(8, 40), rpcReply(7, 40)[:7], nil} {
			s.receive(s.reply(7), payload)
		}
		if version == Version2 { // version 1 tells a Call from a Reply by this
			s.receive(s.reply(7), rpcCall(7, 40))
		}
		if len(s.returned) != 0 || s.closed != nil || len(s.sent) > 2 {
			t.Errorf("%d returned, %v", len(s.returned), s.closed)
		}
		if s.receive(s.reply(7), rpcReply(7, 40)); s.done().Err != nil {
			t.Error("the Call has failed")
		}
		s.clean(1)
	})
}

// TestInvalidation checks that a Reply may withdraw memory of its Call, in version 2 that which the Call says, and that the rest is withdrawn
// by this side; a message that withdraws anything else ends the connection (RPC2-062, RPC2-063, RPC2-064, RPC2-107, RPC1-040, RPC1-041).
func TestInvalidation(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, x := range []struct {
			name  string
			lease int // of the Call, or of another one: 9
			how   string
			ends  bool
		}{
			{"the handle that is said", 0, "", false}, {"another one of the Call", 1, "", version == Version2}, {"one of another Call", 9, "", true},
			{"by a Reply to nothing", 0, "nothing", true}, {"by an ERROR", 0, "error", false}, {"by an ERROR, of another Call", 9, "error", true}, {"by a malformed message", 0, "malformed", true},
			{"by a Call", 0, "call", true},
		} {
			s := open(t, version)
			s.call(&Call{Head: rpcCall(5, 40), Into: [][]byte{make([]byte, 9000)}, MaxReply: 100})
			other, _ := s.message()
			if version == Version1 { // one Call until the first Reply
				c := other.Writes[0]
				back := s.reply(5)
				back.Writes = []Chunk{c}
				s.receive(back, rpcReply(5, 28))
				s.returned = nil
				s.call(&Call{Head: rpcCall(6, 40), Into: [][]byte{make([]byte, 9000)}, MaxReply: 100})
				other, _ = s.message()
			}
			c, back := s.offer(t)
			h, _ := s.message()
			if version == Version2 && h.InvHandle != h.Writes[0][0].Handle || version == Version1 && h.InvHandle != 0 {
				t.Fatalf("the Call says %#x", h.InvHandle)
			}
			var stag uint32
			if x.lease == 9 {
				stag = other.Writes[0][0].Handle
			} else {
				stag = h.Writes[x.lease][0].Handle
			}
			message := append(back.Append(nil), rpcReply(7, 40)...)
			switch x.how {
			case "nothing":
				y := s.reply(77)
				y.Credit = 1
				message = append(y.Append(nil), rpcReply(77, 40)...)
			case "error":
				y := s.reply(7)
				y.Type, y.Report.Code, y.Credit = TypeError, CodeChunk, 1
				message = y.Append(nil)
			case "malformed":
				message = message[:30]
			case "call":
				y := Header{XID: 3, Version: version, Credit: 1}
				message = append(y.Append(nil), rpcCall(3, 40)...)
			}
			s.raw(message, stag)
			if (s.closed != nil) != x.ends {
				t.Errorf("%s: the connection has ended: %v", x.name, s.closed)
			}
			if !x.ends {
				if s.done() != c || (c.Err == nil) != (x.how == "") {
					t.Errorf("%s: %v", x.name, c.Err)
				}
				if len(s.memory.lent) != 1 { // of the other Call
					t.Errorf("%s: %d pieces of memory are lent", x.name, len(s.memory.lent))
				}
			}
			s.m.Lost(nil)
			s.run()
			if len(s.memory.lent) != 0 {
				t.Errorf("%s: memory is lent at the end", x.name)
			}
		}
	})
}

// part makes a part of a Reply.
func (s *script) part(xid uint32, payload []byte, more bool) {
	s.t.Helper()
	h := s.reply(xid)
	if more {
		h.Flags |= FlagMore
	}
	s.receive(h, payload)
}

// TestReplyInParts checks that a Reply is put together of parts of all lengths, with other messages in between (RPC2-008, RPC2-011,
// RPC2-018, RPC2-046, RPC2-058, RPC2-106).
func TestReplyInParts(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5, 1000, 4000} {
		s := open(t, Version2)
		into := make([]byte, 9000)
		c := s.call(&Call{Head: rpcCall(7, 40), Into: [][]byte{into}, MaxReply: 30000})
		h, _ := s.message()
		s.call(&Call{Head: rpcCall(8, 40)})
		message := rpcReply(7, 10*size+8)
		chunk := s.place(h.Writes[0], pattern(7777, 1))
		for rest := message; ; rest = rest[size:] {
			if len(rest) <= size {
				h := s.reply(7)
				h.Writes = []Chunk{chunk}
				s.receive(h, rest)
				break
			}
			s.part(7, rest[:size], true)
			s.receive(Header{Version: 2, Type: TypeNoMsg}, nil)
			s.receive(Header{XID: 99, Version: 2, Type: TypeError, Flags: FlagResponse, Report: Report{Code: CodeBadXDR}}, nil)
		}
		if s.done() != c || c.Err != nil || !bytes.Equal(c.Message, message) || c.Placed[0] != 7777 || !bytes.Equal(into[:7777], pattern(7777, 1)) {
			t.Errorf("parts of %d octets: %v, %d octets", size, c.Err, len(c.Message))
		}
		s.receive(s.reply(8), rpcReply(8, 28))
		s.done()
		s.clean(2)
	}
}

// TestBadParts checks what becomes of Replies whose parts do not fit together: the Calls fail and the next goes (RPC2-055, RPC2-056,
// RPC2-057, RPC2-090, RPC2-104).
func TestBadParts(t *testing.T) {
	for name, x := range map[string]struct {
		send   func(s *script)
		failed []uint32
	}{
		"another xid in between": {func(s *script) {
			s.part(7, rpcReply(7, 100), true)
			s.receive(s.reply(8), rpcReply(8, 28))
			s.part(7, nil, false)
		}, []uint32{8}},
		"a Reply chunk in between": {func(s *script) {
			s.part(7, rpcReply(7, 100), true)
			h := s.reply(7)
			h.Type, h.HasReply, h.Reply = TypeNoMsg, true, Chunk{{1, 1, 1}}
			s.receive(h, nil)
			s.part(7, nil, false)
			s.receive(s.reply(8), rpcReply(8, 28))
		}, []uint32{7}},
		"longer than a Reply may be": {func(s *script) {
			for range 10 {
				s.part(7, rpcReply(7, 4000), true)
			}
			s.part(7, nil, false)
			s.receive(s.reply(8), rpcReply(8, 28))
		}, []uint32{7}},
		"only empty ones": {func(s *script) {
			s.part(7, nil, true)
			s.part(7, nil, false)
			s.receive(s.reply(8), rpcReply(8, 28))
		}, []uint32{7}},
		"of another message": {func(s *script) {
			s.part(7, rpcReply(9, 100), true)
			s.part(7, nil, false)
			s.receive(s.reply(8), rpcReply(8, 28))
		}, []uint32{7}},
		"of nothing": {func(s *script) {
			s.part(99, rpcReply(99, 100), true)
			s.part(99, nil, false)
			s.receive(s.reply(7), rpcReply(7, 28))
			s.receive(s.reply(8), rpcReply(8, 28))
		}, nil},
	} {
		c := usual()
		c.Highest, c.MaxReply = Version2, 30000
		s := begin(t, c)
		s.credit = Credit2(8, 8)
		s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp}, nil)
		for _, xid := range []uint32{7, 8} {
			s.call(&Call{Head: rpcCall(xid, 40), MaxReply: 20000})
		}
		x.send(s)
		if len(s.returned) != 2 || s.closed != nil {
			t.Errorf("%s: %d Calls returned, %v", name, len(s.returned), s.closed)
		}
		replies := 0
		for _, c := range s.returned {
			xid := word(c.Head, 0)
			failed := fmt.Sprint(x.failed) == fmt.Sprint([]uint32{xid})
			if failed != (c.Err != nil) {
				t.Errorf("%s: %d: %v", name, xid, c.Err)
			}
			if c.Reply != nil {
				replies++
			}
		}
		s.clean(replies)
		if s.m.req.sequence.on {
			t.Errorf("%s: the parts have no end", name)
		}
	}
}

// TestPartsTakeTooLong checks that a peer that does not end a Reply is left after Config.PartTime.
func TestPartsTakeTooLong(t *testing.T) {
	for _, xid := range []uint32{7, 99} { // of a Call, and of nothing
		s := open(t, Version2)
		c := s.call(&Call{Head: rpcCall(7, 40), MaxReply: 20000})
		s.part(xid, rpcReply(xid, 100), true)
		next := s.m.Tick(s.now)
		if want := s.now.Add(s.m.cfg.PartTime); !next.Equal(want) {
			t.Errorf("the next time is %v, want %v", next, want)
		}
		s.m.Tick(next.Add(-1))
		if s.run(); s.closed != nil {
			t.Errorf("the connection ends early: %v", s.closed)
		}
		s.m.Tick(next)
		if s.run(); !errors.Is(s.closed, ErrProtocol) {
			t.Errorf("the connection ends with %v", s.closed)
		}
		s.m.Lost(s.closed)
		s.run()
		if s.done() != c || !errors.Is(c.Err, ErrLost) || !errors.Is(c.Err, ErrProtocol) {
			t.Error(c.Err)
		}
		s.clean(0)
	}
}

// TestPartsMakeProgress checks that a Reply may take as long as its parts go on, and that empty ones do not count (RPC2-058).
func TestPartsMakeProgress(t *testing.T) {
	for _, n := range []int{0, 1} {
		s := open(t, Version2)
		s.call(&Call{Head: rpcCall(7, 40), MaxReply: 20000})
		for range 10 {
			s.part(7, make([]byte, n), true)
			s.now = s.now.Add(s.m.cfg.PartTime / 2)
			s.m.Tick(s.now)
			if s.run(); s.closed != nil {
				break
			}
		}
		if (s.closed == nil) != (n > 0) {
			t.Errorf("parts of %d octets: %v", n, s.closed)
		}
	}
}

// TestPartsAfterError checks that parts that still come of a Call that was returned are not taken for those of the next one.
func TestPartsAfterError(t *testing.T) {
	s := open(t, Version2)
	s.call(&Call{Head: rpcCall(7, 40), MaxReply: 20000})
	s.part(7, rpcReply(7, 100), true)
	s.receive(Header{XID: 7, Version: 2, Type: TypeError, Flags: FlagResponse, Report: Report{Code: CodeSystem}}, nil)
	s.done()
	c := s.call(&Call{Head: rpcCall(8, 40), MaxReply: 20000})
	s.part(7, pattern(100, 1), false)
	if len(s.returned) != 0 {
		t.Fatal("the next Call has returned")
	}
	s.receive(s.reply(8), rpcReply(8, 28))
	if s.done(); c.Err != nil {
		t.Error(c.Err)
	}
	s.clean(1)
}

// TestInvalidationBeforeTheEnd checks that only the last part of a Reply may withdraw memory (RPC2-107).
func TestInvalidationBeforeTheEnd(t *testing.T) {
	s := open(t, Version2)
	s.offer(t)
	h := s.reply(7)
	h.Flags |= FlagMore
	call, _ := s.message()
	s.receive(h, rpcReply(7, 100), call.InvHandle)
	if !errors.Is(s.closed, ErrProtocol) {
		t.Errorf("the connection has ended with %v", s.closed)
	}
}

// TestSpoiledReplyKeepsLeases checks that a Call whose parts cannot be kept fails with the last one, which may withdraw memory (RPC2-104,
// RPC2-107).
func TestSpoiledReplyKeepsLeases(t *testing.T) {
	s := open(t, Version2)
	c, back := s.offer(t)
	call, _ := s.message()
	s.part(7, rpcReply(7, 100), true)
	most := s.m.cfg.MaxReply
	s.m.req.sequence.of.collected = most // no more
	s.part(7, pattern(100, 1), true)
	if len(s.returned) != 0 || len(s.memory.lent) == 0 {
		t.Fatal("the Call has returned before the last part")
	}
	s.receive(back, nil, call.InvHandle)
	var long *LongReplyError
	if s.done() != c || !errors.As(c.Err, &long) || *long != (LongReplyError{most + 100, most}) || !errors.Is(c.Err, ErrLongReply) || s.closed != nil {
		t.Errorf("returned %v, %v", c.Err, s.closed)
	}
	s.clean(0)
}

// TestReplyAsLongAsMaxReply checks that a Reply in parts is taken that is as long as it may be, and that one octet more is too long (RPC2-104).
func TestReplyAsLongAsMaxReply(t *testing.T) {
	for more := range 2 {
		c := usual()
		c.Highest, c.MaxReply = Version2, 5000
		s := begin(t, c)
		s.credit = Credit2(8, 8)
		s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp}, nil)
		call := s.call(&Call{Head: rpcCall(7, 40), MaxReply: 5000})
		s.part(7, rpcReply(7, 3000), true)
		s.part(7, pattern(2000+more, 1), false)
		if s.done(); errors.Is(call.Err, ErrLongReply) != (more > 0) || more == 0 && (call.Err != nil || len(call.Message) != 5000) {
			t.Errorf("a Reply of %d octets: %v, %d octets", 5000+more, call.Err, len(call.Message))
		}
		s.clean(1 - more)
	}
}

// TestWithdrawnBeforeItIsRead checks that a peer that changes a Reply chunk until it is withdrawn does not change what was checked
// (RPC2-095).
func TestWithdrawnBeforeItIsRead(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		c := s.call(&Call{Head: rpcCall(7, 100), MaxReply: 50000})
		h, _ := s.message()
		back := s.reply(7)
		back.Type, back.HasReply, back.Reply = TypeNoMsg, true, s.place(h.Reply, rpcReply(7, 40))
		s.memory.last = func(r *fakeRegion) { copy(r.b, rpcReply(8, 40)) }
		s.receive(back, nil)
		if s.done(); !errors.Is(c.Err, ErrReply) {
			t.Errorf("returned %v with xid %d", c.Err, word(c.Message, 0))
		}
	})
}

// TestUnusedReplyChunk checks which Replies may use a Reply chunk (RPC1-027, RPC1-030).
func TestUnusedReplyChunk(t *testing.T) {
	for name, x := range map[string]struct {
		kind   Type
		has    bool
		length uint32
		ok     bool
	}{
		"absent": {TypeMsg, false, 0, true}, "empty": {TypeMsg, true, 0, true}, "with payload": {TypeMsg, true, 40, false}, "used": {TypeNoMsg, true, 40, true},
		"neither": {TypeNoMsg, true, 0, false},
	} {
		bothVersions(t, func(t *testing.T, version uint32) {
			s := open(t, version)
			c := s.call(&Call{Head: rpcCall(7, 100), MaxReply: 50000})
			h, _ := s.message()
			back := s.reply(7)
			s.place(h.Reply, rpcReply(7, 40))
			if back.Type, back.HasReply = x.kind, x.has; x.has {
				back.Reply = Chunk{{h.Reply[0].Handle, x.length, h.Reply[0].Offset}}
			}
			var payload []byte
			if x.kind == TypeMsg {
				payload = rpcReply(7, 28)
			}
			s.receive(back, payload)
			if s.done(); (c.Err == nil) != x.ok {
				t.Errorf("%s: %v", name, c.Err)
			}
		})
	}
}

// TestWrongPartsCount checks that parts of a Reply of another XID or type count as messages that cannot be used, and a Reply in parts to no Call as one without a Call, once (RPC2-056).
func TestWrongPartsCount(t *testing.T) {
	part := func(xid uint32, kind Type, flags Flags) Header {
		return Header{XID: xid, Version: 2, Type: kind, Flags: FlagResponse | flags}
	}
	for name, x := range map[string]struct {
		parts                []Header
		malformed, unmatched int
		returned             int // Calls: parts that are to come may still withdraw memory of one that has failed
	}{
		"right":                        {[]Header{part(7, TypeMsg, FlagMore), part(7, TypeMsg, FlagMore), part(7, TypeMsg, 0)}, 0, 0, 1},
		"another XID":                  {[]Header{part(7, TypeMsg, FlagMore), part(8, TypeMsg, FlagMore)}, 1, 0, 0},
		"another type":                 {[]Header{part(7, TypeMsg, FlagMore), {XID: 7, Version: 2, Type: TypeNoMsg, Flags: FlagResponse, HasReply: true}}, 1, 0, 0},
		"another type, without a Call": {[]Header{part(9, TypeMsg, FlagMore), {XID: 9, Version: 2, Type: TypeNoMsg, Flags: FlagResponse, HasReply: true}, part(9, TypeMsg, 0)}, 1, 1, 0},
		"without a Call":               {[]Header{part(9, TypeMsg, FlagMore), part(9, TypeMsg, FlagMore), part(9, TypeMsg, 0)}, 0, 1, 0},
	} {
		s := open(t, Version2)
		s.credit = Credit2(8, 8)
		s.call(&Call{Head: rpcCall(7, 40), MaxReply: 30000})
		for _, h := range x.parts {
			payload := rpcReply(h.XID, 400)
			if h.Type == TypeNoMsg {
				payload = nil
			}
			s.receive(h, payload)
		}
		if s.m.malformed.n != x.malformed || s.m.Unmatched() != uint64(x.unmatched) || len(s.returned) != x.returned || s.closed != nil {
			t.Errorf("%s: %d cannot be used, %d are of no Call, %d Calls have returned, %v", name, s.m.malformed.n, s.m.Unmatched(), len(s.returned), s.closed)
		}
	}
}

// TestEmptyParts checks that a Reply of empty parts alone, however many, fails its Call, and holds nothing.
func TestEmptyParts(t *testing.T) {
	for n := range 3 {
		s := open(t, Version2)
		c := s.call(&Call{Head: rpcCall(7, 40), MaxReply: 30000})
		for range n + 1 {
			s.part(7, nil, true)
		}
		s.part(7, nil, false)
		if s.done() != c || !errors.Is(c.Err, ErrReply) || s.closed != nil {
			t.Errorf("%d empty parts: %v, %v", n+2, c.Err, s.closed)
		}
		s.clean(0)
	}
}

// TestCancelledCallKeepsNoParts checks that parts of the Reply to a Call that was cancelled take no memory, whether they come before it is or after.
func TestCancelledCallKeepsNoParts(t *testing.T) {
	for before := range 3 {
		s := open(t, Version2)
		c := s.call(&Call{Head: rpcCall(7, 40), MaxReply: 30000})
		message := rpcReply(7, 4000)
		for range before {
			s.part(7, message[:1000], true)
			message = message[1000:]
		}
		s.m.Cancel(s.now, c)
		if s.run(); s.done() != c || !errors.Is(c.Err, ErrCancelled) {
			t.Fatalf("%d parts before: %v", before, c.Err)
		}
		for ; len(message) > 1000; message = message[1000:] {
			s.part(7, message[:1000], true)
			s.clean(0)
		}
		s.part(7, message, false)
		s.clean(0)
		next := s.call(&Call{Head: rpcCall(8, 40)})
		if s.receive(s.reply(8), rpcReply(8, 28)); s.done() != next || next.Err != nil || s.closed != nil {
			t.Errorf("%d parts before: the next Call: %v, %v", before, next.Err, s.closed)
		}
	}
}

// TestLends checks which memory of a Call the peer may withdraw: that which is lent, in version 2 the first (RPC2-064, RPC2-107).
func TestLends(t *testing.T) {
	o := &call{leases: []Lease{
		{Segment: Segment{Handle: 5}, Live: true},
		{Segment: Segment{Handle: 6}, Live: true},
		{Segment: Segment{Handle: 7}},
	}}
	gone := &call{leases: []Lease{{Segment: Segment{Handle: 5}}}}
	for _, x := range []struct {
		of     *call
		stag   uint32
		v1, v2 bool
	}{{o, 5, true, true}, {o, 6, true, false}, {o, 7, false, false}, {o, 8, false, false}, {gone, 5, false, false}, {new(call), 0, false, false}} {
		if v1, v2 := x.of.lends(x.stag, Version1), x.of.lends(x.stag, Version2); v1 != x.v1 || v2 != x.v2 {
			t.Errorf("handle %d of %+v: version 1 %v, version 2 %v", x.stag, x.of.leases, v1, v2)
		}
	}
}

// TestReplyWithReadList checks that a Reply with a Read list fails its Call in version 1, which is not told by a flag that the message is a Reply, and is dropped as
// malformed in version 2. The Call is not answered by what else the Reply says (RPC2-035, RPC2-090).
func TestReplyWithReadList(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		c := s.call(&Call{Head: rpcCall(7, 40)})
		h := s.reply(7)
		h.Reads = []ReadChunk{{Position: 4, Segments: Chunk{{Handle: 1, Length: 4}}}}
		s.receive(h, rpcReply(7, 40))
		if version == Version2 {
			if len(s.returned) != 0 || s.m.malformed.n != 1 {
				t.Errorf("%d Calls have returned, %d messages are malformed", len(s.returned), s.m.malformed.n)
			}
			s.receive(s.reply(7), rpcReply(7, 40))
			if s.done() != c || c.Err != nil {
				t.Error(c.Err)
			}
			return
		}
		if s.done() != c || !errors.Is(c.Err, ErrReply) || c.Message != nil || s.closed != nil {
			t.Errorf("returned %v, %v", c.Err, s.closed)
		}
		s.clean(0)
	})
}

// TestShortestReply checks that a Reply by one Send, in parts or in a Reply chunk is one if it has XID and msg_type, and is dropped or fails its Call if it has an octet less (RPC1-002,
// RPC2-066).
func TestShortestReply(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for n := leastRPC - 1; n <= leastRPC+1; n++ {
			message := rpcReply(7, leastRPC+1)[:n]
			for _, how := range []string{"by one Send", "in parts", "in a Reply chunk"} {
				s := open(t, version)
				call := &Call{Head: rpcCall(7, 40), MaxReply: 100}
				if how == "in a Reply chunk" {
					call.MaxReply = 50000
				}
				s.call(call)
				fails := n < leastRPC
				switch h, _ := s.message(); {
				case how == "in a Reply chunk":
					back := s.reply(7)
					back.Type, back.HasReply, back.Reply = TypeNoMsg, true, s.place(h.Reply, message)
					s.receive(back, nil)
				case how == "by one Send":
					if s.receive(s.reply(7), message); fails {
						if len(s.returned) != 0 || s.m.malformed.n != 1 {
							t.Errorf("%s of %d octets: %d Calls have returned, %d messages are malformed", how, n, len(s.returned), s.m.malformed.n)
						}
						continue
					}
				case version == Version1:
					continue // has no parts
				default:
					s.part(7, message[:3], true)
					s.part(7, message[3:], false)
				}
				if s.done() != call || errors.Is(call.Err, ErrReply) != fails || !fails && !bytes.Equal(call.Message, message) {
					t.Errorf("%s of %d octets: %v", how, n, call.Err)
				}
			}
		}
	})
}

// TestSpoiledReplyIsNotLong checks that a Reply in parts that cannot be used for another reason is told to be too long only if it is (RPC2-056, RPC2-104).
func TestSpoiledReplyIsNotLong(t *testing.T) {
	for more := -1; more <= 1; more++ {
		c := usual()
		c.Highest, c.MaxReply = Version2, 5000
		s := begin(t, c)
		s.credit = Credit2(8, 8)
		s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp}, nil)
		call := s.call(&Call{Head: rpcCall(7, 40), MaxReply: 5000})
		s.part(7, rpcReply(7, 3000), true)
		wrong := s.reply(7)
		wrong.Type, wrong.HasReply = TypeNoMsg, true
		s.receive(wrong, nil)
		s.part(7, pattern(2000+more, 1), false)
		if s.done() != call || errors.Is(call.Err, ErrLongReply) != (more > 0) || errors.Is(call.Err, ErrReply) != (more <= 0) {
			t.Errorf("%d octets, of at most 5000: %v", 5000+more, call.Err)
		}
		s.clean(0)
	}
}

// TestReplyErrorsSayWhy checks that the error of a Reply that cannot be used says what is wrong with it.
func TestReplyErrorsSayWhy(t *testing.T) {
	for says, change := range map[string]func(h *Header){
		": it returns 1 Write chunks of 2":                       func(h *Header) { h.Writes = h.Writes[:1] },
		": it returns a Reply chunk, and none was given":         func(h *Header) { h.HasReply, h.Reply = true, Chunk{h.Writes[0][0]} },
		": Write chunk 1: it has 2 segments of 1":                func(h *Header) { h.Writes[0] = append(h.Writes[0], h.Writes[0][0]) },
		": Write chunk 1: segment 1 returns 5001 octets of 5000": func(h *Header) { h.Writes[0][0].Length++ },
		": Write chunk 2: segment 1 returns memory at handle ":   func(h *Header) { h.Writes[1][0].Handle++ },
	} {
		c := usual()
		s := begin(t, c)
		call, back := s.offer(t)
		change(&back)
		s.receive(back, rpcReply(7, 100))
		if s.done(); !errors.Is(call.Err, ErrReply) || !strings.Contains(call.Err.Error(), says) {
			t.Errorf("%v, want %s", call.Err, says)
		}
	}
}
