package dgrdma

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// question is a frame that an unknown source sends, which is the longer the more bytes follow what it says.
type question struct {
	name  string
	frame []byte
	found session.Kind // what it is answered with when unknown sources are taken
	alone session.Kind // and when they are not; NoFrame: with RESET, or not at all
	reset bool
}

// questions returns a frame of each kind that an unknown source may send. The epoch that they name is none of the endpoint's.
func questions() (all []question) {
	for _, q := range []struct {
		name         string
		h            frame.Handshake
		found, alone session.Kind
	}{
		{"HELLO", frame.Handshake{Kind: frame.HandshakeHello, Sender: 5}, session.Welcome, session.Refused},
		{"WELCOME", frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 5, Receiver: 6}, session.NoFrame, session.NoFrame},
		{"CONFIRM", frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 5, Receiver: 6, Check: 7}, session.Reject, session.Reject},
		{"REJECT", frame.Handshake{Kind: frame.HandshakeReject, Sender: 5, Receiver: 6, Check: 7}, session.NoFrame, session.NoFrame},
		{"REFUSED", frame.Handshake{Kind: frame.HandshakeRefused, Sender: 5, Receiver: 5}, session.NoFrame, session.NoFrame},
	} {
		b := make([]byte, frame.HandshakeSize)
		q.h.Put(b, 2, 1)
		all = append(all, question{q.name, b, q.found, q.alone, false})
	}
	m := frame.Message{Txn: 9, CompletionValue: 1, Index: frame.NotHandshake}
	b := make([]byte, frame.HandshakeSize)
	plain := frame.Header{Dst: 2, Src: 1, Seq: 1, Flags: frame.FlagMessages}
	plain.Put(b)
	m.Put(b[frame.HeaderSize:])
	all = append(all, question{name: "a message without a session", frame: b})
	h := frame.SessionHeader{Dst: 2, Src: 1, ID: 6, Tag: 7, Ack: 8}
	b = make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize)
	h.Put(b)
	m.Put(b[frame.SessionHeaderSize:])
	all = append(all, question{name: "data", frame: b, reset: true})
	b = make([]byte, 64)
	all = append(all, question{name: "an ACK", frame: b[:frame.PutSessionAckFrame(b, &h, false, 0, 0, nil)]})
	b = make([]byte, 64)
	all = append(all, question{name: "a BYE", frame: b[:frame.PutBye(b, &h, frame.Bye{Sender: 5, Receiver: 6})]})
	b = make([]byte, 64)
	all = append(all, question{name: "a RESET", frame: b[:frame.PutReset(b, frame.SessionHeader{Dst: 1, Src: 2, ID: 6, Tag: 7, Ack: 8})]})
	b = make([]byte, frame.SessionHeaderSize+1)
	h.Control = frame.ControlBell
	h.Put(b)
	return append(all, question{name: "a bell", frame: b, reset: true})
}

// TestAnswersAreNoLonger checks that no frame of an unknown source, of whatever kind and length, with a checksum or without, is answered
// with a longer one, nor what is itself an answer with anything, and that nothing is kept of it (attacks A4 and A9, SECURITY.md).
func TestAnswersAreNoLonger(t *testing.T) {
	for _, x := range []struct{ accepts, asksChecks, checked bool }{
		{true, false, false}, {false, false, false}, {true, true, false}, {false, true, false}, {true, true, true}, {false, true, true}, {true, false, true},
	} {
		t.Run(fmt.Sprintf("%+v", x), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, w := openForgery(t, Config{Checksum: x.asksChecks})
				defer e.Close()
				e.AcceptAny(x.accepts)
				for _, q := range questions() {
					for _, behind := range []int{0, 1, 7, 8, 11, 12, 13, 16, frame.ListedSize - frame.HandshakeSize - 1, frame.ListedSize - frame.HandshakeSize, frame.ListedSize - frame.HandshakeSize + 4, 300} {
						b := append(make([]byte, 0, 512), q.frame...)
						b = append(b, make([]byte, behind)...)
						if x.checked {
							b = frame.AddChecksum(b)
						}
						w.give(addrA, b)
						sent := w.frames(time.Second)
						want := q.found
						if !x.accepts {
							want = q.alone
						}
						size := len(b)
						if x.checked {
							size -= frame.ChecksumSize
						}
						if want == session.Refused && size < frame.RefusedSize {
							want = session.NoFrame // it has no room for the peer that is there
						}
						if answers := want != session.NoFrame || q.reset; len(sent) > 0 != answers || len(sent) > 1 {
							t.Errorf("%s of %d bytes has %d answers, want one: %v", q.name, len(b), len(sent), answers)
						}
						for _, s := range sent {
							if s.n > len(b) || s.to != addrA {
								t.Errorf("%s of %d bytes is answered with %d", q.name, len(b), s.n)
							}
							h, ok := handshakeIn(&s.f)
							if q.reset != (s.session.Control == frame.ControlReset) || !q.reset && (!ok || h.Kind != handshakeKinds[want]) {
								t.Errorf("%s of %d bytes is answered with %+v, %+v", q.name, len(b), h, s.session)
							}
						}
					}
				}
				if s := e.Stats(); s.Peers != 0 || s.Completions != 0 {
					t.Errorf("%d peers, %d completions", s.Peers, s.Completions)
				}
			})
		})
	}
}

