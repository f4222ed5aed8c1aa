package rpcrdma

import (
	"bytes"
	"slices"
	"testing"
)

// bad is what a Responder of a version answers to what is not as the XDR says.
func bad(version uint32) string {
	if version == Version1 {
		return "ERR_CHUNK"
	}
	return "BAD_XDR"
}

// TestLists checks that the lists of a Call are read as they are: chunks by their Positions, empty ones, any split (RPC2-030, 031, 035, 040, 052).
func TestLists(t *testing.T) {
	for _, version := range []uint32{Version1, Version2} {
		body := []uint32{
			1, 0, 1, 100, 0, 1, 1, 0, 2, 3, 0, 2, // Position 0 in two segments
			1, 8, 3, 5, 1, 0, // an item of 5 octets
			1, 16, 4, 0, 0, 4, // right after its roundup, empty
			0,
			1, 2, 5, 10, 0, 5, 6, 0, 0, 6, // a Write chunk of two
			1, 0, // an empty one
			0,
			1, 1, 7, 50, 0, 7,
		}
		h, payload := taken(t, NewDecoder(DefaultLimits()), wire(join(prefix(version, TypeNoMsg, 0), handle(version, 6), body)...))
		if len(payload) != 0 || len(h.Reads) != 3 || len(h.Writes) != 2 || !h.HasReply {
			t.Fatalf("version %d: %+v", version, h)
		}
		if !slices.Equal(h.Reads[0].Segments, Chunk{{1, 100, 1}, {2, 3, 2}}) || h.Reads[0].Length() != 103 ||
			h.Reads[1].Position != 8 || !slices.Equal(h.Reads[1].Segments, Chunk{{3, 5, 1 << 32}}) || h.Reads[2].Position != 16 {
			t.Errorf("version %d: %+v", version, h.Reads)
		}
		if !slices.Equal(h.Writes[0], Chunk{{5, 10, 5}, {6, 0, 6}}) || len(h.Writes[1]) != 0 || !slices.Equal(h.Reply, Chunk{{7, 50, 7}}) {
			t.Errorf("version %d: %+v, %+v", version, h.Writes, h.Reply)
		}
		// What one chunk has is not another's to append to.
		if h.Writes[0] = append(h.Writes[0], Segment{9, 9, 9}); h.Reply[0].Handle != 7 {
			t.Errorf("version %d: appending to a chunk changes another one", version)
		}
	}
}

// TestPayload checks that the payload is what follows the header, of any length, also 0 to 3 octets (RPC2-007, 046), and that
// types without payload have none (RPC2-065).
func TestPayload(t *testing.T) {
	for _, version := range []uint32{Version1, Version2} {
		lists := join(handle(version, 0), make([]uint32, 3))
		for n := range 10 {
			b := append(wire(join(prefix(version, TypeMsg, 0), lists)...), bytes.Repeat([]byte{0xff}, n)...)
			if _, payload := taken(t, NewDecoder(DefaultLimits()), b); len(payload) != n || n > 0 && &payload[0] != &b[len(b)-n] {
				t.Errorf("version %d: a payload of %d octets is %x", version, n, payload)
			}
			if n == 0 {
				continue
			}
			call := []uint32{1, 0, 5, 100, 0, 0, 0, 0, 0}
			b = append(wire(join(prefix(version, TypeNoMsg, 0), handle(version, 0), call)...), make([]byte, n)...)
			if f := refused(t, NewDecoder(DefaultLimits()), b); code(f) != bad(version) {
				t.Errorf("version %d: %d octets after a NOMSG: %v", version, n, f)
			}
		}
	}
}

// TestCutLists checks that a header that is cut at any octet is refused, and answered from where it can be (RPC1-006, RPC2-080, 090).
// Attack P1 (SECURITY.md).
func TestCutLists(t *testing.T) {
	for _, version := range []uint32{Version1, Version2} {
		for _, typ := range []Type{TypeMsg, TypeNoMsg} {
			first := uint32(8)
			if typ == TypeNoMsg {
				first = 0
			}
			body := []uint32{1, first, 1, 100, 0, 1, 1, first, 2, 3, 0, 2, 0, 1, 2, 5, 10, 0, 5, 6, 0, 0, 6, 1, 0, 0, 1, 1, 7, 50, 0, 7}
			b := wire(join(prefix(version, typ, 0), handle(version, 6), body)...)
			taken(t, settled(version), b)
			for n := range b {
				f := refused(t, settled(version), b[:n])
				if want := n >= shapes[version].prefix; f.Dropped() == want || want && code(f) != bad(version) {
					t.Errorf("version %d, %v cut at %d: %v", version, typ, n, f)
				}
				if f.EitherSide() {
					t.Errorf("version %d, %v cut at %d: a Requester answers", version, typ, n)
				}
			}
		}
	}
}

