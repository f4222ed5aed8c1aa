package endpoint

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// introduction is a hello with a list of services behind it.
func (s *stranger) introduction(h frame.Hello, list ...frame.Service) {
	s.t.Helper()
	told := frame.Services{Known: s.known}
	for _, x := range list {
		told.Add(x)
	}
	b := s.encode(1, msg{Message: h.Message()})
	n := len(b)
	b = append(b, make([]byte, frame.ServicesSize)...)
	told.Put(b[n:])
	s.raw(b)
}

func serviceAt(name string, base uint32) frame.Service {
	n, err := frame.ParseServiceName(name)
	if err != nil {
		panic(err)
	}
	return frame.Service{Name: n, Base: base}
}

// TestLifeThatWasTakenForAnother: what was posted for the services of a life that turns out
// to be over is not sent to where they were, but in the one that is (attack A18,
// SECURITY.md).
func TestLifeThatWasTakenForAnother(t *testing.T) {
	for _, list := range [][]frame.Service{
		{serviceAt("memory", 0), serviceAt("post", 1<<16)},
		{serviceAt("memory", 0)},
	} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			post := newShelf("post", 1<<16)
			serve(t, e, post)
			c.Reset(0)
			mine := uint32(0)
			for _, f := range s.recv(time.Millisecond) {
				if h, ok := helloOf(&f); ok {
					mine = h.Life
				}
			}
			s.introduction(frame.Hello{Life: 70, Peer: mine}, serviceAt("post", 1<<20))
			s.recv(time.Millisecond)
			var b mailbox
			post.channel(0).Mail(b.letter(c.Life(), "letter"))
			s.recv(time.Millisecond)
			s.introduction(frame.Hello{Life: 80, Peer: mine, Tells: true}, list...)
			s.recv(time.Millisecond)
			if c.Stats().Theirs != 80 {
				t.Fatal("that life is not believed")
			}
			for _, f := range s.recv(5 * time.Second) {
				for cur := f.Cursor(); cur.Next(); {
					if m := &cur.Msg; m.Completes() && m.CompletionAddr != 1<<16+mailBell {
						t.Fatalf("a letter to %#x", m.CompletionAddr)
					}
				}
			}
		})
	}
}

// TestServicesSaidLate: a peer that said nothing of its services at first, and then that
// there is none of a name, is sent nothing more for that one.
func TestServicesSaidLate(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		post := newShelf("post", 1<<16)
		serve(t, e, post)
		flow := post.channel(0).Flow()
		if err := flow.Post(&Transaction{Completion: Word(4096, 1)}); err != nil {
			t.Fatal(err)
		}
		var got error
		fenced := &Transaction{Fence: true, Completion: Word(4096, 1), Done: func(_ *Transaction, err error) { got = err }}
		if err := flow.Post(fenced); err != nil {
			t.Fatal(err)
		}
		s.introduction(frame.Hello{Life: life, Peer: s.theirs, Tells: true}, serviceAt("memory", 0))
		s.recv(time.Millisecond)
		if !errors.Is(got, ErrNoService) {
			t.Errorf("%v, want ErrNoService", got)
		}
	})
}

// TestServeIsToldThoughLost: that a service was added is said until the peer knows.
func TestServeIsToldThoughLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		here, there := newShelf("late", 1<<16), newShelf("late", 1<<16)
		serve(t, p.a, here)
		p.net.Link(addrB, addrA, simnet.Link{Down: true})
		serve(t, p.b, there)
		time.Sleep(100 * time.Millisecond)
		p.net.Link(addrB, addrA, simnet.Link{})
		time.Sleep(10 * time.Second)
		var b mailbox
		here.channel(0).Mail(b.letter(p.toB.Life(), "letter"))
		time.Sleep(time.Second)
		b.once(t, nil)
		if got := there.came(); len(got) != 1 {
			t.Errorf("%q came", got)
		}
		sent := p.toA.Stats().FramesSent
		time.Sleep(time.Hour)
		if n := p.toA.Stats().FramesSent - sent; n > 0 {
			t.Errorf("%d frames in an hour at rest", n)
		}
	})
}

// TestServicesNeverGo in a life: a list that comes late, or is changed, counts for nothing.
func TestServicesNeverGo(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		post := newShelf("post", 1<<16)
		serve(t, e, post)
		for _, list := range [][]frame.Service{
			{serviceAt("memory", 0), serviceAt("post", 1<<16)},
			{serviceAt("memory", 0)},
			{serviceAt("memory", 0), serviceAt("other", 1<<16)},
			{},
		} {
			s.introduction(frame.Hello{Life: life, Peer: s.theirs, Tells: true}, list...)
			s.recv(time.Millisecond)
			if err := post.channel(0).Flow().Post(&Transaction{Completion: Word(4096, 1)}); err != nil {
				t.Errorf("after %v: %v", list, err)
			}
		}
	})
}

// TestForgedHelloOfAPeerIsNotAmplified: what is sent to a peer at once because of an
// introduction under its address is no longer than that (attack A9, SECURITY.md).
func TestForgedHelloOfAPeerIsNotAmplified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		w.introduce(t, addrA, 1, 5)
		asked, sent, frames := 0, 0, 0
		for i := range uint32(100) {
			asked += w.hello(addrA, 1, frame.Hello{Life: 6 + i})
			for _, s := range w.frames(time.Millisecond) {
				sent += s.n
				frames++
			}
		}
		for _, s := range w.frames(time.Hour) {
			sent += s.n
			frames++
		}
		if sent > 2*asked {
			t.Errorf("%d bytes in %d frames for %d in 100", sent, frames, asked)
		}
	})
}
