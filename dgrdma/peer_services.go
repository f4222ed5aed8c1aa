package dgrdma

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

// ErrNoService is why nothing is posted to a service that the peer has not. The error is
// a [*ServiceError].
var ErrNoService = errors.New("dgrdma: the peer has no such service")

// ServiceError says which service a peer was taken to have, and which it has.
type ServiceError struct {
	Want string
	Have []string
}

func (e *ServiceError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("it serves nothing, so no %s either; is it the peer that you mean, and does its program add that?", e.Want)
	}
	return fmt.Sprintf("it serves %s, not %s; is it the peer that you mean?", strings.Join(e.Have, ", "), e.Want)
}

func (e *ServiceError) Unwrap() error { return ErrNoService }

// localServices are what HELLO, WELCOME and CONFIRM say of our services: to peers that may write into the
// memory, and to guests, which may not.
type localServices struct {
	all, guests atomic.Pointer[frame.Services]
}

func (o *localServices) init(memory frame.ServiceName, there bool) {
	var all, guests frame.Services
	if there {
		all.Add(frame.Service{Name: memory})
	}
	o.all.Store(&all)
	o.guests.Store(&guests)
}

// to returns what a peer is told.
func (o *localServices) to(guest bool) *frame.Services {
	if guest {
		return o.guests.Load()
	}
	return o.all.Load()
}

// add adds a service for which there is room. Guarded by the endpoint's mu.
func (o *localServices) add(s frame.Service) {
	all, guests := *o.all.Load(), *o.guests.Load()
	all.Add(s)
	guests.Add(s)
	o.all.Store(&all)
	o.guests.Store(&guests)
}

// peerServices is what a peer says of its services.
type peerServices struct {
	list   frame.Services
	listed bool // there is a list: what is not in it is none
}

// serves implements sendingKind.
func (s *peerServices) serves(name frame.ServiceName, _ bool) error {
	if !s.listed {
		return nil
	}
	if _, ok := s.list.Find(name); ok {
		return nil
	}
	e := &ServiceError{Want: name.String()}
	for _, x := range s.list.All() {
		e.Have = append(e.Have, x.Name.String())
	}
	return e
}

// said returns what a frame of the handshake says of services.
func said(f *frame.Frame) (s peerServices) {
	s.list, s.listed = f.Services()
	return s
}

// learn takes what the peer says in the same session. Services are added, and none
// ever goes: of two that come out of order the longer one counts. It reports whether it
// said something new of the peer's.
func (s *peerServices) learn(said peerServices) (news bool) {
	if said.listed && (!s.listed || len(said.list.All()) > len(s.list.All())) {
		*s, news = said, true
	}
	return news
}

// base implements sendingKind.
func (s *peerServices) base(name frame.ServiceName) uint32 {
	base, _ := s.list.Find(name)
	return base
}

// refuse fails what is posted to services that the peer has not.
func (n *sessionSending) refuse(fin *finished) {
	for _, t := range slices.Collect(n.posted.Waiting()) {
		if err := n.serves(t.flow.name, t.flow.letters != nil); err != nil {
			n.lose(t, fin, n.terms.peerError("post", err))
		}
	}
	n.roomMade()
}

// refused fails the letters that wait, when the peer has said that it takes no session and that to wait changes nothing of it:
// by letters services ask for answers, as a link does that is dialed. Writes wait until the peer is given up.
func (n *sessionSending) refused(fin *finished) {
	err := n.refusal()
	if err == nil || n.m.Refusal == session.NoRoom {
		return
	}
	for _, t := range slices.Collect(n.posted.Waiting()) {
		if t.flow.letters != nil {
			n.lose(t, fin, err)
		}
	}
	n.roomMade()
}

// tellServices tells our services again, to a peer that does not know of a new service.
func (c *Conn) tellServices() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tx.kind.tellAgain(c.ep.now()) {
		c.entry.queue()
	}
}
