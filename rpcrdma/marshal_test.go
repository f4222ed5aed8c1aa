package rpcrdma

import (
	"bytes"
	"errors"
	"testing"

	"github.com/dgrdma/dgrdma/xdr"
)

// pattern returns n octets that are not those of another call.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + seed + i>>8)
	}
	return b
}

// write is a Call with a head of n octets and items, the first one at offset at.
func write(xid uint32, n, at int, items ...[]byte) *Call {
	c := &Call{Head: rpcCall(xid, n), MaxReply: 100}
	for i, data := range items {
		c.Items = append(c.Items, xdr.Item{At: at + i*8, Data: data})
	}
	return c
}

// fetch puts a Call together as a Responder does: from the payload and the Read chunks.
func (s *script) fetch(h Header, payload []byte) []byte {
	s.t.Helper()
	message := payload
	for _, r := range h.Reads {
		var data []byte
		for _, segment := range r.Segments {
			data = append(data, s.memory.at(segment, false)...)
		}
		if r.Position == 0 {
			message = data
			continue
		}
		data = appendPad(data, len(data))
		message = append(bytes.Clone(message[:r.Position]), append(data, message[r.Position:]...)...)
	}
	return message
}

// place writes data into a chunk and returns the chunk as a Reply has it.
func (s *script) place(c Chunk, data []byte) Chunk {
	s.t.Helper()
	back := append(Chunk(nil), c...)
	for i := range back {
		n := min(int(back[i].Length), len(data))
		back[i].Length = uint32(n)
		copy(s.memory.at(back[i], true), data)
		data = data[n:]
	}
	if len(data) > 0 {
		s.t.Fatalf("%d octets are more than the chunk takes", len(data))
	}
	return back
}

// TestFormats checks how Calls of all lengths travel, and that the peer finds the same message in each (RPC2-029, RPC2-031, RPC2-034,
// RPC2-035, RPC2-036, RPC2-044, RPC2-046, RPC2-047, RPC2-052, RPC1-021, RPC1-028, RPC1-032, RPC1-033).
func TestFormats(t *testing.T) {
	type want struct {
		kind    Type
		reads   int
		special bool
		parts   int
	}
	for _, x := range []struct {
		name string
		call *Call
		v1   want
		v2   want
	}{
		{"short", write(7, 40, 0), want{TypeMsg, 0, false, 1}, want{TypeMsg, 0, false, 1}},
		{"short with an item", write(7, 108, 108, pattern(500, 1)), want{TypeMsg, 0, false, 1}, want{TypeMsg, 0, false, 1}},
		{"as long as a Send", write(7, 4096-28, 0), want{TypeMsg, 0, false, 1}, want{TypeMsg, 0, false, 2}},
		{"longer than a Send", write(7, 4096-24, 0), want{TypeNoMsg, 1, true, 1}, want{TypeMsg, 0, false, 2}},
		{"item at the end", write(7, 108, 108, pattern(8193, 1)), want{TypeMsg, 1, false, 1}, want{TypeMsg, 1, false, 1}},
		{"item and tail", write(7, 120, 108, pattern(8191, 1)), want{TypeMsg, 1, false, 1}, want{TypeMsg, 1, false, 1}},
		{"two items", write(7, 140, 108, pattern(5001, 1), pattern(7002, 2)), want{TypeNoMsg, 2, true, 1}, want{TypeMsg, 2, false, 1}},
		{"long and an item", write(7, 9000, 108, pattern(8193, 1)), want{TypeNoMsg, 2, true, 1}, want{TypeMsg, 1, false, 3}},
		{"long and an item of one octet", write(7, 9000, 108, pattern(1, 1)), want{TypeNoMsg, 2, true, 1}, want{TypeMsg, 1, false, 3}},
		{"empty item", write(7, 5000, 108, nil), want{TypeNoMsg, 1, true, 1}, want{TypeMsg, 0, false, 2}},
		{"long", write(7, 60000, 0), want{TypeNoMsg, 1, true, 1}, want{TypeMsg, 0, false, 15}},
	} {
		for version, want := range map[uint32]want{Version1: x.v1, Version2: x.v2} {
			s := open(t, version)
			s.sent = nil
			c := *x.call
			s.credit = Credit2(8, 8)
			s.call(&c)
			for range 20 { // credits for all parts
				if version == Version2 {
					s.receive(Header{Version: 2, Type: TypeNoMsg}, nil)
				}
			}
			var payload []byte
			parts := 0
			var h Header
			for _, b := range s.sent {
				p, err := NewDecoder(DefaultLimits()).Decode(b, &h)
				if err != nil || len(b) > 4096 {
					t.Fatalf("%s: %d octets: %v", x.name, len(b), err)
				}
				if h.IsRefresh() {
					continue
				}
				payload = append(payload, p...)
				if parts++; h.Flags&FlagMore == 0 {
					break
				}
			}
			special := len(h.Reads) > 0 && h.Reads[0].Position == 0
			if h.Type != want.kind || len(h.Reads) != want.reads || special != want.special || parts != want.parts {
				t.Errorf("version %d, %s: %v, %d Read chunks, at 0: %v, %d parts; want %+v", version, x.name, h.Type, len(h.Reads), special, parts, want)
			}
			if got, all := s.fetch(h, payload), xdr.AppendFlat(nil, x.call.Head, x.call.Items); !bytes.Equal(got, all) {
				t.Errorf("version %d, %s: the peer gets another message of %d octets, want %d", version, x.name, len(got), len(all))
			}
			s.receive(s.reply(7), rpcReply(7, 28))
			if s.done(); c.Err != nil {
				t.Errorf("version %d, %s: %v", version, x.name, c.Err)
			}
			s.clean(1)
		}
	}
}

