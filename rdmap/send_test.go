package rdmap_test

import (
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// TestRequestsAndAnswersTakeTurns: where both wait, an answer follows a request and a request an answer, so that a peer that asks without
// end does not keep this side's own requests from the wire, nor the other way round.
func TestRequestsAndAnswersTakeTurns(t *testing.T) {
	p := newPair(t, world{cfg: rdmap.Config{IRD: 8, ORD: 8}})
	p.a.expose(kindSTag, 64, rdmap.AccessRead)
	for i := range uint32(4) {
		if err := p.a.arrive(untagged(questions[0].control, 1, i+1), questions[0].payload); err != nil {
			t.Fatal(err)
		}
		p.a.post(rdmap.Work{Op: rdmap.OpSend})
	}
	var m ddp.Message
	for i := range 8 {
		if !p.a.Next(&m) {
			t.Fatalf("message %d: none", i+1)
		}
		if want := [2]byte{0x42, 0x43}[i%2]; m.Control != want {
			t.Errorf("message %d is %#x, want %#x", i+1, m.Control, want)
		}
	}
}

// questions are what a peer asks for, each kind that is answered, of memory with the STag kindSTag.
var questions = []struct {
	name    string
	control byte
	payload []byte
	answer  byte
}{
	{"Read Response", 0x41, words(1, uint64(0), 8, kindSTag, uint64(0)), 0x42},
	{"Read Response of nothing", 0x41, words(1, uint64(0), 0, 99, uint64(0)), 0x42},
	{"Atomic Response", 0x4a, words(0, 1, kindSTag, uint64(0), uint64(0), uint64(0), uint64(0), uint64(0)), 0x4b},
	{"Flush Response", 0x4c, words(kindSTag, 8, uint64(0), 2), 0x4d},
	{"Verify Response", 0x4e, words(kindSTag, 8, uint64(0)), 0x4f},
	{"Atomic Write Response", 0x50, words(kindSTag, 8, uint64(0), uint64(0)), 0x51},
}

// TestNothingFollowsATerminate (RDMAP-056, 057): whatever a side has sent last, a Terminate is the last message of its direction, whether
// the carrier, a frame of the peer, or a request that is carried out is at fault; and after one of the peer nothing is sent. Requests and
// answers wait all the time.
func TestNothingFollowsATerminate(t *testing.T) {
	asked := uint32(0) // requests of the peer
	ask := func(t *testing.T, s *side, control byte, payload []byte) {
		t.Helper()
		asked++
		if err := s.arrive(untagged(control, 1, asked), payload); err != nil {
			t.Fatal(err)
		}
	}
	next := func(s *side) (control byte, ok bool) {
		var m ddp.Message
		if !s.Next(&m) {
			return 0, false
		}
		if m.Control == 0x47 && (m.Tagged || m.QN != 2 || m.MSN != 1 || len(m.Data) != 0 || int(m.Length) != m.InlineSize) {
			t.Errorf("the Terminate is %+v", m)
		}
		s.Sent(1)
		return m.Control, true
	}
	type last struct {
		name string
		of   func(t *testing.T, s *side) // has s send it
	}
	lasts := []last{{"nothing", func(*testing.T, *side) {}}}
	for _, k := range kinds {
		if k.opcode == 0 {
			continue
		}
		lasts = append(lasts, last{k.name, func(t *testing.T, s *side) {
			s.post(k.w)
			if control, ok := next(s); !ok || control != k.opcode {
				t.Fatalf("%#x leaves, %v", control, ok)
			}
		}})
	}
	for _, q := range questions {
		lasts = append(lasts, last{q.name, func(t *testing.T, s *side) {
			ask(t, s, q.control, q.payload)
			if s.Job(new(rdmap.Job)) {
				s.JobDone([]byte{1}, nil)
			}
			if control, ok := next(s); !ok || control != q.answer {
				t.Fatalf("%#x leaves, %v", control, ok)
			}
		}})
	}
	ends := []struct {
		name string
		of   func(t *testing.T, s *side)
		says bool // by a Terminate
	}{
		{"the carrier", func(_ *testing.T, s *side) { s.Fail(ddp.Checksum, nil) }, true},
		{"a frame", func(t *testing.T, s *side) {
			if s.arrive(write(99<<8, 0), words(1)) == nil {
				t.Fatal("a Write to nowhere is taken")
			}
		}, true},
		{"a request that is carried out", func(_ *testing.T, s *side) { s.mem[kindSTag].withdrawn = true }, true},
		{"the peer", func(t *testing.T, s *side) {
			if s.arrive(untagged(0x47, 2, 1), words(0)) == nil {
				t.Fatal("a Terminate is no end")
			}
		}, false},
	}
	for _, l := range lasts {
		for _, end := range ends {
			t.Run(fmt.Sprint(l.name, ", then ", end.name), func(t *testing.T) {
				asked = 0
				p := newPair(t, world{cfg: rdmap.Config{Extensions: everything, IRD: 8, ORD: 8}})
				s := p.a
				s.expose(kindSTag, 64, rdmap.AccessWrite, rdmap.AccessRead, rdmap.AccessAtomic, rdmap.AccessFlushGlobal, rdmap.AccessVerify)
				l.of(t, s)
				ask(t, s, questions[0].control, questions[0].payload)
				ask(t, s, questions[2].control, questions[2].payload)
				end.of(t, s)
				for range 3 {
					s.Post(&rdmap.Work{Op: rdmap.OpSend}) // before the fault is found, if it is not yet
				}
				said := false
				for i := range 6 {
					control, ok := next(s)
					switch {
					case !ok:
					case said || !end.says:
						t.Errorf("message %d is %#x", i+1, control)
					case control == 0x47:
						said = true
					case end.name != "a request that is carried out" || control != 0x43:
						t.Errorf("%#x leaves before the Terminate", control)
					}
				}
				if said != end.says {
					t.Errorf("a Terminate left: %v", said)
				}
			})
		}
	}
}
