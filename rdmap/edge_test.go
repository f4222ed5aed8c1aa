package rdmap_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// RDMAP-070, 071: an answer may be here before the carrier says that the request is sent. The request completes
// when both are, as the carrier may still read its buffers; and what is behind it waits.
func TestAnsweredBeforeSent(t *testing.T) {
	p := newPair(t, world{})
	p.b.expose(7<<8, 10, rdmap.AccessRead, rdmap.AccessWrite)
	w := p.a.post(rdmap.Work{Op: rdmap.OpWrite, Data: pattern(1, 10), STag: 7 << 8})
	r := p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 10), STag: 7 << 8})
	var m ddp.Message
	p.a.Next(&m)
	p.a.Next(&m)
	if err := p.a.arrive(ddp.Header{Tagged: true, Last: true, Control: 0x42, STag: binary.BigEndian.Uint32(m.Inline[:]), TO: binary.BigEndian.Uint64(m.Inline[4:])}, pattern(1, 10)); err != nil {
		t.Fatal(err)
	}
	p.a.wantSent()
	p.a.Sent(1)
	p.a.wantSent(w)
	p.a.Sent(1)
	p.a.wantSent(r)
}

// RDMAP-081: the peer sees an answer, and asks anew, before the carrier says that it is sent; that is
// within the limit. A peer that asks without end is held back by what the carrier has.
func TestAskedBeforeSent(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{IRD: 2}})
	p.b.expose(7<<8, 8, rdmap.AccessRead)
	ask := func(n uint32) error {
		return p.b.arrive(untagged(0x41, 1, n), words(1, uint64(0), 8, 7<<8, uint64(0)))
	}
	var m ddp.Message
	var given []ddp.Span // what the carrier has, and has not sent
	for i := range uint32(2) {
		if err := ask(i + 1); err != nil || !p.b.Next(&m) {
			t.Fatalf("request %d: %v", i+1, err)
		}
		given = append(given, m.Data...)
		for _, s := range given {
			if len(s.Bytes) != 8 {
				t.Errorf("%d bytes are with the carrier", len(s.Bytes))
			}
		}
	}
	held := m.Data
	for i := range uint32(3) {
		if err := ask(i + 3); (err != nil) != (i == 2) {
			t.Fatalf("request %d: %v", i+3, err)
		}
		if i < 2 && p.b.Next(&m) {
			t.Fatal("the carrier is given more answers than were agreed on")
		}
		if len(held) != 1 || len(held[0].Bytes) != 8 {
			t.Fatalf("request %d: what the carrier has is gone: %v", i+3, held)
		}
	}
}

// RDMAP-108, DDP-007: a queue of receives for several streams, which take from it when something comes.
type shared struct{ list []rdmap.Receive }

func (s *shared) Take() (rdmap.Receive, bool) {
	if len(s.list) == 0 {
		return rdmap.Receive{}, false
	}
	r := s.list[0]
	s.list = s.list[1:]
	return r, true
}

func TestSharedReceives(t *testing.T) {
	q := &shared{}
	one, two := newPair(t, world{cfg: rdmap.Config{Shared: q}}), newPair(t, world{cfg: rdmap.Config{Shared: q}})
	if err := one.b.PostReceive(rdmap.Receive{}); !errors.Is(err, rdmap.ErrInvalid) {
		t.Errorf("a receive for one of those that share: %v", err)
	}
	for i := range 3 {
		q.list = append(q.list, rdmap.Receive{ID: uint64(i), Data: make([]byte, 10)})
	}
	for i, p := range []*pair{one, two, one, two} {
		id := p.a.post(rdmap.Work{Op: rdmap.OpSend, Data: pattern(i, 10)})
		_, err := p.run()
		if i == 3 {
			if !errors.Is(err, ddp.UntaggedNoBuffer) {
				t.Errorf("no receive is left: %v", err)
			}
			continue
		}
		p.a.wantSent(id)
		if c := p.b.wantReceived(10); c.ID != uint64(i) {
			t.Errorf("message %d took receive %d", i, c.ID)
		}
	}
}