// TestWriteChunks checks that results are placed into the memory of the Call, and that it is withdrawn when the Call returns (RPC2-038,
// RPC2-039, RPC2-040, RPC2-041, RPC2-095, RPC1-029, RPC1-030).
func TestWriteChunks(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, n := range []int{0, 1, 8191, 8192} {
			s := open(t, version)
			into := make([]byte, 8192)
			c := s.call(&Call{Head: rpcCall(7, 100), Into: [][]byte{into}, MaxReply: 128})
			h, _ := s.message()
			if len(h.Writes) != 1 || h.Writes[0].Length() != 8192 || h.HasReply {
				t.Fatalf("sent %+v", h)
			}
			back := s.reply(7)
			back.Writes = []Chunk{s.place(h.Writes[0], pattern(n, 3))}
			s.receive(back, rpcReply(7, 128))
			if s.done(); c.Err != nil || c.Placed != [MaxInto]int{n, -1, -1, -1} || !bytes.Equal(into[:n], pattern(n, 3)) {
				t.Errorf("returned %v, placed %v", c.Err, c.Placed)
			}
			s.clean(1)
		}
	})
}

// TestReplyChunk checks that a Reply chunk is given whenever the longest Reply does not fit into what is received, never with Write
// chunks toward version 1, and not in version 2 as long as the Reply has few parts (RPC2-048, RPC2-050, RPC2-051, RPC1-022, RPC1-027).
func TestReplyChunk(t *testing.T) {
	into := func() [][]byte { return [][]byte{make([]byte, 8192)} }
	for _, x := range []struct {
		name     string
		version  uint32
		into     [][]byte
		max      int
		writes   int
		replyLen int // of the chunk
	}{
		{"fits", Version1, nil, 4096 - 28, 0, 0}, {"does not", Version1, nil, 4096 - 27, 0, 4096 - 27},
		{"fits beside a Write chunk", Version1, into(), 4096 - 28 - 24, 1, 0},
		{"does not", Version1, into(), 4096 - 28 - 23, 0, 4096 - 28 - 23 + 8192},
		{"as many parts as may be", Version2, nil, 8 * 4096, 0, 0}, {"an octet more", Version2, nil, 8*4096 + 1, 0, 8*4096 + 1},
		{"some parts", Version2, nil, 30000, 0, 0}, {"many parts", Version2, nil, 40000, 0, 40000},
		{"many parts beside a Write chunk", Version2, into(), 40000, 1, 40000},
	} {
		s := open(t, x.version)
		c := s.call(&Call{Head: rpcCall(7, 100), Into: x.into, MaxReply: x.max})
		h, _ := s.message()
		if len(h.Writes) != x.writes || h.HasReply != (x.replyLen > 0) || h.Reply.Length() != uint64(x.replyLen) {
			t.Errorf("version %d, %s: %d Write chunks, Reply chunk of %d octets", x.version, x.name, len(h.Writes), h.Reply.Length())
		}
		if !h.HasReply {
			continue
		}
		back := s.reply(7)
		back.Type, back.HasReply = TypeNoMsg, true
		for _, w := range h.Writes {
			back.Writes = append(back.Writes, s.place(w, pattern(9, 1)))
		}
		long := rpcReply(7, x.max)
		back.Reply = s.place(h.Reply, long)
		s.receive(back, nil)
		if s.done(); c.Err != nil || !bytes.Equal(c.Message, long) {
			t.Errorf("version %d, %s: %v, %d octets", x.version, x.name, c.Err, len(c.Message))
		}
		s.clean(1)
	}
}

