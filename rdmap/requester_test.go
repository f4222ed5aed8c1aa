package rdmap_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// kind is one way to ask for something. The numbers of RFC 5040, RFC 7306 and the draft are written here once more, so
// that a rule of the package that leaves one kind out is seen.
type kind struct {
	name     string
	w        rdmap.Work
	opcode   byte             // as it leaves, with the version
	answered bool             // the peer answers it
	needs    rdmap.Extensions // what both sides have to agree on
}

// Memory that the kinds use.
const (
	kindSTag  = 7 << 8  // has every right at the peer
	kindGone  = 20 << 8 // of the peer, is withdrawn by Sends
	kindOwn   = 30 << 8 // of this side, is withdrawn by OpInvalidate
	kindAgain = 1 << 8  // between what the first of two withdraws and what the second does
)

var kinds = func() []kind {
	list := []kind{
		{"Send", rdmap.Work{Op: rdmap.OpSend, Data: pattern(1, 5)}, 0x43, false, 0},
		{"Send with SE", rdmap.Work{Op: rdmap.OpSend, Data: pattern(2, 5), Solicited: true}, 0x45, false, 0},
		{"Send with Invalidate", rdmap.Work{Op: rdmap.OpSend, Data: pattern(3, 5), Invalidating: true}, 0x44, false, 0},
		{"Send with SE and Invalidate", rdmap.Work{Op: rdmap.OpSend, Data: pattern(4, 5), Solicited: true, Invalidating: true}, 0x46, false, 0},
		{"Immediate", rdmap.Work{Op: rdmap.OpImmediate, Payload: [8]byte{1}}, 0x48, false, rdmap.Immediates},
		{"Immediate with SE", rdmap.Work{Op: rdmap.OpImmediate, Payload: [8]byte{2}, Solicited: true}, 0x49, false, rdmap.Immediates},
		{"Write", rdmap.Work{Op: rdmap.OpWrite, STag: kindSTag, Data: pattern(5, 8)}, 0x40, false, 0},
		{"Write of nothing", rdmap.Work{Op: rdmap.OpWrite, STag: kindSTag}, 0x40, false, 0},
		{"Read", rdmap.Work{Op: rdmap.OpRead, STag: kindSTag, Data: make([]byte, 8)}, 0x41, true, 0},
		{"Read of nothing", rdmap.Work{Op: rdmap.OpRead, STag: kindSTag}, 0x41, true, 0},
		{"FetchAdd", rdmap.Work{Op: rdmap.OpFetchAdd, STag: kindSTag, Operand: 1}, 0x4a, true, rdmap.Atomics},
		{"CompareSwap", rdmap.Work{Op: rdmap.OpCompareSwap, STag: kindSTag, Compare: 1}, 0x4a, true, rdmap.Atomics},
		{"Flush to storage", rdmap.Work{Op: rdmap.OpFlush, STag: kindSTag, Length: 8, Persistent: true}, 0x4c, true, rdmap.Commit},
		{"Flush to all", rdmap.Work{Op: rdmap.OpFlush, STag: kindSTag, Length: 8, Global: true}, 0x4c, true, rdmap.Commit},
		{"Verify", rdmap.Work{Op: rdmap.OpVerify, STag: kindSTag, Length: 8}, 0x4e, true, rdmap.Commit},
		{"Atomic Write", rdmap.Work{Op: rdmap.OpAtomicWrite, STag: kindSTag, TO: 16, Payload: [8]byte{3}}, 0x50, true, rdmap.Commit},
		{"Invalidate", rdmap.Work{Op: rdmap.OpInvalidate, Invalidate: kindOwn}, 0, false, 0},
	}
	for i := range list {
		if list[i].w.Invalidating {
			list[i].w.Invalidate = kindGone
		}
	}
	return list
}()

// twoKinds runs a test with each kind after each other one.
func twoKinds(t *testing.T, test func(t *testing.T, first, second kind)) {
	for _, first := range kinds {
		for _, second := range kinds {
			second.w.Invalidate += kindAgain
			t.Run(fmt.Sprint(second.name, " after ", first.name), func(t *testing.T) { test(t, first, second) })
		}
	}
}

// exposeAll is memory for all kinds, at both ends of a pair.
func (p *pair) exposeAll() {
	for i := range uint32(2) {
		p.b.expose(kindGone+i*kindAgain, 8)
		p.a.expose(kindOwn+i*kindAgain, 8)
	}
	p.b.expose(kindSTag, 64, rdmap.AccessWrite, rdmap.AccessRead, rdmap.AccessAtomic, rdmap.AccessFlushPersistent, rdmap.AccessFlushGlobal, rdmap.AccessVerify)
	for range 8 {
		p.b.receive(make([]byte, 8))
	}
}

