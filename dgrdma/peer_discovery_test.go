package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

var asking, asked = udpAddr("10.0.0.1:1000"), udpAddr("10.0.0.2:7100")

// findWorld is an endpoint 1 that asks which endpoint is at an address, where endpoint 2 is.
type findWorld struct {
	*pair
	sent []frame.Frame // by the one that asks
}

// newFindWorld opens both, or leaves the address empty if b is nil.
func newFindWorld(t *testing.T, a, b *Config) *findWorld {
	t.Helper()
	w := &findWorld{pair: &pair{t: t, net: simnet.New(1)}}
	w.links(nil, nil)
	a.ID = 1
	if a.OnEvent == nil {
		a.OnEvent = w.note
	}
	if a.Trace == nil {
		a.Trace = &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
			if frame.IsSession(b) {
				return
			}
			f, _ := frame.Parse(append([]byte(nil), b...))
			w.mu.Lock()
			w.sent = append(w.sent, f)
			w.mu.Unlock()
		}}
	}
	w.a = w.open(asking, a)
	if b != nil {
		b.ID, b.OnEvent, b.Memory = 2, w.note, w.region(1<<20)
		w.b = w.open(asked, b)
	}
	return w
}

func refusing(epoch uint32) frame.Handshake {
	return frame.Handshake{Kind: frame.HandshakeRefused, Sender: epoch, Receiver: epoch}
}

// referring returns the answer of an endpoint that has another id.
func referring(between frame.Header, h frame.Handshake, i frame.Refusal) []byte {
	b := make([]byte, frame.RefusedSize)
	h.Put(b, between.Dst, between.Src)
	i.Put(b[frame.HandshakeSize:])
	return b
}

// links says what is lost on the path there, and back.
func (w *findWorld) links(there, back func(i int, _ []byte) simnet.Verdict) {
	w.net.Link(asking, asked, simnet.Link{Latency: time.Millisecond, Script: there})
	w.net.Link(asked, asking, simnet.Link{Latency: time.Millisecond, Script: back})
}

func (w *findWorld) end() {
	w.a.Close()
	if w.b != nil {
		w.b.Close()
	}
	w.net.Close()
}

// questions returns how many frames left.
func (w *findWorld) questions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sent)
}

// question returns the latest question that left.
func (w *findWorld) question() (f frame.Frame, h frame.Handshake) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) == 0 {
		w.t.Fatal("nothing was asked")
	}
	f = w.sent[len(w.sent)-1]
	h, _ = handshakeIn(&f)
	return f, h
}

