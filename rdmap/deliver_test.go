package rdmap_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// TestWhatASendInvalidates (RDMAP-023, 050, 051, RDMAPX-006): each kind of message for a receive, with the STag of memory that can be invalidated,
// that has been, and that never was. One that invalidates is delivered if it could, and otherwise the stream ends with 0/1/09, and the
// program hears of no message; of the others the STag is not looked at.
func TestWhatASendInvalidates(t *testing.T) {
	for _, c := range []struct {
		name                   string
		control                byte
		invalidates, solicited bool
	}{
		{"Send", 0x43, false, false}, {"Send with SE", 0x45, false, true}, {"Send with Invalidate", 0x44, true, false},
		{"Send with SE and Invalidate", 0x46, true, true}, {"Immediate", 0x48, false, false}, {"Immediate with SE", 0x49, false, true},
	} {
		for _, stag := range []uint32{7 << 8, 8 << 8, 9 << 8, 0} {
			for _, unordered := range []bool{false, true} {
				p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}, carrier: carrier{unordered: unordered}})
				s := p.b
				s.expose(7<<8, 8)
				s.expose(8<<8, 8)
				s.mem[8<<8].withdrawn = true
				s.receive(make([]byte, 8))
				h := untagged(c.control, 0, 1)
				h.Invalidate = stag
				can := stag == 7<<8
				err := s.arrive(h, words(uint64(5)))
				if c.invalidates && !can {
					if err != error(ddp.ProtectionInvalidate) || len(s.received.list) != 0 {
						t.Errorf("%s with the STag %#x: %v, received %+v", c.name, stag, err, s.received.list)
					}
					if op, b := s.leave(); op != rdmap.Terminate || b[0] != 0x01 || b[1] != 0x09 {
						t.Errorf("%s with the STag %#x is answered with %v %x", c.name, stag, op, b)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s with the STag %#x: %v", c.name, stag, err)
				}
				done := s.wantReceived(8)
				if done.Solicited != c.solicited || done.Invalidated != c.invalidates || c.invalidates && done.STag != stag || !c.invalidates && done.STag != 0 {
					t.Errorf("%s with the STag %#x arrives as %+v", c.name, stag, done)
				}
				if s.mem[7<<8].withdrawn != (c.invalidates && can) {
					t.Errorf("%s with the STag %#x: withdrawn %v", c.name, stag, s.mem[7<<8].withdrawn)
				}
			}
		}
	}
}

// TestLengthsOfAnswers (RDMAPX-009, COMMIT-013, 025 to 027, 035): an answer on queue 3 of each length. Atomics have twelve bytes, a Verify has a hash, and with
// one that was asked for just as many bytes; the others have nothing in them.
func TestLengthsOfAnswers(t *testing.T) {
	verify := func(n int) rdmap.Work { return rdmap.Work{Op: rdmap.OpVerify, Hash: make([]byte, n)} }
	none := func(n int) bool { return n == 0 }
	for _, c := range []struct {
		name    string
		w       rdmap.Work
		control byte
		fits    func(n int) bool
	}{
		{"FetchAdd", rdmap.Work{Op: rdmap.OpFetchAdd}, 0x4b, func(n int) bool { return n == 12 }},
		{"CompareSwap", rdmap.Work{Op: rdmap.OpCompareSwap}, 0x4b, func(n int) bool { return n == 12 }},
		{"Flush to storage", rdmap.Work{Op: rdmap.OpFlush, Persistent: true}, 0x4d, none},
		{"Flush to all", rdmap.Work{Op: rdmap.OpFlush, Global: true}, 0x4d, none},
		{"Verify", verify(0), 0x4f, func(n int) bool { return n > 0 && n <= 32 }},
		{"Verify of one byte", verify(1), 0x4f, func(n int) bool { return n == 1 }},
		{"Verify of 4 bytes", verify(4), 0x4f, func(n int) bool { return n == 4 }},
		{"Verify of 32 bytes", verify(32), 0x4f, func(n int) bool { return n == 32 }},
		{"Atomic Write", rdmap.Work{Op: rdmap.OpAtomicWrite}, 0x51, none},
	} {
		for n := range 66 {
			s := newPair(t, world{cfg: rdmap.Config{Extensions: everything}}).a
			id := s.post(c.w)
			s.leave()
			b := make([]byte, n)
			if c.control == 0x4b && n >= 4 {
				b[3] = 1 // the identifier
			}
			err := s.arrive(untagged(c.control, 3, 1), b)
			want := error(nil)
			switch {
			case n > 32:
				want = ddp.UntaggedTooLong
			case !c.fits(n):
				want = ddp.OperationStream
			}
			if err != want {
				t.Errorf("%s is answered with %d bytes: %v, want %v", c.name, n, err, want)
			}
			if want == nil {
				s.wantSent(id)
			} else if len(s.sent.list) != 0 {
				t.Errorf("%s is answered with %d bytes: completed %+v", c.name, n, s.sent.list)
			}
		}
	}
}

