package endpoint

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestKeptLifeIsAnswered: who keeps the life of a peer answers what it asks in that life.
func TestKeptLifeIsAnswered(t *testing.T) {
	withStranger(t, Config{KeepOldLife: true}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.hello(frame.Hello{Life: life})
		if got, want := s.hellos(time.Second), (frame.Hello{Life: s.theirs, Peer: life, Tells: true}); !slices.Equal(got, []frame.Hello{want}) {
			t.Errorf("answered by %+v, want %+v", got, want)
		}
	})
}

// TestAskedForServices: a life that is not believed yet is told which services there are if
// its own introduction was as long, and so is each of ours, which has a list. What the life
// that is believed says meanwhile makes no difference (attack A9, SECURITY.md).
func TestAskedForServices(t *testing.T) {
	for _, length := range []int{helloSize, toldSize - 1, toldSize, toldSize + 1} {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{})
			defer e.Close()
			w.introduce(t, addrA, 1, 5)
			w.padded(addrA, 1, frame.Hello{Life: 6}.Message(), length-helloSize)
			for _, other := range []int{toldSize, helloSize} {
				mine := e.Conns()[0].Stats().Mine
				w.padded(addrA, 1, frame.Hello{Life: 5, Peer: mine, Tells: true}.Message(), other-helloSize)
				asked := 0
				for _, sent := range w.frames(100 * time.Millisecond) {
					if h, _ := helloOf(&sent.f); h.Peer != 6 {
						continue
					}
					asked++
					if _, told := sent.f.Services(); told != (length >= toldSize) || sent.n > length {
						t.Errorf("asked with %d bytes: told %v in %d", length, told, sent.n)
					}
				}
				if asked == 0 {
					t.Errorf("asked with %d bytes: not answered", length)
				}
			}
		})
	}
}

// TestWhoBelievesUs: which introduction of another life is believed at once, while the life
// that is believed has not shown that it believes ours. Who says that it believes ours can
// only have been told of it when nothing was kept of us; for who asks, the present life is
// named again, which may have lost what was kept of us.
func TestWhoBelievesUs(t *testing.T) {
	const nobody, us, another = 0, 1, 4711
	type says struct {
		named uint32
		tells bool
	}
	for _, x := range []struct {
		name   string
		paired bool
		says   says
		want   frame.Hello // 1: our life; 2: one of ours that is new; of none: it is refused
	}{
		{"it says that it believes ours", false, says{us, true}, frame.Hello{Life: 1, Peer: 80, Tells: true}},
		{"it asks whether we are who it heard of", false, says{us, false}, frame.Hello{Life: 1, Peer: 70}},
		{"it asks who we are", false, says{nobody, false}, frame.Hello{Life: 1, Peer: 70}},
		{"it believes another one of ours", false, says{another, true}, frame.Hello{}},
		{"it asks whether we are another one", false, says{another, false}, frame.Hello{}},
		{"the present one believes ours", true, says{us, true}, frame.Hello{Life: 2, Peer: 80}},
		{"the present one believes ours, and it asks", true, says{nobody, false}, frame.Hello{Life: 2, Peer: 80}},
		{"the present one believes ours, and it asks for another", true, says{another, false}, frame.Hello{}},
	} {
		t.Run(x.name, func(t *testing.T) {
			withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
				mine := resetInto70(c, s)
				if x.paired {
					s.hello(frame.Hello{Life: 70, Peer: mine, Tells: true})
				}
				s.recv(700 * time.Millisecond) // the next hello is due at 1.26 s
				h := frame.Hello{Life: 80, Peer: x.says.named, Tells: x.says.tells}
				if h.Peer == us {
					h.Peer = mine
				}
				s.hello(h)
				got := s.hellos(time.Millisecond)
				if len(got) == 0 {
					got = []frame.Hello{{}}
				}
				switch got[0].Life {
				case 0:
				case mine:
					got[0].Life = 1
				default:
					got[0].Life = 2
				}
				st := c.Stats()
				if len(got) != 1 || got[0] != x.want || (st.Theirs == 80) != x.want.Tells || st.Mine != mine || st.RefusedBy(RefusedForeign) > 0 != (x.want.Life == 0) {
					t.Errorf("answered by %+v, want %+v; life %d is believed, refused %v", got, x.want, st.Theirs, st.RefusedReasons())
				}
			})
		})
	}
}

