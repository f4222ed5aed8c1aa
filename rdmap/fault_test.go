package rdmap_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// arrive brings one segment, made by hand, to a side.
func (s *side) arrive(h ddp.Header, payload []byte) error {
	if err := s.in.Follows(&h, len(payload)); err != nil {
		return err
	}
	span, err := s.Place(&h, len(payload))
	if err != nil {
		return err
	}
	copy(span.Bytes, payload)
	if first, n := s.in.Placed(&h, len(payload)); first != nil {
		return s.Deliver(first, n)
	}
	return nil
}

// leave returns the next message of a side, without its DDP header.
func (s *side) leave() (op rdmap.Opcode, b []byte) {
	var m ddp.Message
	if !s.Next(&m) {
		return 0xff, nil
	}
	s.Sent(1)
	return rdmap.Opcode(m.Control & 15), m.Inline[:m.InlineSize]
}

func write(stag uint32, to uint64) ddp.Header {
	return ddp.Header{Tagged: true, Last: true, Control: 0x40, STag: stag, TO: to}
}

func untagged(control byte, qn, msn uint32) ddp.Header {
	return ddp.Header{Last: true, Control: control, QN: qn, MSN: msn}
}

func words(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		case uint64:
			b = binary.BigEndian.AppendUint64(b, p)
		}
	}
	return b
}