// TestFind checks that an address is enough to connect to the endpoint there. It is asked in one
// round trip, or until neither question nor answer is lost, and is no peer until then.
func TestFind(t *testing.T) {
	first := func(n int) func(int, []byte) simnet.Verdict {
		return func(i int, _ []byte) simnet.Verdict {
			if i < n {
				return simnet.Drop()
			}
			return simnet.Deliver()
		}
	}
	for _, x := range []struct {
		name        string
		a           Config
		there, back int // that are lost
		most        time.Duration
	}{
		{name: "at once", most: 2 * time.Millisecond},
		{name: "questions lost", there: 7, most: 1710 * time.Millisecond},
		{name: "answers lost", back: 7, most: 1710 * time.Millisecond},
		{name: "no room for services", a: Config{MTU: frame.ListedSize - 1}, most: 2 * time.Millisecond},
		{name: "manual", a: Config{Manual: true}, there: 2, most: 110 * time.Millisecond},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFindWorld(t, &x.a, &Config{AcceptAny: true})
				defer w.end()
				w.links(first(x.there), first(x.back))
				began := time.Now()
				p, err := w.a.Find(t.Context(), Peer{Addr: asked})
				if took := time.Since(began); err != nil || (p != Peer{ID: 2, Addr: asked, Size: 1 << 20}) || took > x.most {
					t.Fatalf("%+v after %v: %v", p, took, err)
				}
				time.Sleep(time.Hour)
				a, b := w.a.Stats(), w.b.Stats()
				if a.Peers+b.Peers > 0 || len(w.a.Conns()) > 0 || len(b.RefusedReasons()) > 0 || len(w.events) > 0 || a.FramesSent > uint64(1+x.there+x.back) {
					t.Errorf("%d and %d peers, %d refused, %d asked; events %v", a.Peers, b.Peers, len(b.RefusedReasons()), a.FramesSent, w.events)
				}
				c, err := w.a.Connect(p)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Write(t.Context(), write(64, pattern(1, 100), 0, 1)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestFindWithoutAnswer checks that an endpoint that does not answer is not asked for ever, and that the
// error says what to do.
func TestFindWithoutAnswer(t *testing.T) {
	ended := errors.New("ended")
	for _, x := range []struct {
		name  string
		a     Config
		b     *Config
		bound time.Duration // of the context; 0: none
		most  time.Duration
		is    error
	}{
		{"nobody is there", Config{}, nil, 0, findTime, ErrPeerDown},
		{"GiveUp is shorter", Config{GiveUp: time.Second}, nil, 0, time.Second, ErrPeerDown},
		{"nobody asks for longer", Config{}, nil, 10 * time.Millisecond, 10 * time.Millisecond, ended},
		{"it accepts nobody", Config{}, &Config{}, 0, findTime, ErrPeerDown},
		{"it is of another kind", Config{}, &Config{Profile: new(FPGA()), AcceptAny: true}, 0, findTime, ErrPeerDown},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFindWorld(t, &x.a, x.b)
				defer w.end()
				ctx := t.Context()
				if x.bound > 0 {
					var cancel func()
					ctx, cancel = context.WithTimeoutCause(ctx, x.bound, ended)
					defer cancel()
				}
				began := time.Now()
				p, err := w.a.Find(ctx, Peer{Addr: asked})
				if took := time.Since(began); !errors.Is(err, x.is) || p != (Peer{}) || took != x.most || !strings.HasPrefix(err.Error(), "dgrdma: find the endpoint at 10.0.0.2:7100: ") {
					t.Errorf("%+v after %v: %v", p, took, err)
				}
				if x.is == ErrPeerDown && !strings.Contains(err.Error(), "the complete string, which ends in ;<size>.<id>.<max>") {
					t.Error(err)
				}
				n := w.questions()
				time.Sleep(time.Hour)
				if w.questions() != n || n > 25 || len(w.events) > 0 && x.b == nil {
					t.Errorf("%d questions, %d when it was over; events %v", w.questions(), n, w.events)
				}
			})
		})
	}
}

// TestFindRefuses checks that Find refuses what cannot be answered, before anything is sent.
func TestFindRefuses(t *testing.T) {
	e, err := New(newForgery(), &Config{ID: 2}) // on Ethernet
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Find(t.Context(), Peer{Addr: addrA}); err == nil || !strings.Contains(err.Error(), "over UDP alone an address is one endpoint's") {
		t.Error(err)
	}
	for name, x := range map[string]struct {
		a  Config
		at Peer
	}{
		"Ethernet": {Config{}, Peer{Addr: addrB}}, "nothing": {Config{}, Peer{}}, "the other family": {Config{}, Peer{Addr: udpAddr("[fe80::1]:7100")}},
		"for another kind": {Config{Profile: new(FPGA())}, Peer{Addr: asked}}, "of another kind": {Config{}, Peer{Addr: asked, Profile: new(FPGA())}},
	} {
		w := newFindWorld(t, &x.a, nil)
		if p, err := w.a.Find(t.Context(), x.at); err == nil || p != (Peer{}) || w.questions() > 0 || errors.Is(err, ErrPeerDown) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		w.end()
		if _, err := w.a.Find(t.Context(), Peer{Addr: asked}); err == nil || x.a.Profile == nil && !errors.Is(err, ErrClosed) {
			t.Errorf("%s: closed: %v", name, err)
		}
	}
}

