package mpa

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Frames that tshark has decoded, and whose CRC it has found right.
var golden = []struct {
	name, wire string
	m          message
}{
	{"Write", "0013 c140 00000100 0000000000002000 68656c6c6f 000000 84b10485", write(0x100, 0x2000, []byte("hello"))},
	{"Atomic Request", `0046 414a 00000000 00000001 00000001 00000000 00000002 00000007 00000055 0000000000000010 0000000000000001
		ffffffffffffffff 0000000000000002 ffffffffffffffff 8b7f6d08`,
		message{ddp.Header{Last: true, Control: 0x4a, QN: 1, MSN: 1},
			[]byte("\x00\x00\x00\x02\x00\x00\x00\x07\x00\x00\x00\x55\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x01" +
				"\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff")}},
	{"Atomic Response", "001e 414b 00000000 00000003 00000001 00000000 00000007 0000000000000009 676512c8",
		message{ddp.Header{Last: true, Control: 0x4b, QN: 3, MSN: 1}, []byte("\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x09")}},
	{"Terminate", "0026 4147 00000000 00000002 00000001 00000000 1101c000 0013 c140 00000100 0000000000002000 82cdb428",
		message{ddp.Header{Last: true, Control: 0x47, QN: 2, MSN: 1}, []byte("\x11\x01\xc0\x00\x00\x13\xc1\x40\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x20\x00")}},
	{"Immediate Data", "001a 4148 00000000 00000000 00000001 00000000 494d4d4444415441 23b1cc4c",
		message{ddp.Header{Last: true, Control: 0x48, MSN: 1}, []byte("IMMDDATA")}},
	{"Write without payload", "000e c140 00000001 0000000000000000 ebd34c5f", write(1, 0, nil)},
}

// MPA-001, MPA-002, MPA-003: byte for byte, both ways.
func TestGoldenFrames(t *testing.T) {
	for _, c := range golden {
		t.Run(c.name, func(t *testing.T) {
			wire := unhex(t, c.wire)
			for _, inline := range []int{0, min(len(c.m.payload), ddp.InlineSize)} {
				if got := encode(t, framer{crc: true, copies: true}, outgoing(c.m, inline, 1, 2)); !bytes.Equal(got, wire) {
					t.Errorf("written as %x, want %x", got, wire)
				}
			}
			without := bytes.Clone(wire)
			copy(without[len(without)-CRCSize:], "\x00\x00\x00\x00")
			for _, copies := range []bool{false, true} {
				if got := encode(t, framer{copies: copies}, outgoing(c.m, 0)); !bytes.Equal(got, without) {
					t.Errorf("without CRC written as %x, want %x", got, without)
				}
			}
			for _, next := range []func(int) int{whole, single} {
				for _, crc := range []bool{true, false} {
					sink := newSink(t)
					rest, err := parseIn(t, &parser{crc: crc}, sink, wire, next)
					if rest != 0 || err != nil || len(sink.got) != 1 || sink.got[0].String() != c.m.String() || !bytes.Equal(sink.got[0].payload, c.m.payload) {
						t.Errorf("read as %v, %d octets over, %v; want %v", sink.got, rest, err, c.m)
					}
				}
			}
		})
	}
	if got := binary.LittleEndian.AppendUint32(nil, crc32.Checksum(make([]byte, 32), castagnoli)); hex.EncodeToString(got) != "aa36918a" {
		t.Errorf("MPA-002: CRC of 32 zeros %x", got)
	}
}

// frameOf is a frame around any segment.
func frameOf(segment []byte, crc bool) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(segment)))
	b = append(b, segment...)
	for len(b)%4 != 0 {
		b = append(b, 0xaa) // a pad that is not zero, as siw sends it
	}
	sum := uint32(0x55555555)
	if crc {
		sum = crc32.Checksum(b, castagnoli)
	}
	return binary.LittleEndian.AppendUint32(b, sum)
}

func segmentOf(h ddp.Header, payload []byte) []byte {
	b := make([]byte, h.Size())
	h.Put(b)
	return append(b, payload...)
}

