package endpoint

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// hellos returns the introductions that come until d from now.
func (s *stranger) hellos(d time.Duration) (all []frame.Hello) {
	for _, f := range s.recv(d) {
		if h, ok := helloOf(&f); ok {
			all = append(all, h)
		}
	}
	return all
}

// toldLife returns the life that the endpoint says it is in. It may have spoken for the one
// before a moment ago.
func (s *stranger) toldLife() uint32 {
	s.t.Helper()
	all := s.hellos(time.Millisecond)
	if len(all) == 0 {
		s.t.Fatal("it introduces itself no more")
	}
	return all[len(all)-1].Life
}

// TestToldAtOnce: what changes for a peer it is told when it changes, and not when it, or
// an alarm, comes next.
func TestToldAtOnce(t *testing.T) {
	for name, change := range map[string]func(e *Endpoint, c *Conn){
		"Reset":     func(_ *Endpoint, c *Conn) { c.Reset(0) },
		"Serve":     func(e *Endpoint, _ *Conn) { e.Serve(newShelf("late", 1<<16)) },
		"AcceptAny": func(e *Endpoint, c *Conn) { c.guest.Store(true); e.AcceptAny(true) },
	} {
		t.Run(name, func(t *testing.T) {
			withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
				s.recv(time.Minute)
				change(e, c)
				if got := s.hellos(time.Millisecond); len(got) == 0 {
					t.Error("the peer is told nothing")
				}
			})
		})
	}
}

// TestServeIsToldSoonAfterAnOutage: each service that is added has the peer asked in short
// intervals again whether it knows, however long it did not answer.
func TestServeIsToldSoonAfterAnOutage(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		serve(t, e, newShelf("first", 1<<16))
		s.hellos(14 * time.Second) // they are 8 s apart now
		serve(t, e, newShelf("second", 1<<16))
		if got := s.hellos(100 * time.Millisecond); len(got) < 3 {
			t.Errorf("told by %+v", got)
		}
	})
}

// TestAcknowledgementEndsAsking: a peer that acknowledges what its life was sent believes
// ours, and is not asked any more.
func TestAcknowledgementEndsAsking(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		mine := s.toldLife()
		s.hello(frame.Hello{Life: 70, Peer: mine})
		if got := s.hellos(100 * time.Millisecond); len(got) < 3 {
			t.Errorf("asked by %+v", got)
		}
		s.alone(stamp(mine, 2, 0), 0)
		if got := s.hellos(time.Hour); len(got) > 0 {
			t.Errorf("asked by %d more in an hour", len(got))
		}
	})
}

// TestAnswerToAnAnswer: who is answered by a peer that it did not know answers too, so that
// both know that they are believed.
func TestAnswerToAnAnswer(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		asked := s.hellos(time.Millisecond)
		if len(asked) != 1 || asked[0].Peer != 0 {
			t.Fatalf("introduced by %+v", asked)
		}
		mine := asked[0].Life
		s.hello(frame.Hello{Life: 2 * life, Peer: mine, Tells: true})
		if got := s.hellos(time.Millisecond); len(got) != 1 || got[0] != (frame.Hello{Life: mine, Peer: 2 * life, Tells: true}) {
			t.Errorf("answered by %+v", got)
		}
		if got := s.hellos(time.Hour); len(got) != 0 {
			t.Errorf("%d more in an hour", len(got))
		}
	})
}

// TestIntroductionTellsIDs: what a peer says of its frame ids when it introduces itself again
// is believed, so that what follows is not taken for a forgery.
func TestIntroductionTellsIDs(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.send(2, data(life, 1, 1, 64, []byte("12345678")))
		s.recv(50 * time.Millisecond)
		const far = 20_000
		b := s.encode(1, msg{Message: frame.Hello{Life: life, Peer: s.theirs, Tells: true}.Message()})
		h := frame.Header{Dst: 2, Src: 1, Flags: frame.FlagMessages}
		h.SetHelloID(far)
		h.Put(b)
		s.raw(b)
		s.send(far+1, data(life+1, 1, 1, 64, []byte("12345678")))
		if !acked(s.recv(50*time.Millisecond), far+1) || c.Stats().Completions != 2 {
			t.Errorf("the next frame was not applied: %v", c.Stats().Refused)
		}
	})
}

