package rpcrdma

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"
)

// TestXIDs checks that the XID of the header is that of the RPC message, on a Call that is inline and on one in a Read chunk at Position 0:
// version 1 drops what differs (RPC1-002), and version 2 has an error for it (RPC2-066). A message that is no Call, where only Calls are, is one
// too (RPC2-110).
func TestXIDs(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 21, version, nil)
		for i, words := range [][]uint32{{99, msgCall, 2, 2}, {1, msgReply, 2, 2}, {1, 7, 2, 2}, {1}, {}} {
			for _, special := range []bool{false, true} {
				h, payload := f.header(1, TypeMsg), wire(words...)
				if special {
					h.Type = TypeNoMsg
					h.Reads = []ReadChunk{{0, f.lend(payload, false, 1)}}
					payload = nil
				}
				if version == Version1 && !special && i > 0 {
					continue // it is no Call
				}
				f.send(h, payload)
				if version == Version1 && (len(words) < 2 || words[0] != 1) {
					f.run()
					if !f.silent() {
						t.Errorf("%v: something is answered", words)
					}
				} else {
					f.refusedWith(1, Report{Code: CodeBadXDR})
				}
				if len(f.work) > 0 {
					t.Fatalf("%v is carried out", words)
				}
				f.end.m.malformed.n = 0
			}
		}
	})
}

// TestSameXIDTwice checks that a Call whose XID another one in work has is dropped: that one is answered, once (RPC1-053, RPC2-002).
func TestSameXIDTwice(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 22, version, nil)
		f.call(5, nil, nil)
		f.run()
		f.call(5, nil, nil)
		f.run()
		if len(f.work) != 1 || !f.silent() || f.end.m.malformed.n != 1 {
			t.Fatalf("%d Calls are in work", len(f.work))
		}
		f.reply(f.noise(5, msgReply, 24))
		f.take(TypeMsg)
		f.call(5, nil, nil) // the XID is free again
		f.reply(f.noise(5, msgReply, 24))
		f.take(TypeMsg)
	})
}

// TestCreditsIgnored checks that as many Calls as were granted are in work, and that one more ends the connection (RPC1-012, RPC1-014,
// RPC2-014, RPC2-114).
// Attack P6 (SECURITY.md).
func TestCreditsIgnored(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 23, version, nil)
		for xid := range uint32(16) {
			f.call(xid, nil, nil)
			f.run()
		}
		if len(f.work) != 16 || f.closed != nil {
			t.Fatalf("%d Calls are in work, want 16: %v", len(f.work), f.closed)
		}
		// A Call may follow its predecessor's Reply at once, before verbs have said that the Reply is complete.
		in := f.work[0]
		f.end.m.Reply(f.pair.now, in, Answer{Head: f.noise(0, msgReply, 24).head})
		f.end.drive()
		f.call(16, nil, nil)
		f.run()
		if len(f.work) != 17 || f.closed != nil {
			t.Fatalf("%d Calls are in work, want 17: %v", len(f.work), f.closed)
		}
		f.call(17, nil, nil)
		f.run()
		if !errors.Is(f.closed, ErrProtocol) {
			t.Fatalf("the connection ends with %v", f.closed)
		}
	})
}

// TestMalformedCalls checks that a connection survives 16 messages a minute that cannot be used, each with its answer, and no more
// (RPC2-081, RPC1-050).
func TestMalformedCalls(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 24, version, nil)
		bad := func() {
			h := f.header(1, TypeMsg)
			h.Reads = []ReadChunk{{4000, Chunk{{1, 4, 0}}}}
			f.send(h, f.noise(1, msgCall, 40).head)
		}
		for range maxMalformed {
			bad()
			f.refusedWith(1, Report{Code: CodeBadXDR})
		}
		f.call(2, nil, nil)
		f.reply(f.noise(2, msgReply, 24))
		f.take(TypeMsg)
		f.pair.now = f.pair.now.Add(malformedTime)
		bad()
		f.refusedWith(1, Report{Code: CodeBadXDR})
		for range maxMalformed {
			bad()
		}
		f.run()
		if !errors.Is(f.closed, ErrProtocol) {
			t.Errorf("the connection ends with %v", f.closed)
		}
	})
}

