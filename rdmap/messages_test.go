package rdmap_test

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// RDMAP-002, 005, 006, 010, 020 to 024, 035, 069, RDMAPX-006 to 008, COMMIT-001, 002: each request leaves as one message, in the order of
// posting, with just this header and these words. Its length is told below, as no header has it.
func TestMessagesOfRequests(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{Extensions: everything, ORD: 16, IRD: 16}})
	const at, ones = "0000000000000010", "ffffffffffffffff"
	data := pattern(1, 300)
	cases := []struct {
		w      rdmap.Work
		want   ddp.Header
		inline string
		data   []byte
	}{
		{rdmap.Work{Op: rdmap.OpSend, Data: data, Invalidate: 9}, untagged(0x43, 0, 1), "", data},
		{rdmap.Work{Op: rdmap.OpWrite, Data: data[:100], More: [][]byte{data[100:]}, STag: 0x100, TO: 16, Invalidate: 9}, write(0x100, 16), "", data},
		{rdmap.Work{Op: rdmap.OpSend, Solicited: true, Invalidate: 9}, untagged(0x45, 0, 2), "", nil},
		{rdmap.Work{Op: rdmap.OpSend, Invalidating: true, Invalidate: 9}, ddp.Header{Last: true, Control: 0x44, Invalidate: 9, MSN: 3}, "", nil},
		{rdmap.Work{Op: rdmap.OpSend, Solicited: true, Invalidating: true, Invalidate: 9}, ddp.Header{Last: true, Control: 0x46, Invalidate: 9, MSN: 4}, "", nil},
		{rdmap.Work{Op: rdmap.OpImmediate, Payload: [8]byte([]byte("IMMDDATA")), Invalidate: 9}, untagged(0x48, 0, 5), "494d4d4444415441", nil},
		{rdmap.Work{Op: rdmap.OpImmediate, Solicited: true}, untagged(0x49, 0, 6), "0000000000000000", nil},
		{rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 300), STag: 0x100, TO: 16, Invalidate: 9}, untagged(0x41, 1, 1), "00000042" + "0000000000000000" + "0000012c" + "00000100" + at, nil},
		// The words that FetchAdd does not use are 0 and ones.
		{rdmap.Work{Op: rdmap.OpFetchAdd, STag: 0x100, TO: 16, Operand: 3, Compare: 7, CompareMask: 7, Mask: 7}, untagged(0x4a, 1, 2),
			"00000000" + "00000002" + "00000100" + at + "0000000000000003" + "0000000000000000" + "0000000000000000" + ones, nil},
		{rdmap.Work{Op: rdmap.OpCompareSwap, STag: 0x100, TO: 16, Operand: 3, Compare: 7}, untagged(0x4a, 1, 3),
			"00000002" + "00000003" + "00000100" + at + "0000000000000003" + ones + "0000000000000007" + ones, nil},
		{rdmap.Work{Op: rdmap.OpFlush, STag: 0x100, TO: 16, Length: 5, Persistent: true}, untagged(0x4c, 1, 4), "00000100" + "00000005" + at + "00000001", nil},
		{rdmap.Work{Op: rdmap.OpFlush, STag: 0x100, TO: 16, Length: 5, Global: true}, untagged(0x4c, 1, 5), "00000100" + "00000005" + at + "00000002", nil},
		{rdmap.Work{Op: rdmap.OpVerify, STag: 0x100, TO: 16, Length: 5}, untagged(0x4e, 1, 6), "00000100" + "00000005" + at, nil},
		{rdmap.Work{Op: rdmap.OpVerify, STag: 0x100, TO: 16, Length: 5, Hash: []byte{1, 2, 3, 4}}, untagged(0x4e, 1, 7), "00000100" + "00000005" + at + "01020304", nil},
		{rdmap.Work{Op: rdmap.OpAtomicWrite, STag: 0x100, TO: 16, Payload: [8]byte{1}}, untagged(0x50, 1, 8), "00000100" + "00000008" + at + "0100000000000000", nil},
	}
	for i := range cases {
		p.a.post(cases[i].w)
	}
	for _, c := range cases {
		var m ddp.Message
		if !p.a.Next(&m) {
			t.Fatalf("%v: no message", c.w.Op)
		}
		var b []byte
		for _, s := range m.Data {
			b = append(b, s.Bytes...)
		}
		m.Last = true // the carrier's
		inline := hex.EncodeToString(m.Inline[:m.InlineSize])
		if m.Header != c.want || inline != c.inline || !bytes.Equal(b, c.data) || int(m.Length) != len(c.inline)/2+len(c.data) {
			t.Errorf("%+v left as %+v, %s, %d bytes, altogether %d;\nwant %+v, %s, %d bytes", c.w.Op, m.Header, inline, len(b), m.Length, c.want, c.inline, len(c.data))
		}
	}
	if p.a.Next(new(ddp.Message)) {
		t.Error("one message more than requests")
	}
}

