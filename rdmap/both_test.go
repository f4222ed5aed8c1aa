package rdmap_test

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// RDMAP-015 to 017, 033, 054, 066, 087, 088, RDMAPX-042: whoever finds a fault knows it, and so does whose fault it is. Nothing of the request is
// done, and everything that was posted fails with the reason.
func TestBothSidesHear(t *testing.T) {
	for _, c := range []struct {
		name string
		w    rdmap.Work
		want ddp.Fault
	}{
		{"Send without a receive", rdmap.Work{Op: rdmap.OpSend, Data: pattern(1, 3)}, ddp.UntaggedNoBuffer},
		{"Immediate without a receive", rdmap.Work{Op: rdmap.OpImmediate}, ddp.UntaggedNoBuffer},
		{"Write beyond", rdmap.Work{Op: rdmap.OpWrite, Data: pattern(1, 3), STag: 7 << 8, TO: 62}, ddp.TaggedBounds},
		{"Read of an unknown STag", rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 3), STag: 8 << 8}, ddp.ProtectionSTag},
		{"FetchAdd without the right", rdmap.Work{Op: rdmap.OpFetchAdd, STag: 7 << 8}, ddp.ProtectionRights},
		{"Flush without the right", rdmap.Work{Op: rdmap.OpFlush, Global: true, STag: 7 << 8}, ddp.ProtectionRights},
	} {
		each(t, world{cfg: rdmap.Config{Extensions: everything}}, func(t *testing.T, p *pair) {
			m := p.b.expose(7<<8, 64, rdmap.AccessWrite)
			p.a.receive(make([]byte, 8))
			p.a.post(c.w)
			later := p.a.post(rdmap.Work{Op: rdmap.OpSend})
			errA, errB := p.run()
			var mine, theirs *rdmap.TerminateError
			if !errors.As(errA, &mine) || !mine.Remote || mine.Fault != c.want || !errors.Is(errB, c.want) {
				t.Fatalf("%s: one side hears %v, the other %v, want %v", c.name, errA, errB, c.want)
			}
			if !errors.As(p.b.Err(), &theirs) || theirs.Remote || theirs.Fault != c.want {
				t.Errorf("%s: who found it knows %v", c.name, p.b.Err())
			}
			p.a.End(nil)
			p.b.End(nil)
			flushed := func(c rdmap.Completion, want error) bool {
				return errors.Is(c.Err, rdmap.ErrFlushed) && errors.Is(c.Err, want) && c.Length == 0
			}
			if l := p.a.received.list; len(l) != 1 || l[0].Op != rdmap.OpReceive || !flushed(l[0], c.want) {
				t.Errorf("%s: received %+v", c.name, l)
			}
			// A Write or Send is done when it has left.
			l := p.a.sent.list
			if len(l) != 2 || l[1].ID != later || answered(c.w.Op) && !flushed(l[0], c.want) || l[0].Err != nil && !flushed(l[0], c.want) || l[1].Err != nil && !flushed(l[1], c.want) {
				t.Errorf("%s: completed %+v", c.name, l)
			}
			p.b.want("memory", m, make([]byte, 64))
		})
	}
}

func answered(o rdmap.Op) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return k.w.Op == o && k.answered })
}