// TestWithoutReads checks that Calls with Read chunks are refused where no Read may be outstanding (RPC2-020, RPC2-085). As they are
// beyond a limit of this side alone, which the peer cannot know, they do not count as malformed.
func TestWithoutReads(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 25, version, func(c *Config) { c.ORD = 0 })
		m := f.noise(1, msgCall, 100, 1000)
		h := f.header(1, TypeMsg)
		h.Reads = f.reads(m, 1, 0, none)
		for range maxMalformed + 4 {
			f.send(h, m.head)
			f.refusedWith(1, Report{Code: CodeReadChunks})
		}
	})
}

// TestReverseCallsAreAnswered checks that a client carries reverse Calls out, next to its own, if it takes any; in version 1 without chunks
// (RPC1-060, RPC1-061, RPC1-063, RPC2-075, RPC2-079). Otherwise it drops and counts them (RPC1-064, RPC2-076).
func TestReverseCallsAreAnswered(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, reverse := range []int{0, 3} {
			f := newForeign(t, 26, version, func(c *Config) {
				c.Side, c.Reverse, c.Lowest, c.Highest = Client, reverse, version, version
			})
			f.replies = nil
			f.places = placeAll
			f.call(1, nil, nil)
			f.run()
			if reverse == 0 {
				if len(f.work) != 0 || !f.silent() || f.end.m.malformed.n != 1 {
					t.Errorf("%d Calls are in work", len(f.work))
				}
				continue
			}
			f.reply(f.noise(1, msgReply, 24))
			r := f.take(TypeMsg)
			if version == Version1 && r.h.Credit != 3 || version == Version2 && r.h.Flags != FlagResponse {
				t.Errorf("the Reply is %+v", r.h)
			}
			m := f.noise(2, msgCall, 100, 1000)
			h := f.header(2, TypeMsg)
			h.Reads = f.reads(m, 2, 0, none)
			f.send(h, m.head)
			if version == Version1 {
				f.refusedWith(2, Report{Code: CodeChunk})
				f.noReads()
				continue
			}
			f.reply(f.noise(2, msgReply, 24))
			f.take(TypeMsg)
		}
	})
}

// TestWhatRespondersDrop checks that a Responder answers no ERROR (RPC1-005, RPC2-081), no Reply without a Call (RPC1-064, ONC-009),
// nothing without an RPC message, and no DONE (RPC1-004).
func TestWhatRespondersDrop(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		f := newForeign(t, 27, version, nil)
		f.call(1, nil, nil)
		f.reply(f.noise(1, msgReply, 24))
		f.take(TypeMsg)
		least := f.header(9, TypeMsg)
		reply := f.header(9, TypeMsg)
		failed := f.header(9, TypeError)
		failed.Report.Code = CodeChunk
		if version == Version2 {
			reply.Flags, failed.Flags = FlagResponse, FlagResponse
		}
		f.send(reply, f.noise(9, msgReply, 24).head)
		f.send(failed, nil)
		f.bytes(wire(1, version, 1))
		f.bytes(nil)
		if version == Version1 {
			f.send(least, nil)
			f.bytes(wire(9, version, 4, uint32(TypeDone)))
		}
		f.run()
		if !f.silent() || len(f.work) > 0 || f.closed != nil {
			t.Errorf("%d answers, %d Calls, %v", len(f.replies), len(f.work), f.closed)
		}
	})
}