// RDMAP-008, 028, 030, 055, 087, 088, 090 to 097, RDMAPX-039, 044, 045, COMMIT-044, 046, 047, DDP-010: every fault ends the stream, with the
// Terminate that the texts ask for, and nothing is changed by it.
func TestFaults(t *testing.T) {
	const stag = 7 << 8
	at := uint64(16)
	read := func(size int, stag int, to uint64) []byte { return words(0x99, uint64(5), size, stag, to) }
	for _, c := range []struct {
		name    string
		h       ddp.Header
		payload []byte
		want    string // layer, type, code, M D R
	}{
		{"DDP-008: Write to an unknown STag", write(8<<8, 0), words(1), "1/1/00 MD"},
		{"DDP-008: Write beyond", write(stag, 61), words(1), "1/1/01 MD"},
		{"DDP-008: Write without the right", write(9<<8, 0), words(1), "1/1/00 MD"},
		{"RDMAP-093: RDMAP version 0", ddp.Header{Tagged: true, Last: true, STag: stag}, words(1), "0/2/05 MD"},
		{"RDMAP-093: RDMAP version 2", ddp.Header{Tagged: true, Last: true, Control: 0x80, STag: stag}, words(1), "0/2/05 MD"},
		{"RDMAP-096: Send, tagged", ddp.Header{Tagged: true, Last: true, Control: 0x43, STag: stag}, words(1), "0/2/06 MD"},
		{"RDMAP-096: Write, untagged", untagged(0x40, 0, 1), words(1), "0/2/06 MD"},
		{"RDMAP-096: Send on queue 1", untagged(0x43, 1, 1), words(1), "1/2/01 MD"},
		{"RDMAP-096: Send on queue 4", untagged(0x43, 4, 1), words(1), "1/2/01 MD"},
		{"RDMAP-096: Read Response to nothing", ddp.Header{Tagged: true, Last: true, Control: 0x42}, words(1), "0/2/06 MD"},
		{"DDP-004: Send 2 before 1", untagged(0x43, 0, 2), words(1), "1/2/03 MD"},
		{"DDP-004: Send 0", untagged(0x43, 0, 0), words(1), "1/2/03 MD"},
		{"RDMAP-047: Send longer than the receive", untagged(0x43, 0, 1), make([]byte, 101), "1/2/05 MD"},
		{"RDMAP-050: Send with Invalidate of an unknown STag", ddp.Header{Last: true, Control: 0x44, Invalidate: 3, MSN: 1}, nil, "0/1/09 MD"},
		{"RDMAPX-039: Immediate of 7 bytes", untagged(0x48, 0, 1), make([]byte, 7), "0/2/07 MD"},
		{"RDMAPX-039: Immediate of 9 bytes", untagged(0x48, 0, 1), make([]byte, 9), "1/2/05 MD"},
		{"RDMAP-095: Read of an unknown STag", untagged(0x41, 1, 1), read(4, 8<<8, 0), "0/1/00 MDR"},
		{"RDMAP-095: Read beyond", untagged(0x41, 1, 1), read(4, stag, 61), "0/1/01 MDR"},
		{"RDMAP-095: Read without the right", untagged(0x41, 1, 1), read(4, 10<<8, 0), "0/1/02 MDR"},
		{"RDMAP-097: Read Request of 27 bytes", untagged(0x41, 1, 1), make([]byte, 27), "0/2/07 MD"},
		{"RDMAP-097: Read Request of 65 bytes", untagged(0x41, 1, 1), make([]byte, 65), "0/2/07 MD"},
		{"RDMAP-037: Read Request 2 before 1", untagged(0x41, 1, 2), read(4, stag, 0), "1/2/03 MD"},
		{"RDMAPX-017: atomic of an unknown STag", untagged(0x4a, 1, 1), words(0, 1, 8<<8, at, at, at, at, at), "0/1/00 MD"},
		{"RDMAPX-017: atomic without the right", untagged(0x4a, 1, 1), words(0, 1, 10<<8, at, at, at, at, at), "0/1/02 MD"},
		{"RDMAPX-011: atomic at an odd place", untagged(0x4a, 1, 1), words(0, 1, stag, at+1, at, at, at, at), "0/2/07 MD"},
		{"RDMAPX-021: atomic operation 1", untagged(0x4a, 1, 1), words(1, 1, stag, at, at, at, at, at), "0/2/07 MD"},
		{"RDMAPX-009: atomic of 53 bytes", untagged(0x4a, 1, 1), make([]byte, 53), "0/2/07 MD"},
		{"RDMAPX-045: Immediate of version 2", untagged(0x88, 0, 1), make([]byte, 8), "0/2/05 MD"},
		{"RDMAPX-045: Immediate on queue 1", untagged(0x48, 1, 1), make([]byte, 8), "1/2/01 MD"},
		{"RDMAPX-045: Immediate, tagged", ddp.Header{Tagged: true, Last: true, Control: 0x49, STag: stag}, make([]byte, 8), "0/2/06 MD"},
		{"RDMAPX-045: Immediate 2 before 1", untagged(0x48, 0, 2), make([]byte, 8), "1/2/03 MD"},
		{"RDMAPX-045: atomic of version 0", untagged(0x0a, 1, 1), make([]byte, 52), "0/2/05 MD"},
		{"RDMAPX-045: atomic on queue 0", untagged(0x4a, 0, 1), make([]byte, 52), "1/2/01 MD"},
		{"RDMAPX-045: Atomic Response on queue 1", untagged(0x4b, 1, 1), make([]byte, 12), "1/2/01 MD"},
		{"COMMIT-046: Flush of version 3", untagged(0xcc, 1, 1), words(stag, 8, at, 2), "0/2/05 MD"},
		{"COMMIT-046: Flush on queue 3", untagged(0x4c, 3, 1), words(stag, 8, at, 2), "1/2/01 MD"},
		{"COMMIT-046: Verify, tagged", ddp.Header{Tagged: true, Last: true, Control: 0x4e, STag: stag}, words(stag, 8, at), "0/2/06 MD"},
		{"COMMIT-046: Atomic Write on queue 0", untagged(0x50, 0, 1), words(stag, 8, at, at), "1/2/01 MD"},
		{"COMMIT-046: Flush of an unknown STag", untagged(0x4c, 1, 1), words(8<<8, 8, at, 2), "0/1/00 MD"},
		{"COMMIT-046: Verify beyond", untagged(0x4e, 1, 1), words(11<<8, 8, at+50), "0/1/01 MD"},
		{"RDMAPX-009: atomic of 51 bytes", untagged(0x4a, 1, 1), make([]byte, 51), "0/2/07 MD"},
		{"RDMAPX-024: Atomic Response to nothing", untagged(0x4b, 3, 1), words(1, at), "1/2/02 MD"},
		{"COMMIT-018: Flush of no kind", untagged(0x4c, 1, 1), words(stag, 8, at, 0), "0/2/07 MD"},
		{"COMMIT-040: Flush without the right", untagged(0x4c, 1, 1), words(stag, 8, at, 1), "0/1/02 MD"},
		{"COMMIT-047: Flush of 16 bytes", untagged(0x4c, 1, 1), words(stag, 8, at), "0/2/07 MD"},
		{"COMMIT-040: Verify without the right", untagged(0x4e, 1, 1), words(stag, 8, at), "0/1/02 MD"},
		{"COMMIT-031: Atomic Write of 4 bytes", untagged(0x50, 1, 1), words(stag, 4, at, at), "0/2/07 MD"},
		{"COMMIT-032: Atomic Write at an odd place", untagged(0x50, 1, 1), words(stag, 8, at+4, at), "0/2/07 MD"},
		{"COMMIT-034: Atomic Write without the right", untagged(0x50, 1, 1), words(9<<8, 8, at, at), "0/1/02 MD"},
		{"COMMIT-046: Atomic Write to an unknown STag", untagged(0x50, 1, 1), words(8<<8, 8, at, at), "0/1/00 MD"},
		{"COMMIT-034: Atomic Write beyond", untagged(0x50, 1, 1), words(stag, 8, uint64(64), at), "0/1/01 MD"},
		{"opcode 0x12", untagged(0x52, 0, 1), words(1), "0/2/06 MD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
			b := p.b
			m := b.expose(stag, 64, rdmap.AccessWrite, rdmap.AccessRead, rdmap.AccessAtomic)
			other := b.expose(9<<8, 64, rdmap.AccessRead)
			b.expose(11<<8, 64, rdmap.AccessVerify)
			third := b.expose(10<<8, 64, rdmap.AccessWrite)
			buf := make([]byte, 100)
			b.receive(buf)
			work := b.post(rdmap.Work{Op: rdmap.OpSend})
			err := b.arrive(c.h, c.payload)
			// Without an error now, the fault shows when the request is carried out.
			if err != nil && (b.Err() == nil || !b.Terminating()) {
				t.Fatalf("%v, the stream's error %v, terminating %v", err, b.Err(), b.Terminating())
			}
			op, term := b.leave()
			if b.Err() == nil || b.Terminating() {
				t.Fatalf("behind the Terminate: error %v, terminating %v", b.Err(), b.Terminating())
			}
			if op != rdmap.Terminate || len(term) < 4 {
				t.Fatalf("%v %x instead of a Terminate", op, term)
			}
			got := fmt.Sprintf("%d/%d/%02x ", term[0]>>4, term[0]&15, term[1])
			for i, flag := range []string{"M", "D", "R"} {
				if term[2]&(0x80>>i) != 0 {
					got += flag
				}
			}
			if got != c.want {
				t.Fatalf("Terminate %s (%x), want %s", got, term, c.want)
			}
			if term[2]&0x1f != 0 || term[3] != 0 {
				t.Errorf("reserved bits %x (RDMAP-027)", term[2:4])
			}
			var head [ddp.UntaggedHeader]byte
			n := c.h.Put(head[:])
			size := 6 + n
			if int(binary.BigEndian.Uint16(term[4:])) != len(c.payload) || hex.EncodeToString(term[6:size]) != hex.EncodeToString(head[:n]) {
				t.Errorf("length and header %x, want %x %x", term[4:size], len(c.payload), head[:n])
			}
			if strings.HasSuffix(c.want, "R") {
				if hex.EncodeToString(term[size:]) != hex.EncodeToString(c.payload) {
					t.Errorf("request %x, want %x", term[size:], c.payload)
				}
				size += 28
			}
			if len(term) != size {
				t.Errorf("%d bytes, want %d", len(term), size)
			}
			if op, _ := b.leave(); op != 0xff {
				t.Errorf("%v after the Terminate (RDMAP-056)", op)
			}
			if b.arrive(write(stag, 0), words(0x55555555)) == nil {
				t.Error("a Write is placed after the fault")
			}
			for _, mem := range [][]byte{m, other, third} {
				b.want("memory", mem, make([]byte, 64))
			}
			b.End(nil)
			var e *rdmap.TerminateError
			if l := b.sent.list; len(l) != 1 || l[0].ID != work || !errors.Is(l[0].Err, rdmap.ErrFlushed) || !errors.As(l[0].Err, &e) || e.Remote {
				t.Errorf("requests completed %+v", l)
			}
			if l := b.received.list; len(l) != 1 || !errors.Is(l[0].Err, rdmap.ErrFlushed) {
				t.Errorf("receives completed %+v", l)
			}
			if err := b.Post(&rdmap.Work{}); err == nil {
				t.Error("a request is taken after the end")
			}
		})
	}
}

