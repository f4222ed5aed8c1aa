package endpoint

import (
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// lists returns what the life that the endpoint believes is told of services until d from
// now.
func (s *stranger) lists(d time.Duration) (all []string) {
	for _, f := range s.recv(d) {
		if h, ok := helloOf(&f); ok && h.Peer == life {
			list, _ := f.Services()
			all = append(all, list.String())
		}
	}
	return all
}

// knows has the peer answer an introduction, and say how many services it knows.
func (s *stranger) knows(n int) {
	s.t.Helper()
	s.known = n
	s.introduction(frame.Hello{Life: life, Peer: s.theirs, Tells: true}, serviceAt("memory", 0))
}

// ends fails unless the peer, which knows so many, is told no more.
func (s *stranger) ends(known int) {
	s.t.Helper()
	s.lists(10 * time.Second)
	s.knows(known)
	if n := len(s.lists(time.Hour)); n > 0 {
		s.t.Errorf("told %d times what it knows", n)
	}
}

// TestServeIsToldSoonThoughAnotherLifeCame: who forges introductions of other lives under a
// peer's address, now and then or all the time, does not keep that peer from hearing of a new
// service soon, though the first it was told is lost.
func TestServeIsToldSoonThoughAnotherLifeCame(t *testing.T) {
	for _, x := range []struct {
		name         string
		pause        time.Duration
		before, amid int
	}{
		{"one long before", time.Minute, 1, 0},
		{"one just before", 50 * time.Millisecond, 1, 0},
		{"more and more", 50 * time.Millisecond, 10, 10},
	} {
		t.Run(x.name, func(t *testing.T) {
			withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
				forged := uint32(70)
				forge := func(n int) (told []string) {
					for range n {
						s.hello(frame.Hello{Life: forged})
						forged++
						told = append(told, s.lists(x.pause)...)
					}
					return told
				}
				forge(x.before)
				serve(t, e, newShelf("late", 1<<16))
				told := forge(x.amid)
				told = append(told, s.lists(500*time.Millisecond-time.Duration(x.amid)*x.pause)...)
				if n := len(slices.DeleteFunc(told, func(l string) bool { return l != "memory, late" })); n < 4 {
					t.Errorf("told %d times in 500 ms", n)
				}
				s.ends(2)
			})
		})
	}
}

// TestServeIsToldUntilKnown: whatever a peer answers, it is told of a service until it says
// that it knows as many as there are; the answer may be to what it heard before.
func TestServeIsToldUntilKnown(t *testing.T) {
	for _, mtu := range []int{0, toldMTU} {
		toldUntilKnown(t, mtu)
	}
}

func toldUntilKnown(t *testing.T, mtu int) {
	withStranger(t, Config{MTU: mtu}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.knows(1)
		s.lists(time.Minute)
		serve(t, e, newShelf("first", 1<<16))
		serve(t, e, newShelf("second", 1<<16))
		s.lists(time.Millisecond) // lost
		for _, known := range []int{1, 2, 1, 0} {
			s.knows(known)
			if got := s.lists(9 * time.Second); len(got) == 0 || got[0] != "memory, first, second" {
				t.Fatalf("told %q when it knew %d of 3", got, known)
			}
		}
		s.ends(3)
		s.knows(2) // late
		if n := len(s.lists(time.Hour)); n > 0 {
			t.Errorf("told %d times what it once knew", n)
		}
	})
}

// TestServeWithoutAnswers: a peer that says nothing of services, for which its frames may have
// no room, is told until it answers.
func TestServeWithoutAnswers(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.lists(time.Minute)
		serve(t, e, newShelf("late", 1<<16))
		if n := len(s.lists(time.Millisecond)); n != 1 {
			t.Errorf("told %d times at once", n)
		}
		if n := len(s.lists(time.Second)); n < 4 || n > 6 {
			t.Errorf("told %d times in 1 s", n)
		}
		if n := len(s.lists(time.Hour)); n < 400 || n > 500 {
			t.Errorf("told %d times in 1 h", n)
		}
		s.hello(frame.Hello{Life: life, Peer: s.theirs}) // asks, and answers nothing
		if n := len(s.lists(time.Minute)); n < 5 {
			t.Errorf("told %d times in a minute after it asked", n)
		}
		s.hello(frame.Hello{Life: life, Peer: s.theirs, Tells: true})
		if n := len(s.lists(time.Hour)); n > 0 {
			t.Errorf("told %d times after it answered", n)
		}
	})
}

// TestServeWhileThePeerServes: what a peer says by itself of a service that it added does not
// answer what it is told at the same time.
func TestServeWhileThePeerServes(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.knows(1)
		s.lists(time.Minute)
		serve(t, e, newShelf("here", 1<<16))
		s.lists(time.Millisecond) // lost
		s.introduction(frame.Hello{Life: life, Peer: s.theirs, Tells: true}, serviceAt("memory", 0), serviceAt("there", 1<<16))
		if len(s.lists(time.Second)) == 0 {
			t.Error("not told")
		}
		s.ends(2)
	})
}