// RDMAP-108: one stream cannot take all that several share: it holds as many as its own queue would.
func TestSharedReceivesAreBounded(t *testing.T) {
	q := &shared{}
	for i := range 40 {
		q.list = append(q.list, rdmap.Receive{ID: uint64(i), Data: make([]byte, 10)})
	}
	p := newPair(t, world{cfg: rdmap.Config{Shared: q}, carrier: carrier{unordered: true}})
	for i := range uint32(17) {
		h := ddp.Header{Control: 0x43, MSN: i + 1} // of each message the first segment only
		if _, err := p.b.Place(&h, 5); (err == nil) != (i < 16) || err != nil && err != error(ddp.UntaggedNoBuffer) {
			t.Fatalf("message %d: %v", i+1, err)
		}
	}
	if len(q.list) != 24 {
		t.Errorf("%d receives are left of 40", len(q.list))
	}
}

func TestSilent(t *testing.T) {
	p := newPair(t, world{})
	p.b.receive(nil)
	p.b.receive(nil)
	p.a.post(rdmap.Work{Op: rdmap.OpSend, Silent: true})
	loud := p.a.post(rdmap.Work{Op: rdmap.OpSend})
	p.settle()
	p.a.wantSent(loud)
}

// Memory of this side is withdrawn in the order of the send queue.
func TestInvalidate(t *testing.T) {
	each(t, world{}, func(t *testing.T, p *pair) {
		p.a.expose(5<<8, 10, rdmap.AccessWrite)
		p.b.expose(7<<8, 10, rdmap.AccessRead)
		r := p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 10), STag: 7 << 8})
		i := p.a.post(rdmap.Work{Op: rdmap.OpInvalidate, Fence: true, Invalidate: 5 << 8})
		again := p.a.post(rdmap.Work{Op: rdmap.OpInvalidate, Silent: true, Invalidate: 5 << 8})
		p.take(p.a)
		p.take(p.a)
		if p.a.mem[5<<8].withdrawn {
			t.Fatal("withdrawn before the fence")
		}
		p.settle()
		if !p.a.mem[5<<8].withdrawn {
			t.Fatal("not withdrawn")
		}
		l := p.a.sent.list
		if len(l) != 3 || l[0].ID != r || l[1].ID != i || l[1].Err != nil || l[2].ID != again || l[2].Err == nil {
			t.Fatalf("completed %+v", l)
		}
		if p.a.Err() != nil {
			t.Errorf("the stream ended: %v", p.a.Err())
		}
	})
}

// RDMAP-001, 013: what cannot be, a Terminate of the program's own among it, is refused when it is posted.
func TestInvalidWork(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{Extensions: everything, Sends: 16}})
	for _, c := range []struct {
		w    rdmap.Work
		want error
	}{
		{rdmap.Work{Op: rdmap.OpReceive}, rdmap.ErrInvalid},
		{rdmap.Work{Op: 200}, rdmap.ErrInvalid},
		{rdmap.Work{Op: rdmap.OpFlush, Length: 1}, rdmap.ErrInvalid},
		{rdmap.Work{Op: rdmap.OpVerify, Hash: make([]byte, 33)}, rdmap.ErrInvalid},
	} {
		if err := p.a.Post(&c.w); !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.w.Op, err, c.want)
		}
	}
	if math.MaxInt > math.MaxUint32 {
		big := make([]byte, 1<<20)
		w := rdmap.Work{Op: rdmap.OpWrite, Data: big[:1<<20-1]}
		for range 1<<12 - 1 {
			w.More = append(w.More, big)
		}
		if err := p.a.Post(&w); err != nil {
			t.Errorf("2^32-1 bytes: %v", err)
		}
		w.More = append(w.More, big[:1])
		if err := p.a.Post(&w); !errors.Is(err, rdmap.ErrTooLong) {
			t.Errorf("2^32 bytes: %v", err)
		}
	}
	for range 15 {
		p.a.post(rdmap.Work{Op: rdmap.OpSend})
	}
	if err := p.a.Post(&rdmap.Work{Op: rdmap.OpSend}); !errors.Is(err, rdmap.ErrFull) {
		t.Errorf("the 17th request: %v", err)
	}
	for i := range 17 {
		if err := p.a.PostReceive(rdmap.Receive{}); (err != nil) != (i == 16) || err != nil && !errors.Is(err, rdmap.ErrFull) {
			t.Errorf("receive %d: %v", i+1, err)
		}
	}
}