// RDMAPX-003, COMMIT-004, 006, 007: what was not agreed on is no opcode.
func TestExtensionsNotAgreed(t *testing.T) {
	for _, op := range []byte{0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f} {
		p := newPair(t, world{})
		if err := p.b.arrive(untagged(op, 1, 1), nil); err != error(ddp.OperationOpcode) {
			t.Errorf("%#x: %v", op, err)
		}
	}
	p := newPair(t, world{})
	p.b.expose(7<<8, 8, rdmap.AccessWrite)
	h := write(7<<8, 0)
	h.Control |= 0x30 // RDMAP-022: reserved bits are ignored
	if err := p.b.arrive(h, words(1)); err != nil {
		t.Errorf("a Write with reserved bits: %v", err)
	}
	// RDMAPX-005: each extension is a switch of its own.
	for control, needs := range map[byte]rdmap.Extensions{0x48: rdmap.Immediates, 0x49: rdmap.Immediates, 0x4a: rdmap.Atomics, 0x4b: rdmap.Atomics,
		0x4c: rdmap.Commit, 0x4d: rdmap.Commit, 0x4e: rdmap.Commit, 0x4f: rdmap.Commit} {
		for e := range everything + 1 {
			q := newPair(t, world{cfg: rdmap.Config{Extensions: e}})
			h := untagged(control, 7, 1) // no queue of anything: what is known has another fault
			if known := q.b.arrive(h, nil) == error(ddp.UntaggedQN); known != (e&needs != 0) {
				t.Errorf("%#x with the extensions %03b: known %v", control, e, known)
			}
		}
	}
	for _, op := range []rdmap.Op{rdmap.OpFetchAdd, rdmap.OpCompareSwap, rdmap.OpImmediate, rdmap.OpFlush, rdmap.OpVerify, rdmap.OpAtomicWrite} {
		if err := p.a.Post(&rdmap.Work{Op: op, Global: true}); !errors.Is(err, rdmap.ErrNotAgreed) {
			t.Errorf("%v: %v", op, err)
		}
	}
}

