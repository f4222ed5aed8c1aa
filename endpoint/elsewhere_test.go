package endpoint

import (
	"errors"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// shorten has the way to the peer carry no list of services: then a life is believed that says
// nothing of its own.
func shorten(c *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tx.most = toldSize - 1
}

// believedBriefly has the endpoint serve mail, and believe a life that says nothing of services.
// It returns the service, and the endpoint's own life.
func (s *stranger) believedBriefly(e *Endpoint, c *Conn) (post *shelf, mine uint32) {
	s.t.Helper()
	post = newShelf("post", 1<<16)
	serve(s.t, e, post)
	shorten(c)
	c.Reset(0)
	mine = s.toldLife()
	s.hello(frame.Hello{Life: 70, Peer: mine})
	s.recv(time.Millisecond)
	return post, mine
}

// TestSentToNoOtherService: what was sent to a life that told of no services is not sent again
// to the life that was meant, where that has another service at the same place, and not the
// one that it is for (attack A18, SECURITY.md).
func TestSentToNoOtherService(t *testing.T) {
	for _, x := range []struct{ posted, has string }{{"post", "memory"}, {"memory", "post"}} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			post, mine := s.believedBriefly(e, c)
			done := errors.New("not done")
			tx := &Transaction{Completion: Word(MailSize, 1), Done: func(_ *Transaction, err error) { done = err }}
			to := post.channel(0).Flow().Post
			if x.posted == "memory" {
				to = c.Post
			}
			if err := to(tx); err != nil {
				t.Fatal(err)
			}
			s.recv(time.Millisecond)
			s.introduction(frame.Hello{Life: 80, Peer: mine, Tells: true}, serviceAt(x.has, 0))
			for _, f := range s.recv(time.Second) {
				if _, hello := helloOf(&f); !hello && f.HasMessages() {
					t.Errorf("for %s: sent again to a peer that has %s", x.posted, x.has)
					break
				}
			}
			if st := c.Stats(); st.Theirs != 80 || !errors.Is(done, ErrPeerRestarted) {
				t.Errorf("for %s: %v; life %d is believed", x.posted, done, st.Theirs)
			}
		})
	}
}

// TestLetterToNoOtherService: a letter that left before it was known where the peer's service
// is goes to no life that has it elsewhere, as what it was sent to said since, too.
func TestLetterToNoOtherService(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		post, mine := s.believedBriefly(e, c)
		settled := errors.New("not settled")
		post.channel(0).Mail(Letter{Life: c.Life(), Bytes: []byte("letter"), Settled: func(err error) { settled = err }})
		left := false
		for _, f := range s.recv(time.Millisecond) {
			_, hello := helloOf(&f)
			left = left || !hello && f.HasMessages()
		}
		s.introduction(frame.Hello{Life: 70, Peer: mine}, serviceAt("post", 1<<16))
		s.recv(time.Millisecond)
		s.introduction(frame.Hello{Life: 80, Peer: mine, Tells: true}, serviceAt("post", 1<<16))
		for _, f := range s.recv(time.Second) {
			if _, hello := helloOf(&f); !hello && f.HasMessages() {
				t.Error("sent again to an address that is another one's")
				break
			}
		}
		if st := c.Stats(); !left || st.Theirs != 80 || !errors.Is(settled, ErrPeerRestarted) {
			t.Errorf("sent: %v; %v; life %d is believed", left, settled, st.Theirs)
		}
	})
}
