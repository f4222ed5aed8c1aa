package endpoint

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestAnswersFitTheWire: what a stranger is answered is no longer than frames may be, and
// tells of services where there is room for that.
func TestAnswersFitTheWire(t *testing.T) {
	for mtu := 64; mtu <= toldSize+8; mtu++ {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{MTU: mtu})
			defer e.Close()
			for _, m := range []frame.Message{frame.Hello{Life: 7}.Message(), {Txn: 5, CompletionValue: 1, Count: 1, Index: 1}} {
				w.padded(addrA, 1, m, 300)
				for _, s := range w.frames(time.Second) {
					if _, told := s.f.Services(); s.n > mtu || told != (mtu >= toldSize) {
						t.Errorf("with frames of %d bytes: %d, told of services %v", mtu, s.n, told)
					}
				}
			}
			if n := e.Stats().Challenges; n != 2 {
				t.Errorf("%d answers, want 2", n)
			}
		})
	}
}

// manyAtOnce is a wire that moves many datagrams at once.
type manyAtOnce struct{ *forgery }

func (manyAtOnce) Caps() transport.Caps { return transport.Caps{MTU: 1490, Batch: 1024} }

// TestStrangersAtOnce: of those whose frames come at once some are answered, each once, as
// many as a batch holds, and the others are counted.
func TestStrangersAtOnce(t *testing.T) {
	for _, c := range []struct{ strangers, each, answers int }{
		{1, 2, 1}, {1, 500, 1}, {2, 1, 2}, {100, 3, 100}, {mostReplies, 1, mostReplies}, {500, 1, mostReplies}, {500, 2, mostReplies},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := manyAtOnce{newForgery()}
			seen := make(map[transport.Addr]int)
			e, err := New(w, &Config{ID: 2, Manual: true, AcceptAny: true, Trace: &Trace{FrameSent: func(to PeerName, b []byte, again bool) {
				f, err := frame.Parse(b)
				if h, ok := helloOf(&f); err != nil || !ok || h.Peer != 5 || to.ID != f.Dst || again {
					t.Errorf("%v to %v, again %v: %v", h, to, again, err)
				}
				seen[to.Addr]++
			}}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for i := range c.strangers {
				for range c.each {
					w.hello(simnet.Addr(uint32(i)), 1, frame.Hello{Life: 5})
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
					t.Errorf("%v is answered %d times, and that is seen %d times", a, n, seen[a])
				}
			}
			s := e.Stats()
			refused, again := uint64((c.strangers-c.answers)*c.each), uint64(c.answers*(c.each-1))
			if len(answered) != c.answers || s.Challenges != uint64(c.answers) || s.RefusedBy(RefusedNoSession) != refused || s.Unanswered != refused || s.Duplicates != again {
				t.Errorf("%d of %d are answered, and %d counted, %d twice, %d not, refused %v", len(answered), c.strangers, s.Challenges, s.Duplicates, s.Unanswered, s.RefusedReasons())
			}
		})
	}
}

// TestAnswersAreTraced, by who wants to see them.
func TestAnswersAreTraced(t *testing.T) {
	for name, trace := range map[string]*Trace{"none": nil, "received": {FrameReceived: func(PeerName, *frame.Frame, Reason) {}}} {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{Trace: trace})
			defer e.Close()
			w.hello(addrA, 1, frame.Hello{Life: 5})
			if n := len(w.frames(time.Second)); n != 1 {
				t.Errorf("%s: %d answers", name, n)
			}
		})
	}
}

// TestLifeThatIsOver: who names a life of ours that is over is told another one, and that
// this one knows nothing of it; who names that is met as any stranger. Who was a peer is
// told another one, too.
func TestLifeThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		ask := func(h frame.Hello) frame.Hello {
			w.hello(addrA, 1, h)
			for _, s := range w.frames(time.Second) {
				if h, ok := helloOf(&s.f); ok {
					return h
				}
			}
			t.Fatalf("%+v is not answered", h)
			return frame.Hello{}
		}
		over := ask(frame.Hello{Life: 5, Peer: 6})
		if over.Life == 0 || over.Peer != 0 || !over.Tells {
			t.Errorf("who names a life that is over gets %+v", over)
		}
		if h := ask(frame.Hello{Life: 5, Peer: over.Life}); h.Life == over.Life || h.Peer != 5 || h.Tells {
			t.Errorf("who names the one it was told gets %+v", h)
		}
		if e.peers.len() != 0 {
			t.Error("it was taken for a peer")
		}
		told := ask(frame.Hello{Life: 8})
		ask(frame.Hello{Life: 8, Peer: told.Life, Tells: true})
		for _, c := range e.Conns() {
			c.Close()
		}
		w.frames(time.Millisecond) // the goodbye
		if h := ask(frame.Hello{Life: 8}); h.Life == told.Life || h.Peer != 8 {
			t.Errorf("who was a peer under %+v is told %+v", told, h)
		}
	})
}

// TestStrangersThatAreNotMet: a frame that has nothing to say, or comes from nobody, is not
// answered, whoever is accepted.
func TestStrangersThatAreNotMet(t *testing.T) {
	for _, accept := range []bool{true, false} {
		for name, give := range map[string]func(w *forgery){
			"nobody": func(w *forgery) { w.hello(addrA, 0, frame.Hello{Life: 5}) },
			"an acknowledgement": func(w *forgery) {
				b := make([]byte, frame.HeaderSize+frame.StampSize)
				h := frame.Header{Dst: 2, Src: 1, Seq: 3, AckStart: 1, AckCount: 1}
				h.Put(b)
				w.give(addrA, b)
			},
			"somebody": func(w *forgery) { w.hello(addrA, 1, frame.Hello{Life: 5}) },
		} {
			synctest.Test(t, func(t *testing.T) {
				e, w := openForgery(t, Config{})
				defer e.Close()
				e.AcceptAny(accept)
				give(w)
				met := accept && name == "somebody"
				refused := uint64(1)
				if met {
					refused = 0
				}
				sent := w.frames(time.Second)
				if s := e.Stats(); len(sent) > 0 != met || s.RefusedBy(RefusedSource) != refused {
					t.Errorf("accept %v, %s: %d answers, refused %v", accept, name, len(sent), s.RefusedReasons())
				}
			})
		}
	}
}

// TestStrangersAreTold: of a frame that belongs to nobody the application and the log hear,
// where there are such, with the name that it gives.
func TestStrangersAreTold(t *testing.T) {
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
			w.hello(addrA, 9, frame.Hello{Life: 5, Peer: 6, Tells: true})
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

// narrowTo is a wire with no room for data on the way to one address.
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

// TestStrangerOnANarrowWay: who shows that its address is its own, to which there is no room
// for data, is refused, and others are not.
func TestStrangerOnANarrowWay(t *testing.T) {
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