// RDMAP-081: more requests than were agreed on end the stream.
func TestTooManyReads(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{IRD: 3}})
	p.b.expose(7<<8, 8, rdmap.AccessRead)
	for i := range uint32(4) {
		err := p.b.arrive(untagged(0x41, 1, i+1), words(1, uint64(0), 8, 7<<8, uint64(0)))
		if (err != nil) != (i == 3) || i == 3 && err != error(ddp.OperationStream) {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
}

// RDMAP-047: no receive is posted. A later one does not help.
func TestNoReceive(t *testing.T) {
	p := newPair(t, world{})
	if err := p.b.arrive(untagged(0x43, 0, 1), words(1)); err != error(ddp.UntaggedNoBuffer) {
		t.Fatal(err)
	}
	if err := p.b.PostReceive(rdmap.Receive{}); err == nil {
		t.Error("a receive is taken after the end")
	}
}

// RDMAP-044, 045: an answer goes where it was asked for, and nowhere else.
func TestWrongAnswers(t *testing.T) {
	answer := func(stag uint32, to uint64, last bool) ddp.Header {
		return ddp.Header{Tagged: true, Last: last, Control: 0x42, STag: stag, TO: to}
	}
	for _, c := range []struct {
		name  string
		steps []ddp.Header
		n     int
		want  error
	}{
		{"right", []ddp.Header{answer(0x42, 0, true)}, 40, nil},
		{"in pieces", []ddp.Header{answer(0x42, 0, false), answer(0x42, 20, true)}, 20, nil},
		{"another STag", []ddp.Header{answer(0x43, 0, true)}, 40, ddp.TaggedSTag},
		{"another offset", []ddp.Header{answer(0x42, 1, true)}, 39, ddp.TaggedBounds},
		{"an offset before it", []ddp.Header{answer(0x42, 1<<64-1, true)}, 40, ddp.TaggedBounds},
		{"an offset after it", []ddp.Header{answer(0x42, 41, true)}, 0, ddp.TaggedBounds},
		{"an offset of the next Read", []ddp.Header{answer(0x42, 1<<32, true)}, 40, ddp.TaggedBounds},
		{"too long", []ddp.Header{answer(0x42, 0, true)}, 41, ddp.TaggedBounds},
		{"too long in pieces", []ddp.Header{answer(0x42, 0, false), answer(0x42, 39, true)}, 39, ddp.TaggedBounds},
		{"too short", []ddp.Header{answer(0x42, 0, true)}, 39, ddp.TaggedBounds},
		{"an Atomic Response", []ddp.Header{untagged(0x4b, 3, 1)}, 12, ddp.OperationOpcode},
		{"a Flush Response", []ddp.Header{untagged(0x4d, 3, 1)}, 0, ddp.OperationOpcode},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
			buf := make([]byte, 100)
			id := p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: buf[:40:40], STag: 7 << 8})
			p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 40), STag: 7 << 8}) // is not due (RDMAP-076)
			p.a.leave()
			p.a.leave()
			var err error
			for _, h := range c.steps {
				if err == nil {
					err = p.a.arrive(h, pattern(1, c.n))
				}
			}
			if err != c.want {
				t.Fatalf("%v, want %v", err, c.want)
			}
			p.a.want("memory behind the buffer", buf[40:], make([]byte, 60))
			if c.want == nil {
				p.a.wantSent(id)
			} else if len(p.a.sent.list) != 0 {
				t.Errorf("completed %+v (RDMAP-009)", p.a.sent.list)
			}
		})
	}
}