// TestWhoIsBelievedFirst: a peer of which no life is believed has to name ours.
func TestWhoIsBelievedFirst(t *testing.T) {
	for _, h := range []frame.Hello{{Life: 70}, {Life: 70, Tells: true}, {Life: 70, Peer: 4711}, {Life: 70, Peer: 4711, Tells: true}} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			c.Reset(0)
			s.recv(time.Second)
			s.hello(h)
			if got := s.hellos(time.Millisecond); len(got) != 1 || got[0].Peer != 70 || got[0].Tells || c.Stats().Theirs != 0 {
				t.Errorf("%+v: asked by %+v, life %d is believed", h, got, c.Stats().Theirs)
			}
		})
	}
}

// TestConnectedMeanwhile: a peer that was told of a life of ours as a stranger, and names it
// when we have connected to it, is believed; and if another life of it was faster, it is
// asked.
func TestConnectedMeanwhile(t *testing.T) {
	for _, faster := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{})
			defer e.Close()
			w.hello(addrA, 1, frame.Hello{Life: 5})
			told, _ := helloOf(&w.frames(time.Millisecond)[0].f)
			c, err := e.Connect(Peer{ID: 1, Addr: addrA})
			if err != nil {
				t.Fatal(err)
			}
			want := frame.Hello{Life: told.Life, Peer: 5, Tells: true}
			if faster {
				w.introduce(t, addrA, 1, 6)
				want = frame.Hello{Peer: 5}
			}
			w.frames(time.Second)
			w.hello(addrA, 1, frame.Hello{Life: 5, Peer: told.Life, Tells: true})
			sent := w.frames(time.Millisecond)
			if len(sent) != 1 {
				t.Fatalf("%d frames answer", len(sent))
			}
			got, _ := helloOf(&sent[0].f)
			if faster {
				got.Life = 0 // whatever it is
			}
			if st := c.Stats(); got != want || (st.Theirs == 5) == faster {
				t.Errorf("answered by %+v, want %+v; life %d is believed", got, want, st.Theirs)
			}
		})
	}
}

// TestAnswerStaysOwed: who asked is answered, whatever it says behind that at once.
func TestAnswerStaysOwed(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.hello(frame.Hello{Life: life, Peer: 4711})
		s.hello(frame.Hello{Life: life, Peer: s.theirs, Tells: true})
		if got := s.hellos(time.Second); len(got) != 1 || got[0] != (frame.Hello{Life: s.theirs, Peer: life, Tells: true}) {
			t.Errorf("answered by %+v", got)
		}
	})
}

// TestOnlyItselfBelievesUs: a life that says that it believes another one of ours, or another
// one that says so, does not end that the present one is asked whether it believes ours.
func TestOnlyItselfBelievesUs(t *testing.T) {
	for _, x := range []struct {
		says uint32
		ours bool // and of our present life, though the one that we believe wrote to us
	}{{70, false}, {80, false}, {80, true}} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			mine := resetInto70(c, s)
			h := frame.Hello{Life: x.says, Peer: 4711, Tells: true}
			if x.ours {
				h.Peer = mine
				s.send(2, data(70, 1, 1, 64, pattern(1, 8)))
			}
			s.hello(h)
			s.recv(100 * time.Millisecond)
			if got := s.hellos(time.Second); !slices.Contains(got, frame.Hello{Life: mine, Peer: 70}) {
				t.Errorf("%+v was said: asked by %+v", h, got)
			}
		})
	}
}

// TestWriteOfNothing: a transaction that writes nothing is done like any other, and is not
// taken for an introduction.
func TestWriteOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		for range 3 {
			if err := p.toB.Write(t.Context(), &Transaction{}); err != nil {
				t.Fatal(err)
			}
		}
		if st := p.toA.Stats(); st.Completions != 3 || st.Restarts != 0 {
			t.Errorf("%d completions, %d restarts", st.Completions, st.Restarts)
		}
	})
}