func TestFaultsOfFrames(t *testing.T) {
	w := write(7, 0, []byte("payload of a Write")).first
	hello := []byte("payload of a Write")
	good := frameOf(segmentOf(w, hello), true)
	flipped := func(at int) []byte { b := bytes.Clone(good); b[at] ^= 4; return b }
	version := bytes.Clone(segmentOf(w, hello))
	version[0] ^= 3
	never := errors.New("no place for that")
	for _, c := range []struct {
		name  string
		wire  []byte
		crc   bool
		place error
		want  error
	}{
		{"MPA-003: CRC is off, and its field ignored", frameOf(segmentOf(w, hello), false), false, nil, nil},
		{"MPA-001: the pad is ignored", good, true, nil, nil},
		{"MPA-009: the CRC", flipped(len(good) - 1), true, nil, ddp.Checksum},
		{"MPA-009: a bit of the payload", flipped(20), true, nil, ddp.Checksum},
		{"MPA-009: a bit of the pad", flipped(len(good) - 5), true, nil, ddp.Checksum},
		{"MPA-009: the version, damaged", flipped(2), true, nil, ddp.Checksum},
		{"MPA-008: nothing in a frame", frameOf(nil, true), true, nil, ddp.Malformed},
		{"MPA-008: nothing in a frame, no CRC", frameOf(nil, false), false, nil, ddp.Malformed},
		{"MPA-008: an octet less than a tagged header", frameOf(make([]byte, 13), false), false, nil, ddp.Malformed},
		{"MPA-008: an octet less than a tagged header, CRC", frameOf(segmentOf(w, nil)[:13], true), true, nil, ddp.Malformed},
		{"MPA-008: an untagged header in 14 octets", frameOf(segmentOf(send(1, nil).first, nil)[:14], false), false, nil, ddp.Malformed},
		{"MPA-008: an octet less than an untagged header", frameOf(segmentOf(send(1, nil).first, nil)[:17], true), true, nil, ddp.Malformed},
		{"DDP-008: version", frameOf(version, true), true, nil, ddp.TaggedVersion},
		{"DDP-008: version, no CRC", frameOf(version, false), false, nil, ddp.TaggedVersion},
		{"DDP-003: a first segment in the middle", frameOf(segmentOf(ddp.Header{Last: true, MSN: 1, MO: 8}, hello), true), true, nil, ddp.UntaggedMO},
		{"what the stream says", good, true, never, never},
		{"what the stream says, no CRC", good, false, never, never},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, next := range []func(int) int{whole, single} {
				sink := newSink(t)
				sink.place = func(*ddp.Header, int) error { return c.place }
				p := &parser{crc: c.crc}
				// Another good frame follows, which nobody shall see after a fault.
				_, err := parseIn(t, p, sink, append(bytes.Clone(c.wire), good...), next)
				if !errors.Is(err, c.want) {
					t.Fatalf("%v, want %v", err, c.want)
				}
				if want := map[bool]int{true: 2}[c.want == nil]; len(sink.got) != want {
					t.Errorf("%d messages delivered, want %d", len(sink.got), want)
				}
				if c.want != nil && len(sink.spans) != 0 {
					t.Errorf("a place was asked for: %v", sink.spans)
				}
				sink.Begin()
				if _, again := p.parse(good, sink); again != err {
					t.Errorf("afterwards %v, before %v", again, err)
				}
			}
		})
	}
}

// MPA-006: any length of a segment; the smallest steps around each limit, and some between.
func TestEveryLength(t *testing.T) {
	lengths := []int{maxSegment, maxSegment - 1, maxSegment - 2, maxSegment - 3, maxForeign, maxForeign + 1, 1448, 4096}
	for n := range 300 {
		lengths = append(lengths, n)
	}
	for _, crc := range []bool{true, false} {
		p, sink := &parser{crc: crc}, newSink(t)
		for i, n := range lengths {
			h := send(uint32(i), nil).first
			if n < h.Size() {
				continue
			}
			payload := pattern(n-h.Size(), i)
			wire := frameOf(segmentOf(h, payload), crc)
			if len(wire)%4 != 0 || len(wire) > maxFrame {
				t.Fatalf("MPA-001: a frame of %d octets", len(wire))
			}
			sink.got = nil
			rest, err := parseIn(t, p, sink, wire, func(int) int { return 997 })
			if err != nil || rest != 0 || len(sink.got) != 1 || !bytes.Equal(sink.got[0].payload, payload) {
				t.Fatalf("CRC %v: a segment of %d octets: %v, %d over, %v", crc, n, sink.got, rest, err)
			}
		}
	}
}