// TestAnswersFitTheWire checks that what an unknown source is answered is no longer than frames may be, and tells of services where
// there is room for that.
func TestAnswersFitTheWire(t *testing.T) {
	for mtu := 64; mtu <= frame.ListedSize+8; mtu++ {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{MTU: mtu})
			defer e.Close()
			w.shake(addrA, 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 7})
			for _, s := range w.frames(time.Second) {
				if _, told := s.f.Services(); s.n > mtu || told != (mtu >= frame.ListedSize) {
					t.Errorf("with frames of %d bytes: %d, told of services %v", mtu, s.n, told)
				}
			}
			if n := e.Stats().Challenges; n != 1 {
				t.Errorf("%d answers, want 1", n)
			}
		})
	}
}

// TestUnknownSourcesAtOnce checks that some of the unknown sources whose frames come at once are answered, each once, as many as a batch
// holds, and that the others are counted: those that say HELLO, and those that send data of a session that is none (attack A9,
// SECURITY.md).
func TestUnknownSourcesAtOnce(t *testing.T) {
	for _, c := range []struct{ strangers, each, answers int }{
		{1, 2, 1}, {1, 500, 1}, {2, 1, 2}, {100, 3, 100}, {admission.MostAnswers, 1, admission.MostAnswers}, {500, 1, admission.MostAnswers}, {500, 2, admission.MostAnswers},
	} {
		for _, kind := range []string{"HELLO", "CONFIRM", "data"} {
			synctest.Test(t, func(t *testing.T) { strangersAtOnce(t, kind, c.strangers, c.each, c.answers) })
		}
	}
}