// TestAskedLifeIsNotBelievedAtOnce: once another life is asked, what was said to our present
// one is not believed any more without an answer.
func TestAskedLifeIsNotBelievedAtOnce(t *testing.T) {
	withStranger(t, Config{GiveUp: time.Second}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		mine := resetInto70(c, s)
		asked := func() bool {
			return slices.ContainsFunc(s.hellos(10*time.Millisecond), func(h frame.Hello) bool { return h.Peer == 80 })
		}
		for n := 0; !asked(); n++ {
			if n == 100 {
				t.Fatal("a life that asks again and again is not asked")
			}
			s.hello(frame.Hello{Life: 80})
		}
		s.hello(frame.Hello{Life: 90, Peer: mine, Tells: true})
		s.recv(time.Millisecond)
		if st := c.Stats(); st.Theirs != 70 {
			t.Errorf("life %d is believed", st.Theirs)
		}
		s.greet(80)
		s.recv(time.Millisecond)
		if st := c.Stats(); st.Theirs != 80 || st.Mine != s.theirs {
			t.Errorf("life %d is believed by %d of ours, want 80 by %d", st.Theirs, st.Mine, s.theirs)
		}
	})
}

// TestLifeIsNamedForHalfOfGiveUp: a life that never showed that it believes ours is named for
// half of GiveUp at least, however often another one says hello meanwhile, as an accepting
// endpoint does that connects to us while the network loses what we answer. Then it is over.
func TestLifeIsNamedForHalfOfGiveUp(t *testing.T) {
	const giveUp = 10 * time.Second
	for _, heard := range []bool{true, false} {
		withStranger(t, Config{GiveUp: giveUp}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			began := time.Now()
			mine := resetInto70(c, s)
			done := make(chan error, 1)
			c.Post(&Transaction{Completion: Word(4, 1), Done: func(_ *Transaction, err error) { done <- err }})
			for at := 100 * time.Millisecond; at < giveUp/2; at += 100 * time.Millisecond {
				time.Sleep(time.Until(began.Add(at)))
				s.hello(frame.Hello{Life: 80})
				got := s.hellos(50 * time.Millisecond)
				if len(got) == 0 || slices.ContainsFunc(got, func(h frame.Hello) bool { return h != frame.Hello{Life: mine, Peer: 70} }) {
					t.Fatalf("after %v: asked by %+v", at, got)
				}
			}
			if heard {
				s.hello(frame.Hello{Life: 70, Peer: mine, Tells: true})
				for _, f := range s.recv(2 * time.Second) {
					if _, hello := helloOf(&f); !hello && f.HasMessages() {
						b := s.encode(2, data(70, 1, 1, 64, pattern(1, 8)))
						frame.PutAck(b, f.Seq, 1)
						s.raw(b)
						break
					}
				}
				s.recv(time.Millisecond)
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				default:
					t.Error("what was posted is not done")
				}
				return
			}
			time.Sleep(time.Until(began.Add(giveUp/2 + 10*time.Millisecond)))
			s.greet(80)
			s.recv(time.Millisecond)
			if st := c.Stats(); st.Theirs != 80 {
				t.Errorf("life %d is believed", st.Theirs)
			}
			if err := <-done; !errors.Is(err, ErrPeerRestarted) {
				t.Errorf("what was posted to the other one: %v", err)
			}
		})
	}
}

// TestLifeThatWroteIsNotNamedForLong: a life that wrote to us and never showed that it believes
// ours is over soon when another one says hello, as of who closed a connection, of which the goodbye
// was lost, and made another one; whether that has heard of our life or not. A life that did not
// write is named for longer.
func TestLifeThatWroteIsNotNamedForLong(t *testing.T) {
	for _, x := range []struct{ wrote, hears bool }{{true, false}, {true, true}, {false, false}} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			mine := resetInto70(c, s)
			if x.wrote {
				s.send(2, data(70, 1, 1, 64, pattern(1, 8)))
			}
			h := frame.Hello{Life: 80}
			if x.hears {
				h.Peer = mine
			}
			began := time.Now()
			for c.Stats().Theirs != 80 && time.Since(began) < 2*time.Second {
				s.hello(h)
				for _, got := range s.hellos(2 * helloFirst) {
					if got.Peer == 80 {
						s.hello(frame.Hello{Life: 80, Peer: got.Life})
					}
				}
			}
			if took := time.Since(began); (took < time.Second) != x.wrote {
				t.Errorf("wrote %v, hears %v: after %v life %d is believed", x.wrote, x.hears, took, c.Stats().Theirs)
			}
		})
	}
}