// TestListWords checks that a word that says whether something follows is 0 or 1, and nothing else (RPC1-006, RPC2-090).
func TestListWords(t *testing.T) {
	for _, version := range []uint32{Version1, Version2} {
		body := []uint32{1, 8, 1, 100, 0, 1, 1, 8, 2, 3, 0, 2, 0, 1, 1, 5, 10, 0, 5, 0, 1, 1, 7, 50, 0, 7}
		for _, at := range []int{0, 6, 12, 13, 19, 20} {
			for _, value := range []uint32{2, 3, 255, 256, 1 << 8, 1 << 16, 1 << 24, 0x01000000, 1 << 31, 1<<31 + 1, 1<<32 - 2, 1<<32 - 1} {
				words := slices.Clone(body)
				words[at] = value
				b := append(wire(join(prefix(version, TypeMsg, 0), handle(version, 0), words)...), make([]byte, 4096)...)
				f := refused(t, NewDecoder(DefaultLimits()), b)
				if want := shapes[version].prefix + wordSize*(at+len(handle(version, 0))); code(f) != bad(version) || f.At != want {
					t.Errorf("version %d: word %d is %#x: %v", version, at, value, f)
				}
			}
		}
	}
}

// TestCounts checks that a count above what the message has room for is refused, also one whose length wraps 32 bits
// (RPC1-006), and that no count costs memory or a look at what is not there.
func TestCounts(t *testing.T) {
	for _, version := range []uint32{Version1, Version2} {
		for _, room := range []int{0, 1, 15, 16, 4096, 1 << 16} {
			for _, count := range []uint32{1, 2, 256, 257, 10000, 1 << 24, 1 << 28, 1<<28 + 1, 1 << 30, 1 << 31, 1<<32 - 1} {
				if uint64(count)*segmentSize <= uint64(room) {
					continue
				}
				for where, before := range map[string][]uint32{"a Write chunk": {0, 1}, "the Reply chunk": {0, 0, 1}} {
					b := append(wire(join(prefix(version, TypeMsg, 0), handle(version, 0), before, []uint32{count})...), make([]byte, room)...)
					at := len(b) - room - wordSize
					if f := refused(t, NewDecoder(DefaultLimits()), b); code(f) != bad(version) || f.At != at {
						t.Errorf("version %d: %s of %d segments, %d octets: %v", version, where, count, room, f)
					}
				}
			}
		}
	}
}

// TestPositions checks that Positions are multiples of 4, ascend, and are not inside the item before; segments of one Position are
// neighbours (RPC2-035, 047, 103; RPC1-033).
// Attack P3 (SECURITY.md).
func TestPositions(t *testing.T) {
	type item struct{ position, length uint32 }
	for _, c := range []struct {
		name  string
		items []item
		ok    bool
	}{
		{"one", []item{{4, 7}}, true},
		{"two", []item{{4, 7}, {12, 8}}, true},
		{"at the highest Position", []item{{1<<32 - 4, 1<<32 - 1}}, true},
		{"of equal Position", []item{{4, 7}, {4, 9}, {20, 1}}, true},
		{"odd", []item{{5, 7}}, false},
		{"odd, later", []item{{4, 7}, {14, 8}}, false},
		{"descending", []item{{12, 8}, {4, 8}}, false},
		{"equal, and not neighbours", []item{{4, 7}, {12, 8}, {4, 7}}, false},
		{"inside the one before", []item{{4, 7}, {8, 8}}, false},
		{"inside one of two segments", []item{{4, 4}, {4, 5}, {12, 8}}, false},
		{"after one of 4 GiB whose end wraps", []item{{8, 1<<32 - 4}, {8, 8}, {12, 8}}, false},
		{"zero after another one", []item{{4, 0}, {0, 8}}, false},
		{"zero in a message with payload", []item{{0, 8}}, false},
	} {
		for _, version := range []uint32{Version1, Version2} {
			var list []uint32
			for _, i := range c.items {
				list = append(list, 1, i.position, 9, i.length, 0, 0)
			}
			b := wire(join(prefix(version, TypeMsg, 0), handle(version, 0), list, []uint32{0, 0, 0})...)
			if c.ok {
				h, _ := taken(t, NewDecoder(DefaultLimits()), b)
				if want := len(c.items); c.name == "of equal Position" && (len(h.Reads) != 2 || h.Reads[0].Length() != 16) || len(h.Reads) > want {
					t.Errorf("version %d, %s: %+v", version, c.name, h.Reads)
				}
			} else if f := refused(t, NewDecoder(DefaultLimits()), b); code(f) != bad(version) {
				t.Errorf("version %d, %s: %v", version, c.name, f)
			}
		}
	}
}