// RDMAPX-025: the identifier of the request comes back.
func TestWrongAtomicResponse(t *testing.T) {
	for _, c := range []struct {
		h    ddp.Header
		b    []byte
		want error
	}{
		{untagged(0x4b, 3, 1), words(1, uint64(5)), nil},
		{untagged(0x4b, 3, 1), words(2, uint64(5)), ddp.OperationStream},
		{untagged(0x4b, 3, 2), words(1, uint64(5)), ddp.UntaggedMSN},
		{untagged(0x4b, 3, 1), words(1, 5), ddp.OperationStream},
		{untagged(0x4d, 3, 1), nil, ddp.OperationOpcode},
		{ddp.Header{Tagged: true, Last: true, Control: 0x42}, nil, ddp.OperationOpcode},
	} {
		p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
		p.a.post(rdmap.Work{Op: rdmap.OpFetchAdd, STag: 7 << 8})
		p.a.leave()
		if err := p.a.arrive(c.h, c.b); err != c.want {
			t.Errorf("%+v %x: %v, want %v", c.h, c.b, err, c.want)
		}
	}
}

// RDMAP-053, 066: a Terminate needs no receive. The bit orders of the RFC and of siw are understood; whatever a Terminate says, the stream ends.
func TestTerminateFromThePeer(t *testing.T) {
	for _, c := range []struct {
		wire string
		want ddp.Fault
		head bool
	}{
		{"1101c000" + "0013" + "c140000001000000000000002000", ddp.TaggedBounds, true},
		{"1101dfff" + "0013" + "c140000001000000000000002000", ddp.TaggedBounds, true}, // RDMAP-027: reserved bits
		{"11010300" + "0013" + "c140000001000000000000002000", ddp.TaggedBounds, true},
		{"1203c000" + "0004" + "414300000000000000000000000900000000", ddp.UntaggedMSN, true},
		{"21030300" + "0004" + "414300000000000000000000000900000000", ddp.UntaggedMSN, true},
		{"0100e000" + "0000" + "414100000000000000010000000100000000" + strings.Repeat("00", 28), ddp.ProtectionSTag, true},
		{"10000700" + "0000" + "414100000000000000010000000100000000" + strings.Repeat("00", 28), ddp.ProtectionSTag, true},
		{"20020000", ddp.Checksum, false},
		{"02020000", ddp.Checksum, false},
		{"20050000", ddp.OperationVersion, false}, // siw's: LocalMPA is over once messages flow
		{"20060000", ddp.OperationOpcode, false},
		{"02050000", ddp.OperationVersion, false},
		{"00000000", ddp.Catastrophic, false},
		{"00050000", ddp.NewFault(0, 0, 5), false}, // any code
		{"0206", ddp.OperationUnspecified, false},
		{"", ddp.OperationUnspecified, false},
		{"1101c000", ddp.TaggedBounds, false},
		{"1101c0000013c1", ddp.TaggedBounds, false},
		{"ffffffff" + strings.Repeat("ff", 48), ddp.NewFault(15, 15, 255), true},
	} {
		b, err := hex.DecodeString(c.wire)
		if err != nil {
			t.Fatal(err)
		}
		p := newPair(t, world{})
		work := p.a.post(rdmap.Work{Op: rdmap.OpSend})
		err = p.a.arrive(untagged(0x47, 2, 1), b)
		var e *rdmap.TerminateError
		if !errors.As(err, &e) || e.Fault != c.want || !e.Remote || e.HasHeader != c.head || !errors.Is(err, c.want) {
			t.Errorf("%s: %+v (%v), want %v", c.wire, e, err, c.want)
		}
		if op, _ := p.a.leave(); op != 0xff {
			t.Errorf("%s: answered with %v (RDMAP-058)", c.wire, op)
		}
		p.a.End(errors.New("connection reset"))
		if l := p.a.sent.list; len(l) != 1 || l[0].ID != work || !errors.Is(l[0].Err, c.want) {
			t.Errorf("%s: completed %+v", c.wire, l)
		}
	}
	p := newPair(t, world{})
	if err := p.b.arrive(untagged(0x47, 2, 1), []byte{0x20, 6, 0, 0}); err != nil && !errors.Is(err, ddp.NoReads) {
		t.Errorf("from an initiator that read our reply only: %v, want %v", err, ddp.NoReads)
	}
	if err := newPair(t, world{}).a.arrive(untagged(0x47, 2, 1), make([]byte, 53)); err == nil {
		t.Error("a Terminate longer than any is taken")
	}
}