// TestSmallThreshold checks that a peer that has said nothing at connection set-up gets and sends 1024 octets at most inline
// (RPC1-020, RPC1-023).
func TestSmallThreshold(t *testing.T) {
	c := usual()
	c.Peer = Private{}
	s := begin(t, c)
	s.call(write(7, 108, 108, pattern(900, 1)))
	if h, _ := s.message(); len(h.Reads) != 1 {
		t.Errorf("an item of 900 octets goes inline")
	}
	s.receive(s.reply(7), rpcReply(7, 28))
	s.call(&Call{Head: rpcCall(8, 40), MaxReply: 1000})
	if h, _ := s.message(); !h.HasReply {
		t.Error("no Reply chunk for 1000 octets")
	}
}

// TestRegisterFails checks that a Call of which some memory cannot be registered returns, and that nothing of it is lent then, nor left (RPC2-095).
func TestRegisterFails(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, x := range []struct{ head, before int }{{100, 0}, {100, 1}, {9000, 0}, {9000, 1}} { // with parts, some of which are sent before
			head := x.head
			s := open(t, version)
			s.credit = Credit2(8, 8)
			s.receive(Header{Version: s.version, Type: TypeError, Flags: FlagResponse, Report: Report{Code: CodeChunk}}, nil)
			s.sent = nil
			s.memory.refuse, s.memory.before = errors.New("no more memory"), x.before
			c := s.call(&Call{Head: rpcCall(7, head), Into: [][]byte{make([]byte, 8192), make([]byte, 8192)}, MaxReply: 128})
			if s.done() != c || c.Err == nil || c.Sent != (version == Version2 && head > 4096) {
				t.Fatalf("returned %v, sent %v", c.Err, c.Sent)
			}
			if len(s.memory.lent) != 0 {
				t.Errorf("%d pieces of memory are lent", len(s.memory.lent))
			}
			if c.Sent {
				if h, payload := s.message(); h.XID != 7 || h.Flags&FlagMore != 0 || len(payload) != 0 {
					t.Errorf("the parts end with %+v", h)
				}
				s.receive(s.reply(7), rpcReply(7, 24))
			}
			s.call(&Call{Head: rpcCall(8, 40)})
			s.receive(s.reply(8), rpcReply(8, 28))
			if s.done(); s.closed != nil {
				t.Error(s.closed)
			}
			s.clean(1)
		}
	})
}