// TestAnswersWithAnotherHash (COMMIT-024, 026): of an answer to a Verify every byte is compared with the hash that was asked for, of any length.
func TestAnswersWithAnotherHash(t *testing.T) {
	for n := 1; n <= rdmap.HashSize; n++ {
		for flip := range n {
			s := newPair(t, world{cfg: rdmap.Config{Extensions: everything}}).a
			s.post(rdmap.Work{Op: rdmap.OpVerify, Hash: pattern(n, n)})
			s.leave()
			b := pattern(n, n)
			b[flip] ^= 1
			if err := s.arrive(untagged(0x4f, 3, 1), b); err != error(ddp.OperationStream) || len(s.sent.list) != 0 {
				t.Errorf("byte %d of %d is another: %v, completed %+v", flip, n, err, s.sent.list)
			}
		}
	}
}

// TestFlagsOfAFlush (COMMIT-010, 018, RDMAP-022): what is carried out is what the two flags of a request say, whatever the reserved ones are.
func TestFlagsOfAFlush(t *testing.T) {
	for flags := range 8 {
		p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
		p.exposeAll()
		err := p.b.arrive(untagged(0x4c, 1, 1), words(kindSTag, 8, uint64(16), flags))
		var j rdmap.Job
		if is := p.b.Job(&j); is != (flags&3 != 0) || (err == nil) != is {
			t.Errorf("flags %d: a job %v, %v", flags, is, err)
		} else if want := (rdmap.Job{Persistent: flags&1 != 0, Global: flags&2 != 0, STag: kindSTag, TO: 16, Length: 8}); is && j != want {
			t.Errorf("flags %d: %+v", flags, j)
		}
	}
}

// TestBoundsOfAtomics (RDMAPX-017, COMMIT-046): the eight bytes of an atomic request, and of an Atomic Write, are all looked at when it comes.
func TestBoundsOfAtomics(t *testing.T) {
	for _, q := range []struct {
		control byte
		at      func(to uint64) []byte
	}{
		{0x4a, func(to uint64) []byte { return words(0, 1, kindSTag, to, uint64(0), uint64(0), uint64(0), uint64(0)) }},
		{0x50, func(to uint64) []byte { return words(kindSTag, 8, to, uint64(0)) }},
	} {
		for to := uint64(50); to < 70; to++ {
			p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
			p.exposeAll()
			want := error(nil)
			if to > 64-8 {
				want = ddp.ProtectionBounds
			}
			if err := p.b.arrive(untagged(q.control, 1, 1), q.at(to)); err != want {
				t.Errorf("%#x at %d of 64: %v, want %v", q.control, to, err, want)
			}
		}
	}
}

