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