func strangersAtOnce(t *testing.T, kind string, strangers, each, answers int) {
	w := manyAtOnce{newForgery()}
	seen := make(map[transport.Addr]int)
	e, err := New(w, &Config{ID: 2, Manual: true, AcceptAny: true, Trace: &Trace{FrameSent: func(to PeerName, b []byte, again bool) {
		if dst, src := frame.IDsOf(b); to.ID != dst || src != 2 || again {
			t.Errorf("from %d to %v, again %v", src, to, again)
		}
		seen[to.Addr]++
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, q := range questions() {
		if q.name != kind {
			continue
		}
		for i := range strangers {
			for range each {
				w.give(simnet.Addr(uint32(i)), q.frame)
			}
		}
	}
	for range 3 {
		if _, err := e.Progress(time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	answered := make(map[transport.Addr]int)
	for _, s := range w.frames(time.Second) {
		answered[s.to]++
	}
	for a, n := range answered {
		if n != 1 || seen[a] != 1 {
			t.Errorf("%s: %v is answered %d times, and that is seen %d times", kind, a, n, seen[a])
		}
	}
	s := e.Stats()
	unanswered, again := uint64((strangers-answers)*each), uint64(answers*(each-1))
	refused := unanswered // a WELCOME is no refusal
	if kind != "HELLO" {
		refused = uint64(strangers * each)
	}
	if len(answered) != answers || s.Challenges != uint64(answers) || s.RefusedBy(RefusedNoSession) != refused || s.Unanswered != unanswered || s.Duplicates != again {
		t.Errorf("%s: %d of %d are answered, and %d counted, %d twice, %d not, refused %v", kind, len(answered), strangers, s.Challenges, s.Duplicates, s.Unanswered, s.RefusedReasons())
	}
}

// TestAnswersAreTraced checks that an answer leaves whatever the program has traced.
func TestAnswersAreTraced(t *testing.T) {
	for name, trace := range map[string]*Trace{"none": nil, "received": {FrameReceived: func(PeerName, []byte, Reason) {}}} {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{Trace: trace})
			defer e.Close()
			w.shake(addrA, 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 5})
			if n := len(w.frames(time.Second)); n != 1 {
				t.Errorf("%s: %d answers", name, n)
			}
		})
	}
}

// TestUnknownSourcesThatAreNotMet checks that a frame from no id is not answered, whichever peers are accepted, and is counted; and what a
// HELLO is told when unknown sources are not taken.
func TestUnknownSourcesThatAreNotMet(t *testing.T) {
	for _, accept := range []bool{true, false} {
		for name, give := range map[string]func(w *forgery){
			"no id": func(w *forgery) { w.shake(addrA, 0, frame.Handshake{Kind: frame.HandshakeHello, Sender: 5}) },
			"no id, in a session": func(w *forgery) {
				w.sessions = map[peerKey][2]uint32{{ids{2, 0}, addrA}: {5, 6}}
				w.message(addrA, 0, 1, frame.Message{Txn: 5, Count: 1, Index: 1})
			},
			"an acknowledgement": func(w *forgery) {
				b := make([]byte, frame.HeaderSize)
				h := frame.Header{Dst: 2, Src: 1, Seq: 3, AckStart: 1, AckCount: 1}
				h.Put(b)
				w.give(addrA, b)
			},
			"an id": func(w *forgery) { w.shake(addrA, 1, frame.Handshake{Kind: frame.HandshakeHello, Sender: 5}) },
		} {
			synctest.Test(t, func(t *testing.T) {
				e, w := openForgery(t, Config{})
				defer e.Close()
				e.AcceptAny(accept)
				give(w)
				sent := w.frames(time.Second)
				refused := uint64(1)
				if accept && name == "an id" {
					refused = 0
				}
				if s := e.Stats(); len(sent) > 0 != (name == "an id") || s.RefusedBy(RefusedSource) != refused {
					t.Errorf("accept %v, %s: %d answers, refused %v", accept, name, len(sent), s.RefusedReasons())
				}
				for _, s := range sent {
					h, _ := handshakeIn(&s.f)
					if r, ok := frame.RefusalOf(&s.f); !accept && (h.Receiver != 5 || !ok || r.ID != 2 || r.Why != uint8(session.NoUnknown)) {
						t.Errorf("who is not taken is told %+v, %+v", h, r)
					}
				}
			})
		}
	}
}

// TestUnknownSourcesAreTold checks that of a frame that belongs to no peer the application and the log hear, where there are such, with the
// name that it gives.
func TestUnknownSourcesAreTold(t *testing.T) {
	for _, c := range []struct{ told, logged bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		synctest.Test(t, func(t *testing.T) {
			var cfg Config
			var events []Event
			log := &lines{n: make(map[string]int)}
			if c.told {
				cfg.OnEvent = func(ev Event) { events = append(events, ev) }
			}
			if c.logged {
				cfg.Logger = slog.New(log)
			}
			e, w := openForgery(t, cfg)
			defer e.Close()
			w.give(addrA, []byte("no frame"))
			w.shake(addrA, 9, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 5, Receiver: 6})
			w.frames(time.Second)
			synctest.Wait()
			want := []Event{
				{Kind: FrameRefused, Reason: RefusedMalformed, Peer: PeerName{0, addrA}},
				{Kind: FrameRefused, Reason: RefusedNoSession, Peer: PeerName{9, addrA}},
			}
			switch {
			case !c.told && len(events) > 0, c.told && (len(events) != 2 || events[0] != want[0] || events[1] != want[1]):
				t.Errorf("%+v, want %+v", events, want)
			case c.logged != (log.n[FrameRefused.String()] == 2):
				t.Errorf("logged %v", log.n)
			}
		})
	}
}

// narrowTo is a wire with no room for data on the path to one address.
type narrowTo struct {
	*forgery
	to transport.Addr
}

func (n narrowTo) MTU(to transport.Addr) int {
	if to == n.to {
		return frame.HeaderSize + frame.MessageHeaderSize
	}
	return n.forgery.MTU(to)
}

// TestUnknownSourceOnANarrowPath checks that a peer that shows that its address is its own, to which there is no room for data, is refused,
// and others are not.
func TestUnknownSourceOnANarrowPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := narrowTo{newForgery(), simnet.Addr(5)}
		e, err := New(w, &Config{ID: 2, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		w.comes(t, 5)
		w.comes(t, 6)
		if s := e.Stats(); s.Peers != 1 || s.RefusedBy(RefusedSource) != 1 {
			t.Errorf("%d peers, refused %v", s.Peers, s.RefusedReasons())
		}
	})
}