// TestFindByMany checks that goroutines that ask for the same address share the question; that one
// that gives up leaves it to the others; and that Close ends it for all.
func TestFindByMany(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newFindWorld(t, &Config{}, nil)
			defer w.end()
			var found, ended sync.WaitGroup
			for range 8 {
				found.Go(func() {
					p, err := w.a.Find(t.Context(), Peer{Addr: asked})
					if closed && !errors.Is(err, ErrClosed) || !closed && (err != nil || p.ID != 2) {
						t.Errorf("closed %v: %+v, %v", closed, p, err)
					}
				})
			}
			ctx, cancel := context.WithCancel(t.Context())
			for range 8 {
				ended.Go(func() {
					if _, err := w.a.Find(ctx, Peer{Addr: asked}); !errors.Is(err, context.Canceled) {
						t.Errorf("ended: %v", err)
					}
				})
			}
			time.Sleep(500 * time.Millisecond)
			cancel()
			ended.Wait()
			found.Go(func() {
				if _, err := w.a.Find(t.Context(), Peer{Addr: asked}); err != nil && !closed {
					t.Error(err)
				}
			})
			synctest.Wait()
			if n := w.questions(); n > 10 {
				t.Errorf("asked %d times by 17", n)
			}
			if closed {
				w.a.Close()
			} else {
				w.b = w.open(asked, &Config{ID: 2, AcceptAny: true})
			}
			found.Wait()
			if n := len(w.a.discoveries); n != 0 {
				t.Errorf("%d questions are left", n)
			}
		})
	}
}

// TestForgedIdentity checks that an answer counts if it comes from the address that was asked,
// under the id that was asked for, to the life that asked, and says what could be (attack A22,
// SECURITY.md).
func TestForgedIdentity(t *testing.T) {
	for name, x := range map[string]struct {
		from   transport.Addr
		src    frame.EndpointID
		change func(*frame.Handshake, *frame.Refusal)
		cut    int
		found  bool
	}{
		"the answer":         {from: asked, found: true},
		"another life":       {from: asked, change: func(h *frame.Handshake, _ *frame.Refusal) { h.Sender++; h.Receiver++ }},
		"another address":    {from: udpAddr("10.0.0.3:7100")},
		"another port":       {from: udpAddr("10.0.0.2:7101")},
		"for another id":     {from: asked, src: 9},
		"nobody's id":        {from: asked, change: func(_ *frame.Handshake, i *frame.Refusal) { i.ID = 0 }},
		"more than there is": {from: asked, change: func(_ *frame.Handshake, i *frame.Refusal) { i.Size = 1<<32 + 1 }},
		"cut":                {from: asked, cut: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFindWorld(t, &Config{AcceptAny: true}, nil)
				defer w.end()
				go func() {
					time.Sleep(time.Millisecond)
					_, h := w.question()
					h = refusing(h.Sender)
					i := frame.Refusal{ID: 5, Size: 64}
					if x.change != nil {
						x.change(&h, &i)
					}
					b := referring(frame.Header{Src: x.src, Dst: 1}, h, i)
					w.net.Inject(x.from, asking, b[:len(b)-x.cut])
				}()
				p, err := w.a.Find(t.Context(), Peer{Addr: asked})
				if x.found && (err != nil || p != Peer{ID: 5, Addr: asked, Size: 64}) || !x.found && !errors.Is(err, ErrPeerDown) {
					t.Errorf("%+v, %v", p, err)
				}
				for _, f := range w.sent {
					if h, ok := handshakeIn(&f); !ok || h.Kind != frame.HandshakeHello || f.Dst != 0 {
						t.Errorf("it was answered: %v", f)
					}
				}
			})
		})
	}
}

// TestInquiryIsNoConnection checks that an endpoint that answers a question by a WELCOME under the id
// 0, and does not say who it is, is not found, and does not become a peer.
func TestInquiryIsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, _ := NewRegion(4096)
		w := newFindWorld(t, &Config{AcceptAny: true, Memory: memory}, nil)
		defer w.end()
		go func() {
			time.Sleep(time.Millisecond)
			_, h := w.question()
			b := make([]byte, frame.HandshakeSize)
			welcome := frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 7, Receiver: h.Sender}
			welcome.Put(b, 1, 0)
			w.net.Inject(asked, asking, b)
			b = make([]byte, frame.SessionHeaderSize+frame.MessageHeaderSize)
			header := frame.SessionHeader{Dst: 1, ID: 8, Tag: session.Tag(session.Epoch(h.Sender), 7), Ack: h.Sender}
			header.Put(b)
			m := frame.Message{Txn: 7, CompletionAddr: 0, CompletionValue: 1, Index: frame.NotHandshake}
			m.Put(b[frame.SessionHeaderSize:])
			w.net.Inject(asked, asking, b)
		}()
		if _, err := w.a.Find(t.Context(), Peer{Addr: asked}); !errors.Is(err, ErrPeerDown) {
			t.Error(err)
		}
		if s := w.a.Stats(); s.Peers != 0 || memory.Load32(0) != 0 || s.Refused[RefusedForeign] < 2 {
			t.Errorf("%d peers, %d was written; refused %v", s.Peers, memory.Load32(0), s.RefusedReasons())
		}
	})
}