// TestManySegments checks that what takes more segments than the peer takes, or than a header has room for, travels otherwise (RPC2-085,
// RPC2-087, RPC2-108).
func TestManySegments(t *testing.T) {
	for _, x := range []struct {
		name          string
		count         uint32
		item, into    int
		max           int
		reads, writes int
		hasReply      bool
	}{
		{"few", 256, 9000, 9000, 100, 1, 1, false},
		{"Write chunk beyond the peer's count", 20, 100, 21000, 100, 0, 0, false},
		{"Read chunk beyond the peer's count", 20, 21000, 5000, 100, 0, 1, false},
		{"both beyond it together", 20, 11000, 11000, 100, 0, 1, false},
		{"header longer than a Send", 256, 100, 255000, 100, 0, 0, false},
		{"Reply chunk beyond it", 20, 100, 100, 40000, 0, 1, false},
		{"an empty Write chunk", 20, 100, 0, 100, 0, 0, false},
	} {
		c := usual()
		c.Highest = Version2
		s := begin(t, c)
		s.credit = Credit2(8, 8)
		p := DefaultProperties()
		p.SegmentSize, p.SegmentCount = 1000, x.count
		s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Properties: p.List()}, nil)
		call := write(7, 108, 108, pattern(x.item, 1))
		call.Into, call.MaxReply = [][]byte{make([]byte, x.into)}, x.max
		s.sent = nil
		s.call(call)
		for range 5 {
			s.receive(Header{Version: 2, Type: TypeNoMsg}, nil)
		}
		var h Header
		var all []byte
		for _, b := range s.sent {
			payload, err := NewDecoder(DefaultLimits()).Decode(b, &h)
			if err != nil || len(b) > 4096 {
				t.Fatalf("%s: %d octets, %v", x.name, len(b), err)
			}
			if all = append(all, payload...); h.Flags&FlagMore == 0 {
				break
			}
		}
		if len(h.Reads) != x.reads || len(h.Writes) != x.writes || h.HasReply != x.hasReply || call.Err != nil {
			t.Errorf("%s: %d Read chunks, %d Write chunks, Reply chunk %v, %v", x.name, len(h.Reads), len(h.Writes), h.HasReply, call.Err)
		}
		if got := s.fetch(h, all); !bytes.Equal(got, xdr.AppendFlat(nil, call.Head, call.Items)) {
			t.Errorf("%s: the peer gets another message", x.name)
		}
		if planned := s.m.callHeaderSize(call.out); planned != h.Size() {
			t.Errorf("%s: the header has %d octets, planned were %d", x.name, h.Size(), planned)
		}
	}
}

// TestMostSegments checks that a header has at most 256 segments, whatever the peer takes and a Send has room for: what takes more comes without a chunk (RPC2-030).
func TestMostSegments(t *testing.T) {
	for _, segments := range []int{1, MaxSegments - 1, MaxSegments, MaxSegments + 1} {
		c := usual()
		c.Highest, c.SendSize, c.ReceiveSize = Version2, 8192, 8192
		s := begin(t, c)
		s.credit = Credit2(8, 8)
		p := DefaultProperties()
		p.SegmentSize, p.SegmentCount, p.SendSize, p.ReceiveSize = 10000, 1000, 8192, 8192
		s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Properties: p.List()}, nil)
		s.call(&Call{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, segments*10000)}, MaxReply: 100})
		h, _ := s.message()
		want := segments
		if segments > MaxSegments {
			want = 0
		}
		if got := h.segments(); got != want {
			t.Errorf("%d segments are given to the peer, want %d", got, want)
		}
	}
}

// TestHandleToInvalidate checks that a Call of version 2 names the handle of its first chunk, which the Reply may withdraw, and none if it lends nothing (RPC2-064).
func TestHandleToInvalidate(t *testing.T) {
	for lent, c := range []*Call{
		{Head: rpcCall(7, 40)},
		{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, 9000)}},
		{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, 9000), make([]byte, 9000)}},
	} {
		s := open(t, Version2)
		s.call(c)
		h, _ := s.message()
		if len(h.Writes) != lent || lent > 0 && h.InvHandle != h.Writes[0][0].Handle || lent == 0 && h.InvHandle != 0 {
			t.Errorf("%d chunks: %+v", lent, h)
		}
	}
}