// MPA-016: the Read that opens a stream is answered with nothing; anything else is a fault.
func TestWrongAnswerToTheOpeningRead(t *testing.T) {
	for _, c := range []struct {
		h    ddp.Header
		n    int
		want error
	}{
		{ddp.Header{Tagged: true, Last: true, Control: 0x42}, 0, nil},
		{ddp.Header{Tagged: true, Last: true, Control: 0x42, STag: 1}, 0, ddp.TaggedSTag},
		{ddp.Header{Tagged: true, Last: true, Control: 0x42, TO: 1}, 0, ddp.TaggedBounds},
		{ddp.Header{Tagged: true, Last: true, Control: 0x42}, 1, ddp.TaggedBounds},
		{untagged(0x4b, 3, 1), 12, ddp.OperationOpcode},
	} {
		p := newPair(t, world{cfg: rdmap.Config{Ready: rdmap.ReadyRead, Extensions: everything}})
		p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 5), STag: 7 << 8})
		if op, _ := p.a.leave(); op != rdmap.ReadRequest {
			t.Fatalf("%v opens the stream", op)
		}
		if op, _ := p.a.leave(); op != 0xff {
			t.Fatalf("%v beside the Read that opens the stream", op)
		}
		if err := p.a.arrive(c.h, make([]byte, c.n)); err != c.want {
			t.Errorf("%+v with %d bytes: %v, want %v", c.h, c.n, err, c.want)
		}
		if op, _ := p.a.leave(); c.want == nil && op != rdmap.ReadRequest {
			t.Errorf("%v after the answer", op)
		}
	}
}

// A job that fails ends the stream; one that is done when the stream has ended changes nothing (COMMIT-013, 045).
func TestJobs(t *testing.T) {
	for _, c := range []struct {
		err  error
		want ddp.Fault
	}{{ddp.OperationStream, 0x0207}, {errors.New("disk failure"), 0x0207}, {ddp.ProtectionSTag, 0x0100}} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
			m := p.b.expose(7<<8, 8, rdmap.AccessFlushPersistent, rdmap.AccessVerify, rdmap.AccessWrite)
			id := p.a.post(rdmap.Work{Op: rdmap.OpFlush, STag: 7 << 8, Length: 8, Persistent: true})
			p.a.post(rdmap.Work{Op: rdmap.OpVerify, STag: 7 << 8, Length: 8})
			p.a.post(rdmap.Work{Op: rdmap.OpAtomicWrite, STag: 7 << 8, Payload: [8]byte{0xff}})
			p.settle()
			var j rdmap.Job
			if !p.b.Job(&j) {
				t.Fatal("no job")
			}
			p.b.JobDone(nil, c.err)
			errA, _ := p.run()
			var e *rdmap.TerminateError
			if !errors.As(errA, &e) || !e.Remote || e.Fault != c.want || e.Header.MSN != 1 || e.Header.QN != 1 {
				t.Fatalf("the peer hears %v", errA)
			}
			if p.b.Job(&j) {
				t.Error("a job behind the one that failed (COMMIT 3)")
			}
			p.b.JobDone(nil, nil)
			p.a.End(nil)
			p.b.want("the marker behind what failed", m, make([]byte, 8)) // COMMIT-033
			if l := p.a.sent.list; len(l) != 3 || l[0].ID != id || !errors.Is(l[0].Err, c.want) {
				t.Errorf("completed %+v", l)
			}
		})
	}
}

// A request that was right when it came may be wrong when its turn comes.
func TestWithdrawnBeforeTheAnswer(t *testing.T) {
	p := newPair(t, world{})
	p.b.expose(7<<8, 8, rdmap.AccessRead)
	p.a.post(rdmap.Work{Op: rdmap.OpRead, Data: make([]byte, 8), STag: 7 << 8})
	p.take(p.a)
	if _, err := p.move(p.a, p.b); err != nil {
		t.Fatal(err)
	}
	if !p.b.Busy() {
		t.Error("nothing to do with a Read to answer")
	}
	p.b.mem[7<<8].withdrawn = true
	op, b := p.b.leave()
	if op != rdmap.Terminate || b[0] != 0x01 || b[1] != 0 || b[2] != 0xe0 || len(b) != 52 {
		t.Errorf("%v %x, want a Terminate 0/1/00 with the request", op, b)
	}
}