// TestWrongID checks that a connection to an id that its peer has not fails in a round trip, with
// the id that it has, until it has met the peer; and so again after Reset.
func TestWrongID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFindWorld(t, &Config{}, &Config{AcceptAny: true})
		defer w.end()
		c := w.connect(w.a, Peer{ID: 7, Addr: asked, Size: 64})
		for range 2 {
			began := time.Now()
			err := c.Write(t.Context(), write(0, nil, 0, 1))
			var peer *PeerError
			var other *IDError
			if !errors.Is(err, ErrWrongID) || errors.Is(err, ErrPeerDown) || !errors.As(err, &peer) || peer.ID != 7 || peer.Timeout() ||
				!errors.As(err, &other) || *other != (IDError{Want: 7, Is: 2}) || time.Since(began) > 2*time.Millisecond {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			if want := "dgrdma: peer 7 at 10.0.0.2:7100: it is endpoint 2, not 7; "; !strings.HasPrefix(err.Error(), want) || c.Err().Error() != err.Error() {
				t.Errorf("%v, want %s..., and Err is %v", err, want, c.Err())
			}
			if err := c.Reset(0); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		down := 0
		for _, e := range w.events {
			if e.Kind == PeerDown && e.Conn == c && errors.Is(e.Err, ErrWrongID) {
				down++
			}
		}
		if down != 2 || w.b.Stats().Peers != 0 {
			t.Errorf("events %v, %d peers", w.events, w.b.Stats().Peers)
		}
	})
}

// TestIdentityOfAPeerThatIsThere checks that a peer that was met is not lost for what a sender says
// that knows the life that once asked.
func TestIdentityOfAPeerThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFindWorld(t, &Config{}, &Config{AcceptAny: true})
		defer w.end()
		c := w.connect(w.a, Peer{ID: 2, Addr: asked})
		if err := c.Write(t.Context(), write(0, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		mine := c.Stats().Mine
		w.net.Inject(asked, asking, referring(frame.Header{Src: 2, Dst: 1}, refusing(mine), frame.Refusal{ID: 5}))
		time.Sleep(time.Second)
		if err := c.Write(t.Context(), write(0, nil, 0, 2)); err != nil || c.Stats().Restarts != 0 {
			t.Error(err)
		}
	})
}