// TestRepliesGrant checks the word of credits in Replies and ERRORs of version 1: what was asked for, but never more than receives are posted for,
// nor 0 (RPC1-010, RPC1-013, RPC1-014). The receives are there before the first Reply.
func TestRepliesGrant(t *testing.T) {
	f := newForeign(t, 28, Version1, nil)
	for i, asked := range []uint32{0, 1, 7, 16, 17, 1<<32 - 1} {
		h := f.header(uint32(i), TypeMsg)
		h.Credit = asked
		f.send(h, f.noise(uint32(i), msgCall, 40).head)
		f.run()
		if n := len(f.end.receives); n < 16 {
			t.Fatalf("%d receives are posted before the Reply", n)
		}
		want := []uint32{16, 1, 7, 16, 16, 16}[i]
		f.reply(f.noise(uint32(i), msgReply, 24))
		if r := f.take(TypeMsg); r.h.Credit != want {
			t.Errorf("asked for %d: granted %d, want %d", asked, r.h.Credit, want)
		}
		h.Reads = []ReadChunk{{4000, Chunk{{1, 4, 0}}}}
		f.send(h, f.noise(uint32(i), msgCall, 40).head)
		f.run()
		if r := f.take(TypeError); r.h.Credit != want {
			t.Errorf("asked for %d: an ERROR grants %d, want %d", asked, r.h.Credit, want)
		}
	}
}

// TestRoomOfOldCalls checks that what is kept of a Call that is over does not depend on how many segments it had.
func TestRoomOfOldCalls(t *testing.T) {
	f := newForeign(t, 30, Version1, nil)
	var chunk Chunk
	for range 150 {
		chunk = append(chunk, f.lend(make([]byte, 1), true, 1)...)
	}
	f.call(1, []Chunk{chunk}, nil)
	f.reply(f.noise(1, msgReply, 24))
	f.call(2, nil, nil)
	f.run()
	if n := cap(f.work[0].segments); n > keptSegments {
		t.Errorf("room for %d segments is kept", n)
	}
}

// TestLinuxCalls checks that Calls as Linux's client makes them are carried out: a WRITE with one Read chunk at Position 108, a NOMSG of three
// segments, a READ of an odd length with a second segment as room for the pad (LX-22, LX-24), in which nothing is written.
func TestLinuxCalls(t *testing.T) {
	f := newForeign(t, 29, Version1, func(c *Config) { c.Window = 32 })
	f.places = placeAll
	write := f.noise(1, msgCall, 108, 4097)
	write.head = write.head[:write.items[0].At]
	binary.BigEndian.PutUint32(write.head[len(write.head)-4:], 4097)
	h := f.header(1, TypeMsg)
	h.Reads = []ReadChunk{{uint32(len(write.head)), f.lend(write.items[0].Data, false, 1)}}
	f.wants[1] = appendPad(append(append([]byte(nil), write.head...), write.items[0].Data...), 4097)
	f.send(h, write.head)
	f.reply(f.noise(1, msgReply, 160))
	if r := f.take(TypeMsg); !r.invalidated {
		t.Error("the only handle is not withdrawn")
	}

	long := f.noise(2, msgCall, 20176)
	h = f.header(2, TypeNoMsg)
	h.Reads = []ReadChunk{{0, append(append(f.lend(long.head[:160], false, 1), f.lend(long.head[160:20160], false, 1)...), f.lend(long.head[20160:], false, 1)...)}}
	f.send(h, nil)
	f.reply(f.noise(2, msgReply, 160))
	f.take(TypeMsg)

	data, into := f.gather(7001, 1)
	room, padded := f.gather(4, 1)
	f.call(3, []Chunk{append(data, room...)}, nil)
	read := f.noise(3, msgReply, 128, 7001)
	f.reply(read)
	r := f.take(TypeMsg)
	returnsAs(t, r.h.Writes[0], append(data, room...), 7001)
	if r.invalidated || string(into) != string(read.items[0].Data) || padded[0] != rubbish {
		t.Error("the READ is not answered as Linux wants it")
	}
}

// TestLimitsAreNotMalformed checks that a client which has more chunks or segments than this side takes is told so as often as it tries, and keeps its
// connection: it cannot know (RPC2-085 to RPC2-087).
func TestLimitsAreNotMalformed(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := reversed(t, version, ReverseNone, 0)
		for i := range 3 * maxMalformed {
			xid := uint32(100 + i)
			h := Header{XID: xid, Type: TypeMsg}
			for range MaxReadChunks + 1 {
				h.Reads = append(h.Reads, ReadChunk{Position: uint32(4 * (11 + len(h.Reads))), Segments: Chunk{{Handle: 1, Length: 1}}})
			}
			s.receive(h, rpcCall(xid, 400))
			if s.closed != nil {
				t.Fatalf("closed after %d: %v", i, s.closed)
			}
		}
		s.sent = nil
		s.receive(Header{XID: 8, Type: TypeMsg}, rpcCall(8, 40))
		if len(s.incoming) != 2 {
			t.Error("a call afterwards is not taken")
		}
	})
}

