package endpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/ack"
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

// offers are what our introductions say of our services: to peers that may write into the
// memory, and to guests, which may not.
type offers struct {
	all, guests atomic.Pointer[frame.Services]
}

func (o *offers) init(memory frame.ServiceName, there bool) {
	var all, guests frame.Services
	if there {
		all.Add(frame.Service{Name: memory})
	}
	o.all.Store(&all)
	o.guests.Store(&guests)
}

// to returns what a peer is told.
func (o *offers) to(guest bool) *frame.Services {
	if guest {
		return o.guests.Load()
	}
	return o.all.Load()
}

// add adds a service for which there is room. Guarded by the endpoint's mu.
func (o *offers) add(s frame.Service) {
	all, guests := *o.all.Load(), *o.guests.Load()
	all.Add(s)
	guests.Add(s)
	o.all.Store(&all)
	o.guests.Store(&guests)
}

// serving is what a peer's introductions say of its services, and how many of ours it knows.
type serving struct {
	list   frame.Services
	listed bool // there is a list: what is not in it is none
}

// serves implements sendingKind.
func (s *serving) serves(name frame.ServiceName, _ bool) error {
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

// needsList reports whether a life is believed only when it says which services it has: services
// of ours write letters, and without a list one would go to the beginning of the peer's memory.
// An introduction without one may be the answer to a short one that somebody forged, and is
// asked for the rest. A peer that has no room for a list has none in its answer either.
func (n *nativeSending) needsList() bool {
	return n.most >= toldSize && len(n.offers.guests.Load().All()) > 0
}

// said returns what an introduction says of services.
func said(f *frame.Frame) (s serving) {
	s.list, s.listed = f.Services()
	return s
}

// learn takes what an introduction of the same life says. Services are added, and none
// ever goes: of two that come out of order the longer one counts. It reports whether it
// said something new of the peer's.
func (s *serving) learn(said serving) (news bool) {
	ours := max(s.list.Known, said.list.Known)
	if said.listed && (!s.listed || len(said.list.All()) > len(s.list.All())) {
		*s, news = said, true
	}
	s.list.Known = ours
	return news
}

// base implements sendingKind.
func (s *serving) base(name frame.ServiceName) uint32 {
	base, _ := s.list.Find(name)
	return base
}

// elsewhere reports whether something that was sent so far is for a service that another
// life, of which that is said, has not, or has elsewhere.
func (n *nativeSending) elsewhere(said serving) bool {
	for t := n.posted.begun.head; t != nil; t = t.next {
		at := n.base(t.flow.name)
		if t.letter {
			at = t.base
		}
		if said.serves(t.flow.name, t.letter) != nil || said.base(t.flow.name) != at {
			return true
		}
	}
	return false
}

// refuse fails what is posted to services that the peer has not.
func (n *nativeSending) refuse(fin *finished) {
	for _, t := range slices.Collect(n.posted.waiting()) {
		if err := n.serves(t.flow.name, t.letter); err != nil {
			n.lose(t, fin, n.peerError("post", err))
		}
	}
	n.roomMade()
}

// tellServices introduces us again, to a peer that does not know of a new service.
func (c *Conn) tellServices() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tx.kind.retell(c.ep.now()) {
		c.entry.queue()
	}
}

// retell implements sendingKind. The peer is asked until it says that it knows all that we
// serve, for what it is told may be lost.
func (n *nativeSending) retell(now ack.Instant) bool {
	if n.theirs == unknown {
		return false // it is told before anything else
	}
	n.untold = true
	n.tellAgain(now)
	if n.left(now) {
		n.answer = true // told once, however long it has been silent
	}
	return true
}

// tellAgain begins anew the rhythm in which a peer that may not know all is told.
func (n *nativeSending) tellAgain(at ack.Instant) { n.tells, n.tellAt = 0, at }

// knows takes what an introduction that names our life says of how much of us is known.
func (n *nativeSending) knows(said serving, answers bool) {
	switch {
	case said.listed && n.most >= toldSize:
		n.untold = n.list.Known < len(n.offers.to(n.guest.Load()).All())
	case answers:
		n.untold = false // it has no room to say so
	}
}

// telling reports whether the life that we believe is told again what we serve. Before it
// shows that it believes ours it is asked for that anyway, in the same words.
func (n *nativeSending) telling(now ack.Instant) bool {
	return n.untold && (n.paired || n.later != unknown) && !n.left(now)
}