// TestInlineHoldsNothing checks that a Call that was sent without chunks holds no buffer while its Reply is waited for.
func TestInlineHoldsNothing(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		s := open(t, version)
		s.call(write(7, 108, 108, pattern(500, 1)))
		s.clean(0)
	})
}

// TestPlannedHeaders checks that a header is as long as it was planned, whatever chunks it has: a plan that is wrong has a Send that is too long, or more of them than needed.
func TestPlannedHeaders(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		into := func(n ...int) (list [][]byte) {
			for _, n := range n {
				list = append(list, make([]byte, n))
			}
			return list
		}
		for name, c := range map[string]*Call{
			"no chunk":                 write(7, 40, 0),
			"a Read chunk":             write(7, 108, 108, pattern(9000, 1)),
			"two Read chunks":          write(7, 140, 108, pattern(5001, 1), pattern(7002, 2)),
			"Read chunk at Position 0": write(7, 9000, 108, pattern(8193, 1)),
			"a Write chunk":            {Head: rpcCall(7, 40), Into: into(9000), MaxReply: 100},
			"Write chunks":             {Head: rpcCall(7, 40), Into: into(9000, 1, 8000), MaxReply: 100},
			"a Reply chunk":            {Head: rpcCall(7, 40), MaxReply: 60000},
			"all":                      {Head: rpcCall(7, 108), Items: write(7, 108, 108, pattern(9000, 1)).Items, Into: into(9000), MaxReply: 60000},
		} {
			s := open(t, version)
			s.credit = Credit2(8, 8)
			s.call(c)
			for range 5 {
				if version == Version2 {
					s.receive(Header{Version: 2, Type: TypeNoMsg}, nil)
				}
			}
			var h Header
			for _, b := range s.sent {
				if _, err := NewDecoder(DefaultLimits()).Decode(b, &h); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if h.XID == 7 && h.Flags&FlagMore == 0 {
					break
				}
			}
			if planned := s.m.callHeaderSize(c.out); planned != h.Size() {
				t.Errorf("%s: the header has %d octets, planned were %d: %+v", name, h.Size(), planned, h)
			}
		}
	})
}

// TestCallThatJustFits checks that a Call goes by one Send up to the length of that, with its header, and not beyond it (RPC2-021, RPC1-020).
func TestCallThatJustFits(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		h := Header{XID: 7, Version: version, Type: TypeMsg}
		most := 4096 - h.Size()
		for _, n := range []int{most - 4, most, most + 4} {
			for _, c := range []*Call{{Head: rpcCall(7, n)}, write(7, n-1000, 108, pattern(1000, 1))} {
				s := open(t, version)
				s.sent = nil
				s.call(c)
				h, payload := s.message()
				if inline := len(payload) == n && h.Flags&FlagMore == 0 && len(h.Reads) == 0; inline != (n <= most) {
					t.Errorf("%d octets, %d items, after a header of %d: goes by one Send: %v", n, len(c.Items), h.Size(), inline)
				}
			}
		}
	})
}

// TestLongestItemIsRead checks that the longest item is a Read chunk where not all can be, wherever it is.
func TestLongestItemIsRead(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, lengths := range [][]int{{5000, 9000, 7000}, {9000, 5000, 7000}, {5000, 7000, 9000}} {
			s := open(t, version)
			s.credit = Credit2(8, 8)
			s.m.req.limits.reads = 1
			s.call(write(7, 140, 108, pattern(lengths[0], 1), pattern(lengths[1], 2), pattern(lengths[2], 3)))
			for range 6 {
				if version == Version2 {
					s.receive(Header{Version: 2, Type: TypeNoMsg}, nil)
				}
			}
			var read uint64
			for _, b := range s.sent {
				var h Header
				if _, err := NewDecoder(DefaultLimits()).Decode(b, &h); err != nil {
					t.Fatal(err)
				}
				for _, r := range h.Reads {
					if r.Position > 0 {
						read = r.Length()
					}
				}
			}
			if read != 9000 {
				t.Errorf("items of %v octets: that of %d is a Read chunk", lengths, read)
			}
		}
	})
}

