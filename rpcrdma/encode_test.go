package rpcrdma

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// TestRoundTrip checks over random headers that each is as long as is said before, and decodes to what it was, with the octets after it as
// its payload.
func TestRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := dice{rand.New(rand.NewPCG(seed, 1))}
	decoder := NewDecoder(DefaultLimits())
	types := map[Type]int{}
	for i := range 20000 {
		h := d.header(Version1 + uint32(i)%2)
		types[h.Type]++
		before := make([]byte, d.IntN(5))
		b := h.Append(before)
		if b = b[len(before):]; len(b) != h.Size() {
			t.Fatalf("seed %d, %d: %d octets, and %d are announced: %+v", seed, i, len(b), h.Size(), h)
		}
		var payload []byte
		if h.Type == TypeMsg {
			payload = make([]byte, d.IntN(40))
		}
		var got Header
		rest, err := decoder.Decode(append(b, payload...), &got)
		if err != nil {
			t.Fatalf("seed %d, %d: %v: %+v", seed, i, err, h)
		}
		if len(rest) != len(payload) || !same(&got, h) {
			t.Fatalf("seed %d, %d: %d octets of payload, want %d, and\n%+v, want\n%+v", seed, i, len(rest), len(payload), got, *h)
		}
		if again := got.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("seed %d, %d: encoded again\n%x, want\n%x", seed, i, again, b)
		}
	}
	for _, typ := range []Type{TypeMsg, TypeNoMsg, TypeError, TypeConnProp} {
		if types[typ] < 100 {
			t.Errorf("seed %d: %d headers of type %v", seed, types[typ], typ)
		}
	}
}

// same compares headers, where lists of length 0 are equal.
func same(a, b *Header) bool {
	plain := func(h *Header) Header {
		p := *h
		p.Reads, p.Writes, p.Reply, p.Properties = nil, nil, nil, nil
		return p
	}
	if !reflect.DeepEqual(plain(a), plain(b)) || len(a.Reads) != len(b.Reads) || len(a.Writes) != len(b.Writes) || len(a.Properties) != len(b.Properties) {
		return false
	}
	equal := func(a, b Chunk) bool { return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b)) }
	for i := range a.Reads {
		if a.Reads[i].Position != b.Reads[i].Position || !equal(a.Reads[i].Segments, b.Reads[i].Segments) {
			return false
		}
	}
	for i := range a.Writes {
		if !equal(a.Writes[i], b.Writes[i]) {
			return false
		}
	}
	for i := range a.Properties {
		if a.Properties[i].ID != b.Properties[i].ID || !bytes.Equal(a.Properties[i].Data, b.Properties[i].Data) {
			return false
		}
	}
	return equal(a.Reply, b.Reply)
}