// TestPoolIsAskedAgain checks that a machine which finds no buffer asks for it again soon, whatever it is told.
func TestPoolIsAskedAgain(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := reversed(t, version, ReverseNone, 0)
		s.pool.none = 1 << 20
		s.m.Reply(s.now, s.incoming[0], Answer{Head: rpcReply(7, 28)})
		s.run()
		next := s.m.Tick(s.now)
		if len(s.sent) > 0 || next.IsZero() || next.Sub(s.now) > time.Second {
			t.Fatalf("%d messages, the next look is at %v", len(s.sent), next)
		}
		s.pool.none = 0
		s.now = next
		s.m.Tick(s.now)
		if s.run(); len(s.sent) != 1 {
			t.Errorf("%d messages when there is a buffer", len(s.sent))
		}
	})
}

// TestPartsOfCallsTakeTooLong checks that a peer that does not end a Call is left Config.PartTime after its last part with octets: an empty part is
// no progress. What this side holds for it is given back.
func TestPartsOfCallsTakeTooLong(t *testing.T) {
	s := reversed(t, Version2, ReverseGeneral, 2)
	part := func(payload []byte) {
		s.receive(Header{XID: 50, Type: TypeMsg, Flags: FlagMore}, payload)
	}
	part(rpcCall(50, 40))
	s.now = s.now.Add(s.m.cfg.PartTime / 2)
	part(pattern(100, 1))
	last := s.now
	s.now = s.now.Add(s.m.cfg.PartTime / 2)
	part(nil)
	if next := s.m.Tick(s.now); !next.Equal(last.Add(s.m.cfg.PartTime)) {
		t.Errorf("the next moment is %v, want %v", next, last.Add(s.m.cfg.PartTime))
	}
	if s.run(); s.closed != nil {
		t.Fatal(s.closed)
	}
	s.now = last.Add(s.m.cfg.PartTime)
	s.m.Tick(s.now)
	if s.run(); !errors.Is(s.closed, ErrProtocol) {
		t.Errorf("closed by %v", s.closed)
	}
}

// TestReverseCallsAreBounded checks how many Calls of a server a client takes: in version 1 as many as it grants (RPC1-061), and in version 2, where credits
// are of messages, a window of them (RPC2-114).
func TestReverseCallsAreBounded(t *testing.T) {
	for version, most := range map[uint32]uint32{Version1: 2, Version2: 8} {
		c := usual()
		c.Reverse, c.Highest = 2, version
		s := begin(t, c)
		if version == Version2 {
			s.credit = Credit2(8, 8)
			s.receive(Header{XID: 1, Type: TypeConnProp}, nil)
		}
		for i := range most {
			s.receive(Header{XID: 70 + i, Type: TypeMsg}, rpcCall(70+i, 40))
			if s.closed != nil {
				t.Fatalf("version %d: closed after %d Calls: %v", version, i+1, s.closed)
			}
		}
		s.receive(Header{XID: 99, Type: TypeMsg}, rpcCall(99, 40))
		if !errors.Is(s.closed, ErrProtocol) {
			t.Errorf("version %d: %d Calls were taken: %v", version, most+1, s.closed)
		}
	}
}