// TestListsOfADirection checks what the direction of a message says of its lists: a Reply has no Read list, and a message without
// payload has a chunk for it (RPC2-045, 047, 048; RPC1-032).
func TestListsOfADirection(t *testing.T) {
	read0 := []uint32{1, 0, 9, 100, 0, 0}
	read4 := []uint32{1, 4, 9, 100, 0, 0}
	write := []uint32{1, 1, 8, 100, 0, 0}
	reply := []uint32{1, 1, 7, 100, 0, 0}
	end := []uint32{0}
	for _, c := range []struct {
		name                string
		version             uint32
		typ                 Type
		flags               Flags
		reads, writes, last []uint32
		ok                  bool
	}{
		{"Call in a chunk", 2, TypeNoMsg, 0, read0, nil, end, true},
		{"and another one", 2, TypeNoMsg, 0, join(read0, read4), write, reply, true},
		{"Call in no chunk", 2, TypeNoMsg, 0, nil, write, reply, false},
		{"Call in a chunk elsewhere", 2, TypeNoMsg, 0, read4, nil, reply, false},
		{"Reply in a chunk", 2, TypeNoMsg, FlagResponse, nil, write, reply, true},
		{"Reply in no chunk", 2, TypeNoMsg, FlagResponse, nil, write, end, false},
		{"Reply with a Read list", 2, TypeNoMsg, FlagResponse, read0, nil, reply, false},
		{"Reply with a Read list and payload", 2, TypeMsg, FlagResponse, read4, nil, end, false},
		{"Reply with payload", 2, TypeMsg, FlagResponse, nil, write, reply, true},
		{"Call in a chunk", 1, TypeNoMsg, 0, read0, nil, end, true},
		{"Call in a chunk elsewhere", 1, TypeNoMsg, 0, read4, nil, reply, false},
		{"Reply in a chunk", 1, TypeNoMsg, 0, nil, write, reply, true},
		{"in no chunk", 1, TypeNoMsg, 0, nil, write, end, false},
		{"without lists", 1, TypeNoMsg, 0, nil, nil, end, false},
	} {
		b := wire(join(prefix(c.version, c.typ, c.flags), handle(c.version, 0), c.reads, end, c.writes, end, c.last)...)
		if c.ok {
			taken(t, NewDecoder(DefaultLimits()), b)
		} else if f := refused(t, NewDecoder(DefaultLimits()), b); code(f) != bad(c.version) {
			t.Errorf("version %d, %s: %v", c.version, c.name, f)
		}
	}
}

// TestInvalidatedHandle checks that the handle which may be invalidated is one of the Call's lists; in Replies it is not looked
// at (RPC2-062, 064, 107).
func TestInvalidatedHandle(t *testing.T) {
	lists := []uint32{1, 8, 1, 100, 0, 0, 0, 1, 2, 5, 10, 0, 5, 6, 0, 0, 6, 0, 1, 1, 7, 50, 0, 7}
	for _, h := range []uint32{0, 1, 5, 6, 7} {
		if got, _ := taken(t, NewDecoder(DefaultLimits()), wire(join(prefix(Version2, TypeMsg, 0), handle(Version2, h), lists)...)); got.InvHandle != h {
			t.Errorf("%d is read as %d", h, got.InvHandle)
		}
	}
	for _, h := range []uint32{2, 8, 1 << 31} {
		if f := refused(t, NewDecoder(DefaultLimits()), wire(join(prefix(Version2, TypeMsg, 0), handle(Version2, h), lists)...)); code(f) != "BAD_XDR" {
			t.Errorf("%d: %v", h, f)
		}
	}
	taken(t, NewDecoder(DefaultLimits()), wire(join(prefix(Version2, TypeMsg, FlagResponse), handle(Version2, 2), make([]uint32, 3))...))
}