// RDMAP-007, DDP-001, DDP-002, DDP-003, MPA-006: how messages become segments.
func TestSegments(t *testing.T) {
	for _, c := range []struct {
		name    string
		segment int
		m       message
		want    []int // payload of each segment
	}{
		{"DDP-001: nothing is one segment", 1442, write(1, 5, nil), []int{0}},
		{"as siw cuts a Write", 1442, write(1, 5, pattern(4096, 1)), []int{1428, 1428, 1240}},
		{"as siw cuts a Send", 1442, send(1, pattern(4096, 1)), []int{1424, 1424, 1248}},
		{"no empty one behind", 1442, send(1, pattern(2848, 1)), []int{1424, 1424}},
		{"long ones in pages", 0, write(1, 5, pattern(150000, 1)), []int{61440, 61440, 27120}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, f := range []framer{{crc: true, copies: true, segment: c.segment}, {segment: c.segment}} {
				wire := encode(t, f, outgoing(c.m, min(3, len(c.m.payload)), 5, 3000, 0, 70000))
				done := 0
				for i, n := range c.want {
					h := c.m.first
					h.Last = i == len(c.want)-1
					if h.Tagged {
						h.TO += uint64(done)
					} else {
						h.MO = uint32(done)
					}
					want := frameOf(segmentOf(h, c.m.payload[done:done+n]), false)
					want = want[:LengthSize+h.Size()+n]
					if !bytes.HasPrefix(wire, want) {
						t.Fatalf("segment %d begins %x, want %x", i, wire[:20], want[:20])
					}
					wire = wire[len(want)+TrailerSize(h.Size()+n):]
					done += n
				}
				if len(wire) != 0 || done != len(c.m.payload) {
					t.Errorf("%d octets more", len(wire))
				}
			}
		})
	}
	// MPA-006: EMSS - 6 - (EMSS mod 4), and what siw takes on a path of 1500 octets with timestamps.
	for mss, want := range map[int]int{1448: 1442, 1460: 1454, 1449: 1442, 1451: 1442, 536: 530, 88: 128, 65483: 64768} {
		if got := foreignSegment(mss); got != want {
			t.Errorf("MPA-006: segments of %d octets for an MSS of %d, want %d", got, mss, want)
		}
	}
}

// A stream that lies about a message does harm to nobody.
func TestWrongMessages(t *testing.T) {
	for _, change := range []func(*ddp.Message){
		func(m *ddp.Message) { m.Length++ }, func(m *ddp.Message) { m.Length-- },
		func(m *ddp.Message) { m.InlineSize = ddp.InlineSize + 1 }, func(m *ddp.Message) { m.InlineSize = -1 },
	} {
		good, bad := outgoing(send(1, pattern(100, 1)), 0), outgoing(send(2, pattern(100, 1)), 10)
		change(&bad)
		b := batches.Get().(*batch)
		src := &listSource{t: t, list: []ddp.Message{good, bad}}
		src.Begin()
		_, err := (&framer{}).fill(b, src)
		if !errors.Is(err, errLength) || b.ended != 1 || b.size != LengthSize+18+100+CRCSize {
			t.Errorf("%v, %d messages of %d octets", err, b.ended, b.size)
		}
		b.release()
	}
}

// Memory that is withdrawn at a frame's border leaves whole frames only.
func TestWithdrawnWhileCopying(t *testing.T) {
	for _, copies := range []bool{true, false} {
		g := &gate{}
		m := outgoing(write(1, 0, pattern(200000, 1)), 0)
		m.Data[0].Guard = &entries{Guard: g, left: 1}
		tail := outgoing(send(1, pattern(100, 1)), 0)
		m.Data = append(m.Data, ddp.Span{Bytes: pattern(100, 3), Guard: &entries{}})
		m.Length += 100
		b := batches.Get().(*batch)
		src := &listSource{t: t, list: []ddp.Message{tail, m}}
		f := framer{copies: copies}
		src.Begin()
		_, err := f.fill(b, src)
		if !errors.Is(err, ErrWithdrawn) || f.active {
			t.Fatalf("copies %v: %v", copies, err)
		}
		var wire []byte
		for _, v := range b.vecs[:b.n] {
			wire = append(wire, octets(v)...)
		}
		if len(wire) != b.size {
			t.Errorf("%d octets, and %d counted", len(wire), b.size)
		}
		sink := newSink(t)
		if rest, err := parseIn(t, &parser{}, sink, wire, whole); rest != 0 || err != nil || len(sink.got) != 1 {
			t.Errorf("copies %v: %d over, %v, %v", copies, rest, err, sink.got)
		}
		if g.in != 0 {
			t.Errorf("%d are inside still", g.in)
		}
		b.release()
	}
}

// entries lets in so many times.
type entries struct {
	ddp.Guard
	left int
}

func (e *entries) Enter(epoch uint64) bool {
	if e.left == 0 {
		return false
	}
	e.left--
	return e.Guard.Enter(epoch)
}