// RDMAP-004, 012: what ends one stream is nothing to another one, which counts, and knows operations, by itself.
func TestStreamsAreIndependent(t *testing.T) {
	p, q := newPair(t, world{}), newPair(t, world{cfg: rdmap.Config{Extensions: rdmap.Immediates}})
	shared := make(memory)
	p.b.mem, q.b.mem = shared, shared
	for i := range 3 {
		q.b.receive(make([]byte, 10))
		q.a.post(rdmap.Work{Op: rdmap.OpSend, Data: pattern(i, 10)})
		q.settle()
		q.b.wantReceived(10)
	}
	p.a.post(rdmap.Work{Op: rdmap.OpSend}) // there is no receive
	if _, err := p.run(); !errors.Is(err, ddp.UntaggedNoBuffer) {
		t.Fatal(err)
	}
	if err := p.a.Post(&rdmap.Work{Op: rdmap.OpImmediate}); err == nil {
		t.Error("a request is taken after the end")
	}
	q.b.receive(nil)
	q.a.post(rdmap.Work{Op: rdmap.OpImmediate})
	q.settle()
	if c := q.b.wantReceived(8); !c.Immediate {
		t.Errorf("received %+v", c)
	}
	if got := q.a.wire[3][10:14]; hex.EncodeToString(got) != "00000004" {
		t.Errorf("the fourth message has the number %x", got)
	}
}

// broken is memory that is in no state to be asked.
type broken struct{ memory }

func (broken) Find(rdmap.Access, uint32, uint64, uint32) (ddp.Span, error) {
	return ddp.Span{}, ddp.Catastrophic
}

// RDMAP-029: a local catastrophic error comes without headers, whatever message met it.
func TestLocalCatastrophe(t *testing.T) {
	for _, h := range []ddp.Header{write(7<<8, 0), untagged(0x41, 1, 1)} {
		s := &side{t: t, name: "b"}
		s.Stream = rdmap.New(rdmap.Config{IRD: 1, Memory: broken{}, Sent: &s.sent, Received: &s.received})
		payload := words(1, uint64(0), 8, 7<<8, uint64(0))
		if err := s.arrive(h, payload); err != error(ddp.Catastrophic) {
			t.Errorf("%v", err)
		}
		if op, b := s.leave(); op != rdmap.Terminate || hex.EncodeToString(b) != "00000000" {
			t.Errorf("%v %x", op, b)
		}
	}
}

// DDP-004: numbers of messages go on from 2^32-1 with 0, on each queue.
func TestNumbersWrap(t *testing.T) {
	each(t, world{cfg: rdmap.Config{Extensions: everything}}, func(t *testing.T, p *pair) {
		p.a.Age(1<<32 - 3)
		p.b.Age(1<<32 - 3)
		p.b.expose(7<<8, 64, rdmap.AccessRead, rdmap.AccessAtomic)
		for i := range 6 {
			p.b.receive(make([]byte, 10))
			data := make([]byte, 4)
			ids := []uint64{
				p.a.post(rdmap.Work{Op: rdmap.OpSend, Data: pattern(i, 10)}),
				p.a.post(rdmap.Work{Op: rdmap.OpFetchAdd, STag: 7 << 8, TO: 8, Operand: 1}),
				p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: data, STag: 7 << 8, TO: 8}),
			}
			p.settle()
			if l := p.a.wantSent(ids...); l[1].Old != uint64(i) {
				t.Errorf("FetchAdd found %d, want %d", l[1].Old, i)
			}
			p.b.wantReceived(10)
			if want := uint32(1<<32-2) + uint32(i); hex.EncodeToString(p.a.wire[3*i][10:14]) != hex.EncodeToString(words(int(want))) {
				t.Errorf("Send %d has the number %x", i, p.a.wire[3*i][10:14])
			}
		}
	})
}