// TestSegmentsOfAnswers checks that a Call is refused whose segments the header of a Reply has no room for, and that the ERROR says how many there is room for: a Call with
// so many is taken.
func TestSegmentsOfAnswers(t *testing.T) {
	taken, refused := 0, 0
	for n := 40; n < 80; n++ {
		c := usual()
		c.Side, c.Highest = Server, Version2
		s := begin(t, c)
		s.credit = Credit2(8, 8)
		p := DefaultProperties()
		p.ReceiveSize = 1024
		s.receive(Header{XID: 1, Type: TypeConnProp, Properties: p.List()}, nil)
		s.sent = nil
		chunk := make(Chunk, n)
		for i := range chunk {
			chunk[i] = Segment{Handle: uint32(1 + i), Length: 8, Offset: 8}
		}
		s.receive(Header{XID: 50, Type: TypeMsg, Writes: []Chunk{chunk}}, rpcCall(50, 40))
		if len(s.sent) == 0 {
			taken = n
			continue
		}
		refused++
		if h, _ := s.message(); h.Type != TypeError || h.Report.Code != CodeSegments || h.Report.Max != uint32(taken) {
			t.Errorf("%d segments, of which %d are taken: %+v", n, taken, h.Report)
		}
	}
	if taken == 0 || refused == 0 {
		t.Errorf("up to %d segments are taken, and %d Calls were refused", taken, refused)
	}
}

// TestSlowPrograms checks that a peer is not left because this side's program takes its time, nor because its Call waits for nothing of the peer's.
func TestSlowPrograms(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := reversed(t, version, ReverseNone, 0)
		s.now = s.now.Add(10 * s.m.cfg.PartTime)
		s.m.Tick(s.now)
		if s.run(); s.closed != nil {
			t.Fatal(s.closed)
		}
		s.m.Reply(s.now, s.incoming[0], Answer{Head: rpcReply(7, 28)})
		if s.run(); len(s.sent) != 1 {
			t.Errorf("%d messages were sent", len(s.sent))
		}
	})
}

// TestLostBeforeDelivery checks that Calls that have come, and of which the program has not heard when the connection ends, are not carried out, and hold
// nothing.
func TestLostBeforeDelivery(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		c := usual()
		c.Side, c.Highest = Server, version
		s := begin(t, c)
		if s.credit = 8; version == Version2 {
			s.credit = Credit2(8, 8)
			s.receive(Header{XID: 1, Type: TypeConnProp}, nil)
		}
		for _, reads := range [][]ReadChunk{nil, {{48, Chunk{{77, 100, 0}}}}} {
			message := rpcCall(uint32(50+len(reads)), 100)
			binary.BigEndian.PutUint32(message[44:], 100)
			b := s.pool.Get(s.m.cfg.ReceiveSize)
			h := Header{XID: uint32(50 + len(reads)), Version: version, Credit: s.credit, Type: TypeMsg, Reads: reads}
			s.m.Received(s.now, b, copy(b.B, append(h.Append(nil), message...)), false, 0)
		}
		if n := len(s.m.rsp.calls); n != 2 {
			t.Fatalf("%d Calls have come", n)
		}
		s.m.Lost(nil)
		if s.run(); len(s.incoming) != 0 {
			t.Errorf("%d Calls are delivered", len(s.incoming))
		}
		s.clean(0)
	})
}

// TestCallsInPartsThatAreTooLong checks that a Call in parts that gets too long is refused, and that neither what was collected nor the part that is too much is
// kept (RPC2-104).
func TestCallsInPartsThatAreTooLong(t *testing.T) {
	c := usual()
	c.Side, c.Highest, c.MaxCall = Server, Version2, 2000
	s := begin(t, c)
	s.credit = Credit2(8, 8)
	s.receive(Header{XID: 1, Type: TypeConnProp}, nil)
	out := len(s.pool.out)
	for i := range 5 {
		s.receive(Header{XID: 50, Type: TypeMsg, Flags: FlagMore}, pattern(800, i))
	}
	if len(s.incoming) != 1 || s.incoming[0].TooLong != 2400 || len(s.incoming[0].Message) != 0 {
		t.Fatalf("%d Calls are delivered", len(s.incoming))
	}
	s.m.Fail(s.now, s.incoming[0], Report{Code: CodeSystem})
	s.run()
	if h, _ := s.message(); h.Type != TypeError || h.Report.Code != CodeSystem || h.XID != 50 || len(s.pool.out) != out {
		t.Errorf("%+v, %d buffers are out, and were %d", h, len(s.pool.out), out)
	}
}