// TestInsistedSoon: a hello of a life that is not believed, while the one that is never showed
// that it believes ours, has that one named again at once.
func TestInsistedSoon(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		mine := s.toldLife()
		s.hello(frame.Hello{Life: 70, Peer: mine})
		s.hellos(700 * time.Millisecond) // the next one is due at 1.26 s
		s.hello(frame.Hello{Life: 80})
		if got := s.hellos(time.Millisecond); len(got) != 1 || got[0] != (frame.Hello{Life: mine, Peer: 70}) {
			t.Errorf("asked by %+v", got)
		}
	})
}

// TestOverdueAnswersAreRefused: an introduction that answers to no life of ours is counted,
// and not answered; and likewise one that is not to be followed.
func TestOverdueAnswersAreRefused(t *testing.T) {
	for _, x := range []struct {
		name string
		cfg  Config
		h    frame.Hello
	}{
		{"an answer to a life that is over", Config{}, frame.Hello{Life: 2 * life, Peer: 4711, Tells: true}},
		{"another life while the old one is kept", Config{KeepOldLife: true}, frame.Hello{Life: 2 * life}},
	} {
		t.Run(x.name, func(t *testing.T) {
			withStranger(t, x.cfg, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
				s.hello(x.h)
				got := s.recv(time.Hour)
				if st := c.Stats(); st.RefusedBy(RefusedForeign) != 1 || st.Theirs != life || len(got) != 0 {
					t.Errorf("refused %v, life %d, answered by %d frames", st.Refused, st.Theirs, len(got))
				}
			})
		})
	}
}

// TestRemindedOfIntroduction: a frame of a peer that has not introduced itself has it asked
// in short intervals again, however long it was not there.
func TestRemindedOfIntroduction(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		s.hellos(14 * time.Second) // they are 8 s apart now
		s.send(2, data(life, 1, 1, 64, []byte("12345678")))
		if got := s.hellos(500 * time.Millisecond); len(got) < 3 {
			t.Errorf("asked by %+v", got)
		}
	})
}

// TestAskedByNameOnce: a life that introduced itself is asked by its name, and if it does not
// answer, whoever is there.
func TestAskedByNameOnce(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		mine := s.toldLife()
		s.hello(frame.Hello{Life: 70})
		got := s.hellos(time.Second)
		if len(got) < 2 || got[0] != (frame.Hello{Life: mine, Peer: 70}) {
			t.Fatalf("asked by %+v", got)
		}
		for _, h := range got[1:] {
			if h != (frame.Hello{Life: mine}) {
				t.Errorf("asked by %+v", h)
			}
		}
	})
}

// TestNextLifeKeepsItsName: who is asked under our next life may answer to that name, whoever
// else introduces itself meanwhile, and however often.
func TestNextLifeKeepsItsName(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.hello(frame.Hello{Life: 70})
		asked := s.hellos(time.Millisecond)
		if len(asked) != 1 || asked[0].Peer != 70 {
			t.Fatalf("asked by %+v", asked)
		}
		for range 3 {
			s.hello(frame.Hello{Life: 80})
			s.hello(frame.Hello{Life: 70})
			s.hellos(time.Millisecond)
		}
		s.hello(frame.Hello{Life: 70, Peer: asked[0].Life, Tells: true})
		s.hellos(time.Millisecond)
		if theirs := c.Stats().Theirs; theirs != 70 {
			t.Errorf("life %d is believed", theirs)
		}
	})
}

// TestServeIsToldThoughAnotherLifeCame: a peer is asked whether it knows of a new service until
// it does, though another life introduced itself under its name and did not answer.
func TestServeIsToldThoughAnotherLifeCame(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.hello(frame.Hello{Life: 70})
		s.hellos(time.Minute)
		serve(t, e, newShelf("late", 1<<16))
		told := 0
		for _, f := range s.recv(time.Minute) {
			list, _ := f.Services()
			if h, _ := helloOf(&f); h.Peer == life && list.String() == "memory, late" {
				told++
			}
		}
		if told < 3 {
			t.Errorf("told %d times", told)
		}
		s.hello(frame.Hello{Life: life, Peer: s.theirs, Tells: true})
		if got := s.hellos(time.Minute); len(got) > 0 {
			t.Errorf("told by %+v when it knew", got)
		}
	})
}