// COMMIT-009: without an identifier, answers of the commit extensions are found by their number alone, and are of the kind that was asked for.
func TestWrongCommitAnswers(t *testing.T) {
	for _, c := range []struct {
		w    rdmap.Work
		h    ddp.Header
		n    int
		want error
	}{
		{rdmap.Work{Op: rdmap.OpFlush, Global: true}, untagged(0x4d, 3, 1), 0, nil},
		{rdmap.Work{Op: rdmap.OpFlush, Global: true}, untagged(0x4d, 3, 2), 0, ddp.UntaggedMSN},
		{rdmap.Work{Op: rdmap.OpFlush, Global: true}, untagged(0x4d, 3, 1), 1, ddp.OperationStream},
		{rdmap.Work{Op: rdmap.OpFlush, Global: true}, untagged(0x4f, 3, 1), 4, ddp.OperationOpcode},
		{rdmap.Work{Op: rdmap.OpFlush, Global: true}, untagged(0x51, 3, 1), 0, ddp.OperationOpcode},
		{rdmap.Work{Op: rdmap.OpVerify}, untagged(0x4f, 3, 1), 32, nil},
		{rdmap.Work{Op: rdmap.OpVerify}, untagged(0x4f, 3, 1), 0, ddp.OperationStream},
		{rdmap.Work{Op: rdmap.OpVerify}, untagged(0x4f, 3, 1), 33, ddp.UntaggedTooLong},
		{rdmap.Work{Op: rdmap.OpVerify, Hash: make([]byte, 4)}, untagged(0x4f, 3, 1), 32, ddp.OperationStream},
		{rdmap.Work{Op: rdmap.OpAtomicWrite}, untagged(0x51, 3, 1), 0, nil},
		{rdmap.Work{Op: rdmap.OpAtomicWrite}, untagged(0x51, 3, 1), 8, ddp.OperationStream},
		{rdmap.Work{Op: rdmap.OpAtomicWrite}, untagged(0x4b, 3, 1), 12, ddp.OperationOpcode},
	} {
		p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
		id := p.a.post(c.w)
		p.a.leave()
		if err := p.a.arrive(c.h, make([]byte, c.n)); err != c.want {
			t.Errorf("%v answered by %+v with %d bytes: %v, want %v", c.w.Op, c.h, c.n, err, c.want)
		}
		if c.want == nil {
			p.a.wantSent(id)
		}
	}
}

// RDMAP-042, 079, 081, RDMAPX-019, 026, 027, COMMIT-003: Reads, atomics and the rest share one limit, of this side and of the peer.
func TestOneLimitForAllRequests(t *testing.T) {
	ops := []rdmap.Op{rdmap.OpRead, rdmap.OpFetchAdd, rdmap.OpFlush, rdmap.OpVerify, rdmap.OpAtomicWrite, rdmap.OpCompareSwap}
	p := newPair(t, world{cfg: rdmap.Config{Extensions: everything, ORD: 3, IRD: 3}})
	p.b.expose(7<<8, 64, rdmap.AccessRead, rdmap.AccessWrite, rdmap.AccessAtomic, rdmap.AccessFlushGlobal, rdmap.AccessVerify)
	for _, op := range ops {
		p.a.post(rdmap.Work{Op: op, Data: make([]byte, 8), STag: 7 << 8, Length: 8, Global: true})
	}
	n := 0
	for p.a.Next(new(ddp.Message)) {
		n++
	}
	if n != 3 {
		t.Errorf("%d requests are on their way, and 3 may be", n)
	}
	payload := map[byte][]byte{
		0x41: words(1, uint64(0), 8, 7<<8, uint64(0)), 0x4a: words(0, 1, 7<<8, uint64(0), uint64(0), uint64(0), uint64(0), uint64(0)),
		0x4c: words(7<<8, 8, uint64(0), 2), 0x4e: words(7<<8, 8, uint64(0)), 0x50: words(7<<8, 8, uint64(0), uint64(0)),
	}
	for control, b := range payload {
		q := newPair(t, world{cfg: rdmap.Config{Extensions: everything, IRD: 3}})
		q.b.mem[7<<8] = p.b.mem[7<<8]
		msn := uint32(0)
		for _, first := range []byte{0x4c, 0x41, 0x4a} {
			msn++
			if err := q.b.arrive(untagged(first, 1, msn), payload[first]); err != nil {
				t.Fatalf("request %d of 3: %v", msn, err)
			}
		}
		if err := q.b.arrive(untagged(control, 1, 4), b); err != error(ddp.OperationStream) {
			t.Errorf("%#x is the fourth request: %v", control, err)
		}
	}
}