// RDMAP-010, 025, 038, 039, 041, 076, RDMAPX-022 to 024, 029, 035, COMMIT-002, 008, 023, 035: one answer to each request, in their order, whatever carries it. What a Read
// names as its sink comes back as it is.
func TestMessagesOfAnswers(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{Extensions: everything, IRD: 16}})
	b := p.b
	m := b.expose(7<<8, 64, rdmap.AccessRead, rdmap.AccessWrite, rdmap.AccessAtomic, rdmap.AccessFlushGlobal, rdmap.AccessVerify)
	copy(m, pattern(3, 64))
	stag, at := 7<<8, uint64(16)
	requests := []struct {
		h       ddp.Header
		payload []byte
	}{
		{untagged(0x41, 1, 1), words(-0x21524111, uint64(1<<64-5), 10, stag, uint64(3))},
		{untagged(0x50, 1, 2), words(stag, 8, at, uint64(0))},
		{untagged(0x4a, 1, 3), words(0, 77, stag, at, uint64(5), uint64(0), uint64(0), uint64(0))},
		{untagged(0x4c, 1, 4), words(stag, 8, at, 2)},
		{untagged(0x4e, 1, 5), words(stag, 8, at)},
		{untagged(0x4a, 1, 6), words(2, 78, stag, at, uint64(5), ^uint64(0), uint64(9), ^uint64(0))},
		{untagged(0x41, 1, 7), words(1, uint64(0), 0, 99, uint64(0))},
	}
	for _, r := range requests {
		if err := b.arrive(r.h, r.payload); err != nil {
			t.Fatal(err)
		}
	}
	var got []ddp.Header
	var inline []string
	for range 20 {
		var next ddp.Message
		if b.Next(&next) {
			if next.Tagged && next.Length > 0 && (next.Length != 10 || !bytes.Equal(next.Data[0].Bytes, pattern(3, 64)[3:13])) {
				t.Errorf("the answer has %d bytes, %x", next.Length, next.Data[0].Bytes)
			}
			next.Last = true
			got = append(got, next.Header)
			inline = append(inline, hex.EncodeToString(next.Inline[:next.InlineSize]))
			b.Sent(1)
		}
		var j rdmap.Job
		if b.Job(&j) {
			if len(got) != map[bool]int{false: 3, true: 4}[j.Verify] {
				t.Errorf("job %+v begins when %d requests are answered", j, len(got))
			}
			b.JobDone([]byte{1, 2}, nil)
		}
	}
	five := "0000004d0000000000000000"
	want := []ddp.Header{{Tagged: true, Last: true, Control: 0x42, STag: 0xdeadbeef, TO: 1<<64 - 5}, untagged(0x51, 3, 1), untagged(0x4b, 3, 2), untagged(0x4d, 3, 3),
		untagged(0x4f, 3, 4), untagged(0x4b, 3, 5), {Tagged: true, Last: true, Control: 0x42, STag: 1}}
	if !slices.Equal(got, want) {
		t.Fatalf("answers %+v,\nwant %+v", got, want)
	}
	if inline[1] != "" || inline[2] != five || inline[3] != "" || inline[4] != "0102" || inline[5] != "0000004e0000000000000005" {
		t.Errorf("answers with %q", inline)
	}
	if len(b.received.list) != 0 {
		t.Errorf("the program of the responder heard of %+v (RDMAP-037, RDMAPX-020, COMMIT-008)", b.received.list)
	}
}