// TestServeAmidIntroduction: a peer that was asked before a service was added, and answers
// that, is told of it until it knows.
func TestServeAmidIntroduction(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		s.theirs = s.toldLife()
		serve(t, e, newShelf("late", 1<<16))
		s.knows(1)
		s.lists(time.Millisecond) // lost
		if len(s.lists(time.Second)) == 0 {
			t.Error("not told")
		}
		s.ends(2)
	})
}

// TestKnownOfAnotherLife: what is known of one life of a peer is not said to another one, which
// has yet to tell.
func TestKnownOfAnotherLife(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.knows(1)
		s.recv(time.Minute)
		s.hello(frame.Hello{Life: life, Peer: s.theirs})
		s.introduction(frame.Hello{Life: 99}, serviceAt("memory", 0))
		said := map[uint32]int{}
		for _, f := range s.recv(time.Second) {
			if h, ok := helloOf(&f); ok {
				list, told := f.Services()
				if n, again := said[h.Peer]; !told || again && n != list.Known {
					t.Errorf("%+v: %v, knows %d", h, told, list.Known)
				}
				said[h.Peer] = list.Known
			}
		}
		if said[life] != 1 || said[99] != 0 || len(said) != 2 {
			t.Errorf("knows %v of each life", said)
		}
	})
}

// TestIntroductionIsShort: who is believed, and knows all, is told once; who does not say that
// it believes our life is asked in one rhythm, whatever it knows.
func TestIntroductionIsShort(t *testing.T) {
	for _, x := range []struct {
		name        string
		answers     bool
		known       int
		least, most int // introductions in 1 s
	}{
		{"all is well", true, 1, 1, 1},
		{"it knows nothing", true, 0, 7, 7},
		{"it does not believe", false, 1, 7, 7},
		{"neither", false, 0, 7, 7},
	} {
		t.Run(x.name, func(t *testing.T) {
			withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
				c.Reset(0)
				s.known, s.theirs = x.known, s.toldLife()
				s.introduction(frame.Hello{Life: life, Peer: s.theirs, Tells: x.answers}, serviceAt("memory", 0))
				if n := len(s.lists(helloFirst - time.Millisecond)); n != 1 {
					t.Errorf("told %d times at once", n)
				}
				if n := 1 + len(s.lists(time.Second)); n < x.least || n > x.most {
					t.Errorf("told %d times in 1 s", n)
				}
			})
		})
	}
}

// TestNoRoomToTell: who has no room to say what it serves does not ask whether that is known.
func TestNoRoomToTell(t *testing.T) {
	withStranger(t, Config{MTU: toldMTU - 8}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.known = 0
		s.introduction(frame.Hello{Life: life, Peer: s.theirs, Tells: true}, serviceAt("memory", 0))
		s.recv(time.Minute)
		if n := len(s.recv(time.Hour)); n > 0 {
			t.Errorf("%d frames in an hour", n)
		}
	})
}

// TestServeBesideAnotherLife: a life that never showed that it believes ours is told of a new
// service soon, also when another one has introduced itself since.
func TestServeBesideAnotherLife(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		s.theirs = s.toldLife()
		s.introduction(frame.Hello{Life: life, Peer: s.theirs}, serviceAt("memory", 0))
		s.recv(time.Minute)
		s.hello(frame.Hello{Life: 99})
		s.recv(time.Minute)
		serve(t, e, newShelf("late", 1<<16))
		if n := len(s.lists(500 * time.Millisecond)); n < 4 {
			t.Errorf("told %d times in 500 ms", n)
		}
	})
}

// TestHowOftenALifeIsNamed that never showed that it believes ours, while another one asks: for
// half of GiveUp, and eight times at least.
func TestHowOftenALifeIsNamed(t *testing.T) {
	withStranger(t, Config{GiveUp: 10 * time.Millisecond}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		s.theirs = s.toldLife()
		s.hello(frame.Hello{Life: life, Peer: s.theirs})
		s.recv(time.Millisecond) // the answer
		named := 0
		for range 1000 {
			for _, h := range s.hellos(10 * time.Millisecond) {
				switch h.Peer {
				case 99:
					if named != leastInsisted {
						t.Errorf("named %d times, want %d", named, leastInsisted)
					}
					return
				case life:
					named++
				}
				s.hello(frame.Hello{Life: 99})
			}
		}
		t.Errorf("named %d times, and still", named)
	})
}

// TestStampOfAnotherLife: who acknowledges under ids that the life that we know cannot have is
// asked who it is.
func TestStampOfAnotherLife(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.knows(1)
		s.recv(time.Minute)
		s.alone(frame.Stamp{Life: s.theirs, ID: 1 << 24}, 0)
		if len(s.hellos(time.Second)) == 0 {
			t.Error("not asked")
		}
	})
}

// TestServeBeforeAnybodyIsThere: who is not there yet, or no more, hears of a service in what
// it is told anyway: nothing is sent for it, and nobody is answered.
func TestServeBeforeAnybodyIsThere(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.learned.Store(true) // it came by itself, and went
		c.Reset(0)
		s.recv(time.Minute)
		serve(t, e, newShelf("late", 1<<16))
		for _, h := range s.hellos(time.Minute) {
			if h.Tells {
				t.Errorf("answers nobody: %+v", h)
			}
		}
	})
}