// TestServicesOfTheLifeThatWasMeant: what was sent to a life that turns out to be over is sent
// again to the one that is, if the services of both are at the same places, and fails if they
// are not; what was not sent yet is sent wherever they are.
func TestServicesOfTheLifeThatWasMeant(t *testing.T) {
	at := func(base uint32) []frame.Service {
		return []frame.Service{serviceAt("memory", 0), serviceAt("post", base)}
	}
	const company = 50 * time.Millisecond // for which what is posted waits
	for _, x := range []struct {
		told []frame.Service // by the life that is over
		base uint32
		sent bool
		want error
	}{
		{at(1 << 16), 1 << 16, true, nil}, {at(1 << 16), 1 << 20, true, ErrPeerRestarted},
		{at(1 << 16), 1 << 16, false, nil}, {at(1 << 16), 1 << 20, false, nil},
		{nil, 0, true, nil}, {nil, 1 << 16, true, ErrPeerRestarted}, // what is not told of is at 0
	} {
		withStranger(t, Config{Coalesce: company}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			post := newShelf("post", 1<<16)
			serve(t, e, post)
			c.Reset(0)
			mine := s.toldLife()
			if x.told == nil {
				shorten(c)
				s.hello(frame.Hello{Life: 70, Peer: mine})
			} else {
				s.introduction(frame.Hello{Life: 70, Peer: mine}, x.told...)
			}
			s.recv(time.Millisecond)
			errNotDone := errors.New("not done")
			done := errNotDone
			tx := &Transaction{Completion: Word(1<<20+MailSize, 1), Done: func(_ *Transaction, err error) { done = err }}
			if err := post.channel(0).Flow().Post(tx); err != nil {
				t.Fatal(err)
			}
			if x.sent {
				s.recv(2 * company)
			}
			s.introduction(frame.Hello{Life: 80, Peer: mine, Tells: true}, at(x.base)...)
			for _, f := range s.recv(2 * time.Second) {
				if _, hello := helloOf(&f); !hello {
					c.mu.Lock()
					id := c.tx.sender.Wide(f.Seq)
					c.mu.Unlock()
					s.alone(stamp(mine, 2, id), 1)
				}
			}
			s.recv(time.Millisecond)
			if st := c.Stats(); st.Theirs != 80 || !errors.Is(done, x.want) {
				t.Errorf("services at %#x, sent %v: %v, want %v; life %d is believed", x.base, x.sent, done, x.want, st.Theirs)
			}
		})
	}
}

// TestIntroductionTakesTime: the time that the introduction takes is the first that is known
// of the way to the peer, but if one of its hellos was lost: then nobody knows which was
// answered.
func TestIntroductionTakesTime(t *testing.T) {
	const latency = 2 * time.Millisecond
	for lost := range 2 {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				n.Link(addrA, addrB, simnet.Link{Latency: latency, Script: func(i int, _ []byte) simnet.Verdict {
					if i < lost {
						return simnet.Drop()
					}
					return simnet.Deliver()
				}})
				n.Link(addrB, addrA, simnet.Link{Latency: latency})
				var toB *Conn
				for i, addr := range []transport.Addr{addrA, addrB} {
					e, err := New(n.Attach(addr, simnet.Config{}), &Config{ID: frame.EndpointID(1 + i), AcceptAny: i == 1})
					if err != nil {
						t.Fatal(err)
					}
					defer e.Close()
					if i == 0 {
						if toB, err = e.Connect(Peer{ID: 2, Addr: addrB}); err != nil {
							t.Fatal(err)
						}
					}
				}
				time.Sleep(time.Second)
				st := toB.Stats()
				if known := st.RTT != 0; !st.Ready() || known != (lost == 0) {
					t.Errorf("%d lost, ready %v; a round trip takes %v, known to take %v", lost, st.Ready(), 2*latency, st.RTT)
				}
			})
		})
	}
}