// work settles a pair whose peer carries out what takes its time.
func (p *pair) work() {
	p.t.Helper()
	for again := true; again; {
		p.settle()
		var j rdmap.Job
		if again = p.b.Job(&j); again {
			p.b.JobDone([]byte{1, 2, 3, 4}, nil)
		}
	}
}

// left are the opcodes of what a side has sent.
func (s *side) left() (all []byte) {
	for _, b := range s.wire {
		all = append(all, b[1])
	}
	return all
}

// TestFenceOfEachKind (RDMAP-077): a fenced request of each kind waits for the answer to one of each kind, and so does
// what is posted after it; a request that is not answered holds nothing back, and without a fence nothing waits.
func TestFenceOfEachKind(t *testing.T) {
	twoKinds(t, func(t *testing.T, first, held kind) {
		for _, fenced := range []bool{false, true} {
			p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
			p.exposeAll()
			w := held.w
			w.Fence = fenced
			ids := []uint64{p.a.post(first.w), p.a.post(w), p.a.post(rdmap.Work{Op: rdmap.OpSend})}
			for p.take(p.a) {
			}
			var want []byte
			if first.opcode != 0 {
				want = append(want, first.opcode)
			}
			// S6: a Read of nothing is outstanding with no other request.
			alone := first.answered && held.answered && (first.name == "Read of nothing" || held.name == "Read of nothing")
			waits := fenced && first.answered || alone
			if !waits {
				if held.opcode != 0 {
					want = append(want, held.opcode)
				}
				want = append(want, 0x43)
			}
			if got := p.a.left(); !slices.Equal(got, want) {
				t.Errorf("fenced %v: %x left, want %x", fenced, got, want)
			}
			if held.w.Op == rdmap.OpInvalidate && p.a.mem[w.Invalidate].withdrawn == waits {
				t.Errorf("fenced %v: withdrawn %v", fenced, !waits)
			}
			p.work()
			p.a.wantSent(ids...)
		}
	})
}

// TestFenceWaitsForAll (RDMAP-077): a fence waits for the last answer, not for the first.
func TestFenceWaitsForAll(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
	p.exposeAll()
	p.a.post(rdmap.Work{Op: rdmap.OpRead, STag: kindSTag, Data: make([]byte, 8)})
	p.a.post(rdmap.Work{Op: rdmap.OpFlush, STag: kindSTag, Length: 8, Global: true})
	p.a.post(rdmap.Work{Op: rdmap.OpWrite, STag: kindSTag, Data: pattern(1, 8), Fence: true})
	p.settle() // the Read is answered, the Flush is under way
	p.a.wantSent(1)
	if got := p.a.left(); !slices.Equal(got, []byte{0x41, 0x4c}) {
		t.Errorf("%x left before the Flush is answered", got)
	}
	p.work()
	p.a.wantSent(2, 3)
}

// TestLimitHoldsEachKindBack (RDMAP-079, RDMAPX-019, COMMIT-003): where one request may be outstanding, each kind that is answered
// holds each other one back, and none that is not.
func TestLimitHoldsEachKindBack(t *testing.T) {
	twoKinds(t, func(t *testing.T, first, second kind) {
		if first.opcode == 0 || second.opcode == 0 {
			return // nothing leaves
		}
		p := newPair(t, world{cfg: rdmap.Config{Extensions: everything, ORD: 1, IRD: 1}})
		p.exposeAll()
		ids := []uint64{p.a.post(first.w), p.a.post(second.w)}
		for p.take(p.a) {
		}
		want := []byte{first.opcode, second.opcode}
		if first.answered && second.answered {
			want = want[:1]
		}
		if got := p.a.left(); !slices.Equal(got, want) {
			t.Errorf("%x left, want %x", got, want)
		}
		p.work()
		p.a.wantSent(ids...)
	})
}

// TestEachKindNeedsItsExtension (RDMAPX-005, COMMIT-004): each kind is taken where its own extension is agreed on, and only there.
func TestEachKindNeedsItsExtension(t *testing.T) {
	for e := range everything + 1 {
		for _, k := range kinds {
			p := newPair(t, world{cfg: rdmap.Config{Extensions: e}})
			err := p.a.Post(&k.w)
			if agreed := k.needs&^e == 0; agreed && err != nil || !agreed && !errors.Is(err, rdmap.ErrNotAgreed) {
				t.Errorf("%s with %v: %v", k.name, e, err)
			}
			if err != nil && p.a.Next(new(ddp.Message)) {
				t.Errorf("%s with %v is refused, and leaves", k.name, e)
			}
		}
	}
}