// TestWrongIDIsAnsweredOnce checks that a HELLO to another id, or to none, is answered over UDP if its
// sender would be heard, once, with no more bytes than it has; and that an answer is not (attack
// A9, SECURITY.md).
func TestWrongIDIsAnsweredOnce(t *testing.T) {
	stranger, peer := udpAddr("10.0.0.3:1"), udpAddr("10.0.0.4:1")
	ask := frame.Handshake{Kind: frame.HandshakeHello, Sender: 5}
	for name, x := range map[string]struct {
		from   transport.Addr
		dst    frame.EndpointID
		hello  frame.Handshake
		length int  // negative: from the id 0
		quiet  bool // it accepts no unknown sources
		told   bool
	}{
		"nobody's id":         {stranger, 0, ask, frame.RefusedSize, false, true},
		"another id":          {stranger, 7, ask, frame.ListedSize, false, true},
		"from nobody":         {stranger, 7, ask, -frame.ListedSize, false, false},
		"no message":          {stranger, 7, frame.Handshake{}, frame.ListedSize, false, false},
		"too short":           {stranger, 0, ask, frame.RefusedSize - 1, false, false},
		"one who refers":      {stranger, 0, refusing(5), frame.ListedSize, false, false},
		"a WELCOME":           {stranger, 0, frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 5, Receiver: 6}, frame.ListedSize, false, false},
		"a CONFIRM":           {stranger, 0, frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 5, Receiver: 6}, frame.ListedSize, false, false},
		"over Ethernet":       {addrA, 0, ask, frame.ListedSize, false, false},
		"strangers unwelcome": {stranger, 0, ask, frame.ListedSize, true, false},
		"its peer":            {peer, 0, ask, frame.ListedSize, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, w := openForgery(t, Config{})
				defer e.Close()
				peerKnown := x.from == peer
				if peerKnown {
					w.introduce(t, peer, 1, 4)
				}
				e.AcceptAny(!x.quiet)
				w.frames(time.Hour)
				before := e.Stats()
				src := frame.EndpointID(1)
				if x.length < 0 {
					x.length, src = -x.length, 0
				}
				b := make([]byte, x.length)
				if x.hello == (frame.Handshake{}) {
					w.shake(x.from, 1, ask) // which is not to be taken for it
					w.frames(time.Second)
					hdr := frame.Header{Dst: x.dst, Src: 1, Seq: 1}
					hdr.Put(b)
				} else {
					x.hello.Put(b, x.dst, src)
				}
				w.give(x.from, b)
				sent := w.frames(time.Second)
				if len(sent) > 1 || (len(sent) == 1) != x.told {
					t.Fatalf("%d frames: %+v", len(sent), sent)
				}
				after := e.Stats()
				if after.Peers != before.Peers || len(e.discoveries) > 0 || (after.Refused[RefusedDestination] > before.Refused[RefusedDestination]) == (x.told && x.dst == 0) {
					t.Errorf("%d peers, refused %v", after.Peers, after.RefusedReasons())
				}
				if !x.told {
					return
				}
				i, ok := sent[0].f.Refusal()
				h, _ := handshakeIn(&sent[0].f)
				if !ok || i != (frame.Refusal{ID: 2, Size: 4096}) || h != refusing(5) || sent[0].f.Src != x.dst || sent[0].f.Dst != 1 || sent[0].to != x.from || sent[0].n > x.length {
					t.Errorf("%+v in %d bytes to %v", i, sent[0].n, sent[0].to)
				}
				// The answer, forged to an endpoint that did not ask.
				for _, dst := range []frame.EndpointID{2, 0, 7} {
					w.give(x.from, referring(frame.Header{Dst: dst, Src: 9}, h, i))
				}
				if sent := w.frames(time.Hour); len(sent) > 0 && !peerKnown {
					t.Errorf("an answer is answered: %+v", sent)
				}
			})
		})
	}
}

// TestFloodOfQuestions checks that a flood of questions gets as many answers as unknown sources get
// at once, and that nothing is kept (attacks A4 and A9, SECURITY.md).
func TestFloodOfQuestions(t *testing.T) {
	e, w := openForgery(t, Config{})
	defer e.Close()
	const questions = 20_000
	h := frame.Handshake{Kind: frame.HandshakeHello, Sender: 5}
	asked := 0
	for i := range questions {
		b := make([]byte, frame.RefusedSize)
		h.Put(b, 0, 1)
		asked += len(b)
		w.give(udpAddr(fmt.Sprintf("10.1.%d.%d:1", i>>8, i&255)), b)
	}
	for deadline := time.Now().Add(time.Minute); e.Stats().FramesReceived < questions; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(e.Stats().FramesReceived)
		}
	}
	answered, bytes := 0, 0
	for _, s := range w.frames(0) {
		answered++
		bytes += s.n
	}
	if s := e.Stats(); bytes > asked || answered == 0 || s.Peers != 0 || uint64(answered) > s.Challenges {
		t.Errorf("%d answers with %d bytes for %d; %d peers", answered, bytes, asked, s.Peers)
	}
}

// TestFindWithinContext checks that a discovery that its context ended is a timeout to a program
// that asks for that.
func TestFindWithinContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFindWorld(t, &Config{}, nil)
		defer w.end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := w.a.Find(ctx, Peer{Addr: asked})
		var timeout net.Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Error(err)
		}
	})
}