// TestPieces parses a stream of many messages cut in every way, and placed in one piece or in several: the same comes out.
func TestPieces(t *testing.T) {
	var list []ddp.Message
	var want []message
	for i, n := range []int{0, 1, 2, 3, 4, 5, 1424, 1428, 1429, 3000, 10, 70000, 7} {
		m := send(uint32(i), pattern(n, i))
		if i%2 == 0 {
			m = write(uint32(i), uint64(n)<<33, pattern(n, i))
		}
		want = append(want, m)
		list = append(list, outgoing(m, min(n, i)))
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, crc := range []bool{true, false} {
		wire := encode(t, framer{crc: crc, copies: crc, segment: 1442}, list...)
		ways := []func(int) int{whole, single, func(int) int { return 1 + rnd.IntN(5000) }, func(int) int { return 1 + rnd.IntN(40) }}
		for i, next := range ways {
			for _, split := range []func() int{nil, func() int { return 1 }, func() int { return 1 + rnd.IntN(2000) }} {
				sink := newSink(t)
				sink.split = split
				rest, err := parseIn(t, &parser{crc: crc}, sink, wire, next)
				if err != nil || rest != 0 {
					t.Fatalf("way %d: %v, %d over", i, err, rest)
				}
				same(t, fmt.Sprintf("CRC %v, way %d", crc, i), sink.got, want)
			}
		}
	}
}

func same(t testing.TB, what string, got, want []message) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%s: message %d is missing: %v", what, i, want[i])
		case i >= len(want):
			t.Fatalf("%s: message %d is too many: %v", what, i, got[i])
		}
		g, w := got[i], want[i]
		g.first.Last, w.first.Last = false, false // of the first segment
		if g.String() != w.String() || !bytes.Equal(g.payload, w.payload) {
			t.Fatalf("%s: message %d is %v, want %v (payload equal: %v)", what, i, g, w, bytes.Equal(g.payload, w.payload))
		}
	}
}

// FuzzParse: any bytes, in any pieces, never panic, change nothing but what the sink gave, and come to the
// same whatever the pieces are.
func FuzzParse(f *testing.F) {
	for _, c := range golden {
		f.Add(unhex(f, c.wire), uint64(1), true)
		f.Add(unhex(f, c.wire+c.wire), uint64(2), false)
	}
	f.Add(encode(f, framer{segment: 130}, outgoing(send(1, pattern(500, 1)), 0), outgoing(write(1, 2, pattern(300, 1)), 0)), uint64(3), false)
	f.Fuzz(func(t *testing.T, wire []byte, seed uint64, crc bool) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var outcome [3]string
		for i, next := range []func(int) int{whole, single, func(int) int { return 1 + rnd.IntN(30) }} {
			sink := newSink(t)
			if i > 0 {
				sink.split = func() int { return 1 + rnd.IntN(20) }
			}
			_, err := parseIn(t, &parser{crc: crc}, sink, wire, next)
			for _, p := range sink.spans {
				sink.checkMargin(p)
			}
			outcome[i] = fmt.Sprint(sink.got, err)
		}
		if outcome[0] != outcome[1] || outcome[0] != outcome[2] {
			t.Fatalf("%x: %q", wire, outcome)
		}
	})
}

// TestPlacesOfASegment checks with which header a sink is asked for the places of one segment, and that a place of
// nothing is a fault of this side.
func TestPlacesOfASegment(t *testing.T) {
	for _, crc := range []bool{true, false} {
		for _, m := range []message{write(7, 1<<40, pattern(100, 1)), send(3, pattern(100, 2))} {
			wire := encode(t, framer{crc: crc, segment: 1442}, outgoing(m, 0))
			sink := newSink(t)
			asked := 0
			sink.place = func(h *ddp.Header, n int) error {
				want := m.first
				if want.Tagged {
					want.TO += uint64(asked)
				} else {
					want.MO += uint32(asked)
				}
				if *h != want || n != 100-asked {
					t.Errorf("asked for %d octets of %+v, want %d of %+v", n, *h, 100-asked, want)
				}
				asked += min(30, n)
				return nil
			}
			sink.split = func() int { return 30 }
			if rest, err := parseIn(t, &parser{crc: crc}, sink, wire, single); rest != 0 || err != nil || asked != 100 || len(sink.got) != 1 {
				t.Errorf("%d, %v; asked for %d octets; %d messages", rest, err, asked, len(sink.got))
			}
			sink = newSink(t)
			sink.split = func() int { return 0 }
			if _, err := parseIn(t, &parser{crc: crc}, sink, wire, whole); err != error(ddp.LocalMPA) || len(sink.got) != 0 {
				t.Errorf("a place of nothing: %v", err)
			}
			sink = newSink(t)
			refused := ddp.TaggedBounds // by the second time
			sink.split = func() int { return 60 }
			sink.place = func(h *ddp.Header, n int) error {
				if n < 100 {
					return refused
				}
				return nil
			}
			if _, err := parseIn(t, &parser{crc: crc}, sink, wire, whole); err != error(refused) || len(sink.got) != 0 {
				t.Errorf("a second place that is refused: %v", err)
			}
		}
	}
}