// TestQueueHoldsAsMany: a send queue, and one of receives, holds as many requests as it was opened for, of any number.
func TestQueueHoldsAsMany(t *testing.T) {
	for size := 1; size < 20; size++ {
		var done done
		s := rdmap.New(rdmap.Config{Initiator: true, Sends: size, Receives: size, Memory: memory{}, Sent: &done, Received: &done})
		for i := range size + 1 {
			if room := s.Room(); room != size-i {
				t.Errorf("of %d: room for %d after %d", size, room, i)
			}
			full := i == size
			if err := s.Post(&rdmap.Work{Op: rdmap.OpSend}); errors.Is(err, rdmap.ErrFull) != full || !full && err != nil {
				t.Errorf("of %d: request %d: %v", size, i+1, err)
			}
			if err := s.PostReceive(rdmap.Receive{}); errors.Is(err, rdmap.ErrFull) != full || !full && err != nil {
				t.Errorf("of %d: receive %d: %v", size, i+1, err)
			}
		}
	}
}

// TestFieldsOfOthersAreIgnored (RDMAP-023, RDMAPX-006, 008, COMMIT-001): what a request leaves as does not depend on fields of Work that its kind
// does not know: no Immediate names an STag to withdraw.
func TestFieldsOfOthersAreIgnored(t *testing.T) {
	for _, k := range kinds {
		if k.opcode == 0 {
			continue
		}
		leaves := func(w rdmap.Work) (ddp.Message, []byte) {
			p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
			p.a.post(w)
			var m ddp.Message
			if !p.a.Next(&m) {
				t.Fatalf("%s does not leave", k.name)
			}
			b := append([]byte(nil), m.Inline[:m.InlineSize]...)
			for _, s := range m.Data {
				b = append(b, s.Bytes...)
			}
			return m, b
		}
		w := rdmap.Work{Op: k.w.Op, Silent: true, Solicited: true, Invalidating: true, Invalidate: 99 << 8, STag: 98 << 8, TO: 97, Length: 96, Operand: 95, Compare: 94,
			Mask: 93, CompareMask: 92, Payload: [8]byte{91}, Persistent: true, Global: true, Hash: []byte{90}}
		switch k.w.Op {
		case rdmap.OpSend:
			w.Solicited, w.Invalidating, w.Data = k.w.Solicited, k.w.Invalidating, k.w.Data
			if k.w.Invalidating {
				w.Invalidate = k.w.Invalidate
			}
		case rdmap.OpImmediate:
			w.Solicited, w.Payload, w.Data, w.More = k.w.Solicited, k.w.Payload, pattern(9, 9), [][]byte{pattern(8, 8)}
		case rdmap.OpWrite, rdmap.OpRead:
			w.STag, w.TO, w.Data = k.w.STag, k.w.TO, k.w.Data
		case rdmap.OpFetchAdd:
			w.STag, w.TO, w.Operand, w.Data = k.w.STag, k.w.TO, k.w.Operand, pattern(9, 9)
		case rdmap.OpCompareSwap:
			w.STag, w.TO, w.Operand, w.Compare, w.Data = k.w.STag, k.w.TO, k.w.Operand, k.w.Compare, pattern(9, 9)
		case rdmap.OpFlush:
			w.STag, w.TO, w.Length, w.Persistent, w.Global, w.Data = k.w.STag, k.w.TO, k.w.Length, k.w.Persistent, k.w.Global, pattern(9, 9)
		case rdmap.OpVerify:
			w.STag, w.TO, w.Length, w.Hash, w.Data = k.w.STag, k.w.TO, k.w.Length, k.w.Hash, pattern(9, 9)
		case rdmap.OpAtomicWrite:
			w.STag, w.TO, w.Payload, w.Data = k.w.STag, k.w.TO, k.w.Payload, pattern(9, 9)
		}
		m, b := leaves(w)
		plain, data := leaves(k.w)
		if m.Header != plain.Header || !slices.Equal(b, data) || m.Length != plain.Length || m.Control != k.opcode || m.Invalidate != 0 && !k.w.Invalidating {
			t.Errorf("%s leaves as %+v, %x, %d bytes\nwith other fields as %+v, %x, %d bytes", k.name, plain.Header, data, plain.Length, m.Header, b, m.Length)
		}
		if int(plain.Length) != len(data) {
			t.Errorf("%s has %d bytes, and says %d", k.name, len(data), plain.Length)
		}
	}
}
