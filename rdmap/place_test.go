package rdmap_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// TestTerminateInSegments (RDMAP-053): a Terminate that comes in segments, cut anywhere, says what it says in one.
func TestTerminateInSegments(t *testing.T) {
	for _, wire := range []string{
		"20020000",
		"1101c000" + "0013" + "c140000001000000000000002000",
		"0102e000" + "001c" + "414100000000000000010000000100000000" + strings.Repeat("05", 28),
	} {
		b, err := hex.DecodeString(wire)
		if err != nil {
			t.Fatal(err)
		}
		says := func(cuts ...int) rdmap.TerminateError {
			s := newPair(t, world{}).a
			var err error
			for i, from := range cuts {
				to := len(b)
				if i+1 < len(cuts) {
					to = cuts[i+1]
				}
				h := ddp.Header{Control: 0x47, QN: 2, MSN: 1, MO: uint32(from), Last: to == len(b)}
				if err = s.arrive(h, b[from:to]); (err == nil) == h.Last {
					t.Fatalf("%s: octets %d to %d of %v: %v", wire, from, to, cuts, err)
				}
			}
			var e *rdmap.TerminateError
			if !errors.As(err, &e) || !e.Remote {
				t.Fatalf("%s in %v: %v", wire, cuts, err)
			}
			return *e
		}
		whole, each := says(0), []int(nil)
		for cut := range len(b) {
			each = append(each, cut)
			if cut == 0 {
				continue
			}
			if got := says(0, cut); got != whole {
				t.Errorf("%s, cut at %d: %+v, want %+v", wire, cut, got, whole)
			}
		}
		if got := says(each...); got != whole {
			t.Errorf("%s, octet by octet: %+v, want %+v", wire, got, whole)
		}
	}
}

// asked is memory that counts how often it is looked at.
type asked struct {
	memory
	n *int
}

func (a asked) Find(how rdmap.Access, stag uint32, to uint64, n uint32) (ddp.Span, error) {
	*a.n++
	return a.memory.Find(how, stag, to, n)
}

// TestNothingIsNotLookedUp (RDMAP-040, DDP-009): of a Write or Read of nothing neither STag nor offset are looked at, whatever they
// are, and it is as good as any; of a Flush or Verify of nothing they are (COMMIT-019, COMMIT-014).
func TestNothingIsNotLookedUp(t *testing.T) {
	for _, stag := range []int{0, 1, 0x42, 7 << 8, 7<<8 + 1, 8 << 8, 9 << 8, -1} {
		for _, to := range []uint64{0, 7, 8, 9, 1 << 63, 1<<64 - 1} {
			for _, c := range []struct {
				name   string
				h      ddp.Header
				b      []byte
				looked bool
			}{
				{"Write", ddp.Header{Tagged: true, Last: true, Control: 0x40, STag: uint32(stag), TO: to}, nil, false},
				{"Write, not the last segment", ddp.Header{Tagged: true, Control: 0x40, STag: uint32(stag), TO: to}, nil, false},
				{"Read", untagged(0x41, 1, 1), words(1, uint64(0), 0, stag, to), false},
				{"Flush", untagged(0x4c, 1, 1), words(stag, 0, to, 2), true},
				{"Verify", untagged(0x4e, 1, 1), words(stag, 0, to), true},
			} {
				n := 0
				m := memory{7 << 8: &area{bytes: make([]byte, 8), rights: []rdmap.Access{rdmap.AccessWrite, rdmap.AccessRead, rdmap.AccessFlushGlobal, rdmap.AccessVerify}},
					8 << 8: &area{bytes: make([]byte, 8)}, 9 << 8: &area{withdrawn: true}}
				s := &side{t: t, name: "b"}
				s.Stream = rdmap.New(rdmap.Config{Extensions: everything, IRD: 1, Memory: asked{m, &n}, Sent: &s.sent, Received: &s.received})
				err := s.arrive(c.h, c.b)
				if _, bad := m.Find(rdmap.AccessFlushGlobal, uint32(stag), to, 0); c.looked && n == 0 || !c.looked && n != 0 || (err != nil) != (c.looked && bad != nil) {
					t.Errorf("%s of nothing at STag %#x, offset %#x: %v, %d looks", c.name, uint32(stag), to, err, n)
				}
				if c.h.Control == 0x41 {
					if op, _ := s.leave(); op != rdmap.ReadResponse || n != 0 {
						t.Errorf("%s of nothing at STag %#x is answered with %v, %d looks", c.name, uint32(stag), op, n)
					}
				}
			}
		}
	}
}