// TestShortResultsAreCopied checks that no memory is lent for results that fit into the Reply with all else: a copy costs less.
func TestShortResultsAreCopied(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, n := range []int{1, 100, 3000, 4096} {
			s := open(t, version)
			s.call(&Call{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, n)}, MaxReply: 100})
			if h, _ := s.message(); len(h.Writes) > 0 != (n == 4096) || h.HasReply {
				t.Errorf("results of %d octets: %+v", n, h)
			}
		}
	})
}

// TestAsManyWriteChunksAsThePeerTakes checks that results have Write chunks if the peer takes as many, and none of them if it takes fewer (RPC2-086).
func TestAsManyWriteChunksAsThePeerTakes(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for limit, want := range map[int]int{0: 0, 1: 0, 2: 2, 3: 2} {
			s := open(t, version)
			s.m.req.limits.writes = limit
			s.call(&Call{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, 9000), make([]byte, 9000)}, MaxReply: 100})
			if h, _ := s.message(); len(h.Writes) != want {
				t.Errorf("a peer that takes %d gets %d Write chunks", limit, len(h.Writes))
			}
		}
	})
}

// TestEmptyPlaceHasNoWriteChunk checks that results have Write chunks unless a place for one of them is empty, be the others as long as they may: a chunk of no octets
// has no segment (RPC2-039).
func TestEmptyPlaceHasNoWriteChunk(t *testing.T) {
	bothVersions(t, func(t *testing.T, version uint32) {
		for _, lengths := range [][]int{{9000}, {9000, 1}, {1, 9000}, {9000, 0}, {0, 9000}, {0}, {}} {
			want := len(lengths)
			call := &Call{Head: rpcCall(7, 40), MaxReply: 100}
			for _, n := range lengths {
				call.Into = append(call.Into, make([]byte, n))
				if n == 0 {
					want = 0
				}
			}
			s := open(t, version)
			s.call(call)
			if h, _ := s.message(); len(h.Writes) != want {
				t.Errorf("places of %v octets: %d Write chunks, want %d", lengths, len(h.Writes), want)
			}
		}
	})
}

// TestHeaderThatJustFits checks that a Call has a Write chunk whose segments make its header as long as a Send, and none if it were longer (RPC2-021).
func TestHeaderThatJustFits(t *testing.T) {
	const segments = 100
	h := Header{XID: 7, Version: Version2, Writes: []Chunk{make(Chunk, segments)}}
	for longer := -1; longer <= 1; longer++ {
		size := h.Size() - longer
		c := usual()
		c.Highest = Version2
		s := begin(t, c)
		s.credit = Credit2(8, 8)
		p := DefaultProperties()
		p.SegmentSize, p.SegmentCount, p.ReceiveSize = 1000, 256, uint32(size)
		s.receive(Header{XID: 1, Version: 2, Type: TypeConnProp, Properties: p.List()}, nil)
		s.sent = nil
		s.call(&Call{Head: rpcCall(7, 40), Into: [][]byte{make([]byte, segments*1000)}, MaxReply: 100})
		writes := 0
		for _, b := range s.sent {
			var h Header
			if _, err := NewDecoder(DefaultLimits()).Decode(b, &h); err != nil || len(b) > size {
				t.Fatalf("%d octets to a peer that takes %d: %v", len(b), size, err)
			}
			writes += len(h.Writes)
		}
		if (writes == 1) != (longer <= 0) {
			t.Errorf("a header of %d octets to a peer that takes %d: %d Write chunks", h.Size(), size, writes)
		}
	}
}