// RDMAP-054, 058: a peer that gives a message up half-way tells why, and is understood.
func TestTerminateInsideAMessage(t *testing.T) {
	for name, begin := range map[string]ddp.Header{"Send": {Control: 0x43, MSN: 1}, "Read Request": {Control: 0x41, QN: 1, MSN: 1}, "Write": {Tagged: true, Control: 0x40, STag: 7 << 8}} {
		p := newPair(t, world{})
		p.b.expose(7<<8, 100, rdmap.AccessWrite)
		p.b.receive(make([]byte, 100))
		if err := p.b.arrive(begin, make([]byte, 20)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := p.b.arrive(untagged(0x47, 2, 1), []byte{0, 0, 0, 0})
		var e *rdmap.TerminateError
		if !errors.As(err, &e) || !e.Remote || e.Fault != ddp.Catastrophic {
			t.Errorf("a Terminate inside a %s: %v", name, err)
		}
		if op, _ := p.b.leave(); op != 0xff {
			t.Errorf("a Terminate inside a %s is answered with %v", name, op)
		}
		p.b.End(nil)
		if l := p.b.received.list; len(l) != 1 || !errors.Is(l[0].Err, ddp.Catastrophic) {
			t.Errorf("a Terminate inside a %s: received %+v (RDMAP-009)", name, l)
		}
	}
}

// TestTerminateOfSetUp checks that a Terminate which answers nothing but this side's reply is about the set-up, in siw's
// order of bits or in that of RFC 5040, and that later one is not (S3).
func TestTerminateOfSetUp(t *testing.T) {
	for wire, want := range map[string][2]ddp.Fault{ // during the set-up, and after it
		"02050000": {ddp.LocalMPA, ddp.OperationVersion},
		"02060000": {ddp.NoReads, ddp.OperationOpcode}, // as siw sends it
		"02070000": {ddp.NoReadyFrame, ddp.OperationStream},
		"20060000": {ddp.NoReads, ddp.OperationOpcode}, // as RFC 6581 has it
		"20070000": {ddp.NoReadyFrame, ddp.OperationStream},
		"20040000": {ddp.SetUp, ddp.SetUp},
		"00000000": {ddp.Catastrophic, ddp.Catastrophic},
	} {
		b, err := hex.DecodeString(wire)
		if err != nil {
			t.Fatal(err)
		}
		for i, setUp := range []bool{true, false} {
			if e := rdmap.ParseTerminate(b, setUp); e.Fault != want[i] {
				t.Errorf("%s, set-up %v: %v, want %v", wire, setUp, e.Fault, want[i])
			}
		}
		p := newPair(t, world{})
		err = p.b.arrive(untagged(0x47, 2, 1), b) // the responder, which has only replied
		if !errors.Is(err, want[0]) {
			t.Errorf("%s: the responder hears %v, want %v", wire, err, want[0])
		}
	}
}

// TestCatastrophicOfAnyCode checks that a local catastrophic error of RDMAP is one whatever its code, and that codes of other
// kinds differ (S4).
func TestCatastrophicOfAnyCode(t *testing.T) {
	for code := range 256 {
		f := ddp.NewFault(0, 0, uint8(code))
		if !f.Known() || !errors.Is(f, ddp.Catastrophic) || !errors.Is(ddp.Catastrophic, f) || !strings.HasPrefix(f.Error(), "RDMAP: local catastrophic error (0/0/") {
			t.Errorf("code %#x: %v, known %v", code, f, f.Known())
		}
	}
	for _, f := range []ddp.Fault{ddp.LocalDDP, ddp.LocalMPA, ddp.OperationStream, ddp.ProtectionSTag} {
		if errors.Is(f, ddp.Catastrophic) || errors.Is(f, ddp.NewFault(f.Layer(), f.Type(), 0x77)) {
			t.Errorf("%v is taken for another", f)
		}
	}
}

// RDMAP-031, 089, MPA-008: a fault of the carrier, with no header.
func TestFailOfTheCarrier(t *testing.T) {
	p := newPair(t, world{})
	p.a.Fail(ddp.Checksum, nil)
	p.a.Fail(ddp.Lost, nil) // RDMAP-092: the first one counts
	if op, b := p.a.leave(); op != rdmap.Terminate || hex.EncodeToString(b) != "20020000" {
		t.Errorf("%v %x", op, b)
	}
}

// RDMAP-071, 084: at the end each request completes once, and only what was done is done.
func TestEndCompletesEachOnce(t *testing.T) {
	p := newPair(t, world{})
	p.b.expose(7<<8, 100, rdmap.AccessRead, rdmap.AccessWrite)
	w1 := p.a.post(rdmap.Work{Op: rdmap.OpWrite, Data: pattern(1, 10), STag: 7 << 8})
	p.settle()
	r := p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 10), STag: 7 << 8})
	w2 := p.a.post(rdmap.Work{Op: rdmap.OpWrite, Silent: true, Data: pattern(1, 10), STag: 7 << 8})
	p.a.leave()
	p.a.leave()
	w3 := p.a.post(rdmap.Work{Op: rdmap.OpSend})
	cause := errors.New("connection reset by peer")
	p.a.End(cause)
	p.a.End(nil)
	p.a.Sent(0)
	l := p.a.sent.list
	if len(l) != 4 || l[0].ID != w1 || l[0].Err != nil {
		t.Fatalf("completed %+v", l)
	}
	for i, id := range []uint64{r, w2, w3} {
		if c := l[i+1]; c.ID != id || !errors.Is(c.Err, rdmap.ErrFlushed) || !errors.Is(c.Err, cause) {
			t.Errorf("completed %+v, want %d flushed", c, id)
		}
	}
}