// TestOnlyTheOpeningSendTakesNoReceive (MPA-016, RDMAP-046): the Send of nothing that opens a stream of the peer-to-peer model is for no receive; every other message is for one, also
// where it is the first, has nothing in it, or comes to the other side.
func TestOnlyTheOpeningSendTakesNoReceive(t *testing.T) {
	for _, c := range []struct {
		name    string
		ready   rdmap.Ready
		at      func(p *pair) *side
		control byte
		n       int
		opens   bool
	}{
		{"the opening Send", rdmap.ReadySend, func(p *pair) *side { return p.b }, 0x43, 0, true},
		{"to the initiator", rdmap.ReadySend, func(p *pair) *side { return p.a }, 0x43, 0, false},
		{"with data", rdmap.ReadySend, func(p *pair) *side { return p.b }, 0x43, 1, false},
		{"with SE", rdmap.ReadySend, func(p *pair) *side { return p.b }, 0x45, 0, false},
		{"of a stream that a Write opens", rdmap.ReadyWrite, func(p *pair) *side { return p.b }, 0x43, 0, false},
		{"of a stream that nothing opens", rdmap.ReadyNone, func(p *pair) *side { return p.b }, 0x43, 0, false},
	} {
		p := newPair(t, world{cfg: rdmap.Config{Ready: c.ready}})
		s := c.at(p)
		s.receive(make([]byte, 5))
		s.receive(make([]byte, 6))
		if err := s.arrive(untagged(c.control, 0, 1), make([]byte, c.n)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if c.opens != (len(s.received.list) == 0) {
			t.Errorf("%s: received %+v", c.name, s.received.list)
		}
		s.received.list = nil
		if err := s.arrive(untagged(0x43, 0, 2), nil); err != nil { // is not the first
			t.Fatalf("%s, then another: %v", c.name, err)
		}
		if got := s.wantReceived(0); got.ID != map[bool]uint64{true: 5, false: 6}[c.opens] {
			t.Errorf("%s, then another, which took receive %d", c.name, got.ID)
		}
	}
}

// TestLengthsOfRequests (RDMAP-097, RDMAPX-009, 039, COMMIT-031, 047): a request, and immediate data, of each length. Only those that the
// specifications have are taken.
func TestLengthsOfRequests(t *testing.T) {
	for _, c := range []struct {
		name    string
		control byte
		queue   uint32
		b       []byte
		fits    func(n int) bool
	}{
		{"Read Request", 0x41, 1, words(1, uint64(0), 8, kindSTag, uint64(0)), func(n int) bool { return n == 28 }},
		{"Atomic Request", 0x4a, 1, words(0, 1, kindSTag, uint64(0), uint64(0), uint64(0), uint64(0), uint64(0)), func(n int) bool { return n == 52 }},
		{"Flush Request", 0x4c, 1, words(kindSTag, 8, uint64(0), 2), func(n int) bool { return n == 20 }},
		{"Verify Request", 0x4e, 1, words(kindSTag, 8, uint64(0)), func(n int) bool { return n >= 16 && n <= 48 }},
		{"Atomic Write Request", 0x50, 1, words(kindSTag, 8, uint64(0), uint64(0)), func(n int) bool { return n == 24 }},
		{"Immediate", 0x48, 0, words(uint64(0)), func(n int) bool { return n == 8 }},
		{"Immediate with SE", 0x49, 0, words(uint64(0)), func(n int) bool { return n == 8 }},
	} {
		for n := range 70 {
			p := newPair(t, world{cfg: rdmap.Config{Extensions: everything}})
			p.exposeAll()
			b := append(append([]byte(nil), c.b...), make([]byte, 70)...)[:n]
			err := p.b.arrive(untagged(c.control, c.queue, 1), b)
			if (err == nil) != c.fits(n) {
				t.Errorf("%s of %d bytes: %v", c.name, n, err)
			}
			if c.queue == 0 && len(p.b.received.list) != 0 && !c.fits(n) {
				t.Errorf("%s of %d bytes: received %+v", c.name, n, p.b.received.list)
			}
		}
	}
}