// TestAskedAgainWhenHeard: a life that introduced itself and did not answer is asked again when
// frames come that are not of the one that is believed.
func TestAskedAgainWhenHeard(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.hello(frame.Hello{Life: 70})
		s.hellos(time.Minute)
		s.send(2, data(life+1<<30, 1, 1, 64, []byte("12345678")))
		got := s.hellos(time.Second)
		if len(got) < 3 {
			t.Errorf("asked by %+v", got)
		}
		for _, h := range got {
			if h.Peer != 70 {
				t.Errorf("life %d is asked", h.Peer)
			}
		}
	})
}

// TestWrongNameIsPutRight: a peer that answers to another life than ours is told ours.
func TestWrongNameIsPutRight(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.hello(frame.Hello{Life: life, Peer: 4711, Tells: true})
		if got := s.hellos(time.Millisecond); len(got) != 1 || got[0] != (frame.Hello{Life: s.theirs, Peer: life, Tells: true}) {
			t.Errorf("answered by %+v", got)
		}
	})
}

// TestResetAmidIntroduction: a life that is believed when a Reset came behind its frame stays
// believed, by both halves.
func TestResetAmidIntroduction(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	if err := r.c.reset(0); err != nil {
		t.Fatal(err)
	}
	h := r.named(1 << 21)
	var f frame.Frame
	if err := f.Decode(encode(1, 1, h.Message())); err != nil {
		t.Fatal(err)
	}
	if why := r.c.kind.(*native).hello(r.now, &f, h); why != RefusedNone {
		t.Fatal(why)
	}
	if err := f.Decode(encode(1, 2, bare(1<<21, 1, 1))); err != nil {
		t.Fatal(err)
	}
	if why, _ := r.c.rx.receive(r.now, &f); why != RefusedNone || r.c.rx.counters.Completions != 1 {
		t.Errorf("what it sends is refused: %v", why)
	}
}

// TestCloseAmidIntroduction: a connection that was closed when the introduction was looked at
// takes no life.
func TestCloseAmidIntroduction(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	r.c.Close()
	h := frame.Hello{Life: 1 << 21}
	var f frame.Frame
	if err := f.Decode(encode(1, 1, h.Message())); err != nil {
		t.Fatal(err)
	}
	if why := r.c.kind.(*native).hello(r.now, &f, h); why != RefusedForeign || r.c.Err() != ErrClosed {
		t.Errorf("refused as %v, the connection is %v", why, r.c.Err())
	}
}

// TestRestartAnswersFirst: what was posted to the old life has failed when the new one is told
// of.
func TestRestartAnswersFirst(t *testing.T) {
	var order []string
	cfg := Config{OnEvent: func(ev Event) { order = append(order, ev.Kind.String()) }}
	withStranger(t, cfg, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		order = nil
		x := write(64, []byte("12345678"), 0, 1)
		x.Done = func(_ *Transaction, err error) { order = append(order, "done") }
		if err := c.Post(x); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		s.greet(2 * life)
		s.recv(time.Millisecond)
		if want := []string{"done", PeerRestarted.String()}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
	})
}

// TestRemindedAtIntervals: who sends frames of another life is told who we are, not more
// often than hellos may follow each other, and no longer than it does.
func TestRemindedAtIntervals(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		hellos := 0
		for range 100 {
			s.send(2, data(life+1<<30, 1, 1, 64, []byte("12345678")))
			hellos += len(s.hellos(time.Millisecond))
		}
		if hellos < 4 || hellos > 6 {
			t.Errorf("%d hellos in 100 ms, want one each %v", hellos, helloFirst)
		}
		s.hellos(time.Second)
		for i := range frame.Seq(10) {
			s.send(2+i, data(life+uint32(i), 1, 1, 64, []byte("12345678")))
			if got := s.hellos(100 * time.Millisecond); len(got) > 0 {
				t.Errorf("told again when all was well: %+v", got)
			}
		}
		if n := c.Stats().Completions; n != 10 {
			t.Errorf("%d of 10 transactions applied", n)
		}
	})
}

// TestResetKeepsIDs: frame ids go on, as acknowledgements may still be under way.
func TestResetKeepsIDs(t *testing.T) {
	for _, down := range []bool{false, true} {
		withStranger(t, Config{GiveUp: time.Second}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			if down {
				if err := c.Write(t.Context(), write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
					t.Fatal(err)
				}
			}
			before := c.nextID.Load()
			c.Reset(0)
			got := s.recv(time.Millisecond)
			if len(got) == 0 {
				t.Fatal("nothing was sent")
			}
			if id := got[len(got)-1].HelloID(); id-before > 2 {
				t.Errorf("ids go on at %d, the next was %d", id, before)
			}
		})
	}
}