// TestAnswersAreFoundByNumber (RDMAPX-025, COMMIT-009): of two requests of any kinds the answers may be placed in any order, and each is that of
// the request with its number; in order, the second cannot come first. One of another kind is refused.
func TestAnswersAreFoundByNumber(t *testing.T) {
	replies := map[byte]struct {
		control byte
		payload func(msn uint32) []byte
	}{
		0x4a: {0x4b, func(msn uint32) []byte { return words(int(msn), uint64(100+msn)) }},
		0x4c: {0x4d, func(uint32) []byte { return nil }},
		0x4e: {0x4f, func(msn uint32) []byte { return pattern(int(msn), 32) }},
		0x50: {0x51, func(uint32) []byte { return nil }},
	}
	twoKinds(t, func(t *testing.T, first, second kind) {
		if !first.answered || !second.answered || first.w.Op == rdmap.OpRead || second.w.Op == rdmap.OpRead {
			return
		}
		post := func(unordered bool) *pair {
			p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}, carrier: carrier{unordered: unordered}})
			p.a.post(first.w)
			p.a.post(second.w)
			p.a.leave()
			p.a.leave()
			return p
		}
		p, r := post(true), [3]ddp.Header{}
		for _, msn := range []uint32{2, 1} {
			reply := replies[map[uint32]kind{1: first, 2: second}[msn].opcode]
			b := reply.payload(msn)
			r[msn] = untagged(reply.control, 3, msn)
			span, err := p.a.Place(&r[msn], len(b))
			if err != nil {
				t.Fatalf("answer %d: %v", msn, err)
			}
			copy(span.Bytes, b)
		}
		for msn, k := range []kind{{}, first, second} {
			if msn == 0 {
				continue
			}
			b := replies[k.opcode].payload(uint32(msn))
			if err := p.a.Deliver(&r[msn], uint32(len(b))); err != nil {
				t.Fatalf("answer %d: %v", msn, err)
			}
			c := p.a.wantSent(uint64(msn))[0]
			if k.opcode == 0x4a && c.Old != uint64(100+msn) || k.opcode == 0x4e && string(c.Hash[:c.HashSize]) != string(b) {
				t.Errorf("answer %d is %+v", msn, c)
			}
		}
		for opcode, reply := range replies {
			for msn, k := range map[uint32]kind{1: first, 2: second} {
				want := error(nil)
				if opcode != k.opcode {
					want = ddp.OperationOpcode
				}
				h := untagged(reply.control, 3, msn)
				if _, err := post(true).a.Place(&h, 0); err != want {
					t.Errorf("%#x as answer %d: %v, want %v", reply.control, msn, err, want)
				}
			}
		}
		for _, msn := range []uint32{0, 2, 3} {
			if err := post(false).a.arrive(untagged(replies[second.opcode].control, 3, msn), nil); err != error(ddp.UntaggedMSN) {
				t.Errorf("answer %d comes first: %v", msn, err)
			}
		}
		late := untagged(replies[second.opcode].control, 3, 3)
		if _, err := post(true).a.Place(&late, 0); err != error(ddp.UntaggedNoBuffer) {
			t.Errorf("a third answer to two requests: %v", err)
		}
	})
}

// TestLimitOfThePeerIsHeld (RDMAP-081, RDMAPX-026, COMMIT-003): with an IRD of one, a second request of any kind ends the stream, whatever the
// first is.
func TestLimitOfThePeerIsHeld(t *testing.T) {
	for _, first := range questions {
		for _, second := range questions {
			t.Run(fmt.Sprint(second.name, " after ", first.name), func(t *testing.T) {
				p := newPair(t, world{cfg: rdmap.Config{Extensions: everything, IRD: 1}})
				p.exposeAll()
				if err := p.b.arrive(untagged(first.control, 1, 1), first.payload); err != nil {
					t.Fatal(err)
				}
				if err := p.b.arrive(untagged(second.control, 1, 2), second.payload); err != error(ddp.OperationStream) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}