// RDMAP-022, 023, 027, RDMAPX-006, 008, COMMIT-001: what is reserved, and the STag of messages that invalidate nothing, is not looked at.
func TestReservedIsIgnored(t *testing.T) {
	ones := ^uint64(0)
	for _, c := range []struct {
		name    string
		h       ddp.Header
		payload []byte
	}{
		{"Send", untagged(0x43, 0, 1), words(1)},
		{"Send with SE", untagged(0x45, 0, 1), words(1)},
		{"Immediate Data", untagged(0x48, 0, 1), words(uint64(1))},
		{"Immediate Data with SE", untagged(0x49, 0, 1), words(uint64(1))},
		{"Read Request", untagged(0x41, 1, 1), words(1, uint64(0), 8, 7<<8, uint64(0))},
		{"FetchAdd, unused words", untagged(0x4a, 1, 1), words(0x7ffffff0, 1, 7<<8, uint64(8), uint64(1), uint64(0), ones, uint64(0))},
		{"CompareSwap", untagged(0x4a, 1, 1), words(0x7ffffff2, 1, 7<<8, uint64(8), uint64(1), ones, ones, ones)},
		{"Flush, flags", untagged(0x4c, 1, 1), words(7<<8, 8, uint64(0), 0x7ffffffe)},
		{"Verify", untagged(0x4e, 1, 1), words(7<<8, 8, uint64(0))},
		{"Atomic Write", untagged(0x50, 1, 1), words(7<<8, 8, uint64(0), uint64(1))},
	} {
		p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
		p.b.expose(7<<8, 64, rdmap.AccessRead, rdmap.AccessWrite, rdmap.AccessAtomic, rdmap.AccessFlushGlobal, rdmap.AccessVerify)
		p.b.receive(make([]byte, 8))
		c.h.Invalidate = 7 << 8
		c.h.Control |= 0x20
		if err := p.b.arrive(c.h, c.payload); err != nil || p.b.Err() != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		p.b.Next(new(ddp.Message))
		if p.b.Err() != nil || p.b.mem[7<<8].withdrawn {
			t.Errorf("%s: %v, withdrawn %v", c.name, p.b.Err(), p.b.mem[7<<8].withdrawn)
		}
		if c.h.QN == 0 && (len(p.b.received.list) != 1 || p.b.received.list[0].Invalidated) {
			t.Errorf("%s: received %+v", c.name, p.b.received.list)
		}
	}
}

// RDMAP-065, 072, 073, 075, RDMAPX-028, 031, 034, DDP-006: what is in place but not delivered has not happened.
func TestNothingBeforeDelivery(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}, carrier: carrier{unordered: true}})
	m := p.b.expose(7<<8, 64, rdmap.AccessRead, rdmap.AccessAtomic, rdmap.AccessFlushGlobal)
	p.b.receive(make([]byte, 8))
	p.a.receive(nil)
	place := func(s *side, h ddp.Header, b []byte) {
		t.Helper()
		span, err := s.Place(&h, len(b))
		if err != nil {
			t.Fatal(err)
		}
		copy(span.Bytes, b)
	}
	still := func(s *side, what string) {
		t.Helper()
		if len(s.received.list)+len(s.sent.list) != 0 || s.Next(new(ddp.Message)) || s.Job(new(rdmap.Job)) {
			t.Errorf("%s is in place, and something comes of it", what)
		}
	}
	place(p.b, untagged(0x43, 0, 1), words(1))
	still(p.b, "a Send")
	place(p.b, untagged(0x41, 1, 1), words(1, uint64(0), 8, 7<<8, uint64(0)))
	still(p.b, "a Read Request")
	place(p.b, untagged(0x4a, 1, 2), words(0, 1, 7<<8, uint64(8), uint64(1), uint64(0), uint64(0), uint64(0)))
	still(p.b, "an Atomic Request")
	place(p.b, untagged(0x4c, 1, 3), words(7<<8, 8, uint64(0), 2))
	still(p.b, "a Flush Request")
	p.b.want("memory", m, make([]byte, 64))

	r := p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 8), STag: 7 << 8})
	f := p.a.post(rdmap.Work{Op: rdmap.OpFetchAdd, STag: 7 << 8, Operand: 1})
	p.a.leave()
	p.a.leave()
	answer := ddp.Header{Tagged: true, Last: true, Control: 0x42, STag: 0x42}
	place(p.a, answer, words(uint64(9)))
	still(p.a, "a Read Response")
	place(p.a, untagged(0x4b, 3, 1), words(2, uint64(7)))
	still(p.a, "an Atomic Response")
	if err := p.a.Deliver(&answer, 8); err != nil {
		t.Fatal(err)
	}
	p.a.wantSent(r)
	h := untagged(0x4b, 3, 1)
	if err := p.a.Deliver(&h, 12); err != nil {
		t.Fatal(err)
	}
	if l := p.a.wantSent(f); l[0].Old != 7 {
		t.Errorf("FetchAdd found %d", l[0].Old)
	}
}

// TestOneOperation: each operation has its article in a sentence.
func TestOneOperation(t *testing.T) {
	for o, want := range map[rdmap.Opcode]string{
		rdmap.Write: "a Write", rdmap.ReadRequest: "a Read Request", rdmap.AtomicRequest: "an Atomic Request", rdmap.AtomicWriteRequest: "an Atomic Write Request", rdmap.Immediate: "an Immediate Data",
		rdmap.Opcode(0x0f) + 0x20: "an opcode 0x2f",
	} {
		if got := o.One(); got != want {
			t.Errorf("%v is one as %q, not as %q", o, got, want)
		}
	}
}
