package endpoint

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestServeIsToldAnew: a peer that does not say that it knows of a service is told again
// soon, of the second one as often as of the first, also if somebody asked under its name
// whether another life of it may be there.
func TestServeIsToldAnew(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		s.knows(1)
		s.recv(time.Minute)
		first := 0
		for i := range 4 {
			if i == 2 {
				s.send(1, msg{Message: frame.Hello{Life: 99}.Message()})
				s.recv(time.Minute)
			}
			serve(t, e, newShelf(fmt.Sprintf("post%d", i), 1<<16))
			asked := 0
			for _, h := range s.hellos(200 * time.Millisecond) {
				if h.Peer != life {
					t.Errorf("service %d: %+v", i, h)
				} else if !h.Tells {
					asked++
				}
			}
			switch first = max(first, asked); {
			case asked != first || asked < 3:
				t.Errorf("service %d is told, and asked for an answer %d times at once", i, asked)
			}
			s.recv(time.Minute)
			s.knows(i + 2)
			if s.recv(time.Minute); len(s.recv(time.Hour)) > 0 {
				t.Error("told on when the peer has heard of it")
			}
		}
	})
}

// TestServeIsToldTheSilent: a peer that came by itself is told of a service however long it
// has been silent, and is not asked for ever whether it heard.
func TestServeIsToldTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		w.comes(t, 10)
		w.frames(time.Hour)
		serve(t, e, newShelf("post", 1<<16))
		sent := w.frames(time.Hour)
		if len(sent) != 1 {
			t.Fatalf("%d frames, want 1", len(sent))
		}
		if list, ok := sent[0].f.Services(); !ok || len(list.All()) != 2 {
			t.Errorf("told of %v", list.String())
		}
	})
}

// TestServeBeforeThePeerIsThere: nobody is answered who has not asked.
func TestServeBeforeThePeerIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		connectTo(t, e, 10)
		before := len(w.frames(time.Hour))
		serve(t, e, newShelf("post", 1<<16))
		sent := w.frames(time.Hour)
		for _, s := range sent {
			if h, ok := helloOf(&s.f); !ok || h.Tells {
				t.Errorf("%+v", h)
			}
		}
		if before == 0 || len(sent) > before {
			t.Errorf("%d introductions in an hour, and %d before", len(sent), before)
		}
	})
}
