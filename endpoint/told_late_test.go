package endpoint

import (
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
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

// answers has the peer answer an introduction.
func (s *stranger) answers() {
	s.hello(frame.Hello{Life: life, Peer: s.theirs, Tells: true})
}

// ends fails unless the peer is told no more when it answered a few times.
func (s *stranger) ends() {
	s.t.Helper()
	for range 2 * mostAnswers {
		s.answers()
		if len(s.lists(time.Minute)) == 0 {
			return
		}
	}
	s.t.Error("told for ever")
}

// TestServeIsToldSoonThoughAnotherLifeCame: who forges introductions of other lives under a
// peer's address, now and then or all the time, does not keep that peer from hearing of a new
// service soon, though the first it was told is lost (attack A20, SECURITY.md).
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
				s.ends()
			})
		})
	}
}

// TestServeTwiceWithinARoundTrip: an answer that was under way when a service was added says
// nothing of that one.
func TestServeTwiceWithinARoundTrip(t *testing.T) {
	for _, asked := range []time.Duration{helloFirst + time.Millisecond, 4 * helloFirst, time.Second} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			s.lists(time.Minute)
			serve(t, e, newShelf("first", 1<<16))
			late := len(s.lists(asked)) - 1 // the first does not ask
			serve(t, e, newShelf("second", 1<<16))
			s.lists(time.Millisecond) // lost
			for range late {
				s.answers()
				if len(s.lists(time.Second)) == 0 {
					t.Fatalf("not told of the second by an answer to one of %d to the first", late)
				}
			}
			s.ends()
		})
	}
}

// TestServeWhileThePeerServes: what a peer says by itself of a service that it added does not
// answer what it is told at the same time.
func TestServeWhileThePeerServes(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.lists(time.Minute)
		serve(t, e, newShelf("here", 1<<16))
		s.lists(time.Millisecond) // lost
		s.introduction(frame.Hello{Life: life, Peer: s.theirs, Tells: true}, serviceAt("memory", 0), serviceAt("there", 1<<16))
		if len(s.lists(time.Second)) == 0 {
			t.Error("not told")
		}
		s.answers()
		if got := s.lists(time.Minute); len(got) > 0 {
			t.Errorf("told %d times when it knew", len(got))
		}
	})
}

// TestServeAmidIntroduction: a peer that was asked before a service was added, and answers
// that, is told of it until it knows.
func TestServeAmidIntroduction(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		s.theirs = s.toldLife()
		serve(t, e, newShelf("late", 1<<16))
		s.answers()
		s.lists(time.Millisecond) // lost
		if len(s.lists(time.Second)) == 0 {
			t.Error("not told")
		}
		s.ends()
	})
}

// TestLifeThatKeepsAskingIsFollowed: who was told a life by an endpoint that kept nothing of
// it, and is asked by another one ever since, believes that one in the end: another life of
// its own came first there. What it has posted waits for that and does not fail.
func TestLifeThatKeepsAskingIsFollowed(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		c.Reset(0)
		mine := s.toldLife()
		s.hello(frame.Hello{Life: 70, Peer: mine})
		s.recv(time.Millisecond)
		answered, done := false, error(nil)
		tx := write(64, pattern(1, 16), 0, 1)
		tx.Done = func(_ *Transaction, err error) { answered, done = true, err }
		if err := c.Post(tx); err != nil {
			t.Fatal(err)
		}
		insisted := 0
		for range 3 * leastInsisted {
			s.hello(frame.Hello{Life: 80, Peer: mine})
			for _, h := range s.hellos(helloFirst) {
				if h == (frame.Hello{Life: mine, Peer: 70}) {
					insisted++
				}
			}
		}
		if st := c.Stats(); st.Theirs != 80 || st.Mine != mine || insisted < leastInsisted/2 {
			t.Fatalf("%d believes %d, want that %d believes 80, after the other was named %d times", st.Mine, st.Theirs, mine, insisted)
		}
		s.recv(time.Second)
		if answered {
			t.Fatalf("what was posted ended: %v", done)
		}
		for _, f := range s.recv(2 * time.Second) {
			if cur := f.Cursor(); cur.Next() && cur.Msg.Completes() {
				s.alone(stamp(mine, 2, ack.Wide(c.nextID.Load()).Near(f.Seq)), 1)
			}
		}
		s.recv(time.Second)
		if !answered || done != nil {
			t.Errorf("answered %v: %v", answered, done)
		}
	})
}