// TestSizes checks the lengths that the specification gives, by which a side decides on a format before it encodes: a threshold
// includes the header (RPC2-021).
// Attack P18 (SECURITY.md).
func TestSizes(t *testing.T) {
	read := func(n int) []ReadChunk { return []ReadChunk{{8, make(Chunk, n)}} }
	for _, c := range []struct {
		name string
		h    Header
		want int
	}{
		{"MSG of version 1", Header{Version: 1}, 28},
		{"MSG of version 2", Header{Version: 2}, 36},
		{"refresh", Header{Version: 2, Type: TypeNoMsg}, 36},
		{"a read segment", Header{Version: 1, Reads: read(1)}, 28 + 24},
		{"three in two chunks", Header{Version: 2, Reads: append(read(1), read(2)...)}, 36 + 72},
		{"a Write chunk of 3", Header{Version: 1, Writes: []Chunk{make(Chunk, 3)}}, 28 + 8 + 48},
		{"an empty one", Header{Version: 2, Writes: []Chunk{{}}}, 36 + 8},
		{"a Reply chunk of 3", Header{Version: 1, HasReply: true, Reply: make(Chunk, 3)}, 28 + 4 + 48},
		{"an empty one", Header{Version: 2, HasReply: true}, 36 + 4},
		{"a Reply chunk that is absent", Header{Version: 2, Reply: make(Chunk, 3)}, 36},
		{"ERR_CHUNK", Header{Version: 1, Type: TypeError, Report: Report{Code: CodeChunk}}, 20},
		{"ERR_VERS", Header{Version: 1, Type: TypeError, Report: Report{Code: CodeVers}}, 28},
		{"BAD_XDR", Header{Version: 2, Type: TypeError, Report: Report{Code: CodeBadXDR}}, 24},
		{"VERS", Header{Version: 2, Type: TypeError, Report: Report{Code: CodeVers}}, 32},
		{"SEGMENTS", Header{Version: 2, Type: TypeError, Report: Report{Code: CodeSegments}}, 28},
		{"REPLY_RESOURCE", Header{Version: 2, Type: TypeError, Report: Report{Code: CodeReplyResource}}, 28},
		{"WRITE_RESOURCE", Header{Version: 2, Type: TypeError, Report: Report{Code: CodeWriteResource}}, 32},
		{"CONNPROP", Header{Version: 2, Type: TypeConnProp}, 24},
		{"two properties", Header{Version: 2, Type: TypeConnProp, Properties: []Property{{1, make([]byte, 4)}, {9, make([]byte, 5)}}}, 24 + 12 + 16},
	} {
		if got := c.h.Size(); got != c.want || len(c.h.Append(nil)) != c.want {
			t.Errorf("%s: %d octets announced, %d encoded, want %d", c.name, got, len(c.h.Append(nil)), c.want)
		}
	}
}

// TestUnencodable checks that a header which its version does not have is a mistake of the program: MSGP and DONE are never sent
// (RPC1-004).
func TestUnencodable(t *testing.T) {
	for _, h := range []Header{
		{Version: 0}, {Version: 3}, {Version: 1, Type: TypeMsgP}, {Version: 1, Type: TypeDone}, {Version: 1, Type: TypeConnProp},
		{Version: 2, Type: TypeMsgP}, {Version: 2, Type: TypeDone}, {Version: 2, Type: 6}, {Version: 2, Type: 1 << 31},
	} {
		for name, f := range map[string]func(){"Size": func() { h.Size() }, "Append": func() { h.Append(nil) }} {
			func() {
				defer func() {
					if said := fmt.Sprint(recover()); !strings.Contains(said, "no header") {
						t.Errorf("%s of version %d, %v: panic: %s", name, h.Version, h.Type, said)
					}
				}()
				f()
			}()
		}
	}
}

// TestAllocations checks that neither decoding nor encoding into a buffer of the right length allocates.
func TestAllocations(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(7, 7))}
	decoder := NewDecoder(DefaultLimits())
	buffer := make([]byte, 0, 64<<10)
	for version := uint32(Version1); version <= Version2; version++ {
		for range 200 {
			h := d.header(version)
			var got Header
			if n := testing.AllocsPerRun(1, func() {
				if h.Size() > cap(buffer) {
					t.Fatal("the buffer is too short")
				}
				b := h.Append(buffer)
				if _, err := decoder.Decode(b, &got); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Fatalf("%v allocations for %+v", n, h)
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	h := Header{Version: 1, Credit: 64, Reads: []ReadChunk{{108, Chunk{{1, 4096, 3}}}}, Writes: []Chunk{{{1, 4096, 3}}}}
	wire := h.Append(nil)
	d := NewDecoder(DefaultLimits())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Decode(wire, &h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	h := Header{Version: 1, Credit: 64, Reads: []ReadChunk{{108, Chunk{{1, 4096, 3}}}}, Writes: []Chunk{{{1, 4096, 3}}}}
	buffer := make([]byte, 0, h.Size())
	b.ReportAllocs()
	for b.Loop() {
		h.Append(buffer)
	}
}
