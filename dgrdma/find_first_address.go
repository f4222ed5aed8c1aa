package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// askNext is how long an address is asked before the next one is, too, and askLeast if there is less
// time than that for each: the connection attempt delays that RFC 8305 recommends (section 8).
const (
	askNext  = 250 * time.Millisecond
	askLeast = 100 * time.Millisecond
)

// discoveryRun is a Find: which endpoint is at one of several addresses of a host. It belongs to one goroutine.
type discoveryRun struct {
	ep     *Endpoint
	peer   Peer
	places []candidate
	asked  int // of places, from the first on
	pause  time.Duration
	most   time.Duration // for which is asked
	waiter Waiter
}

// candidate is an address, and the question which endpoint is there, unless that has ended: with err, if anything.
type candidate struct {
	at transport.Addr
	*discovery
	err error
}

func (s *discoveryRun) run(ctx context.Context) (Peer, error) {
	for {
		found, open := s.look()
		switch {
		case found != nil:
			return *found, nil
		case s.ep.Err() != nil:
			return Peer{}, s.failed(s.ep.Err())
		case !open && s.asked == len(s.places):
			return Peer{}, s.failed(nil)
		case ctx.Err() != nil:
			return Peer{}, s.failed(s.noAnswer(context.Cause(ctx)))
		case s.asked == len(s.places) || s.ask(ctx):
			s.await(ctx)
		}
	}
}

// ask asks at the next address, if that can be asked.
func (s *discoveryRun) ask(ctx context.Context) (ok bool) {
	x := &s.places[s.asked]
	s.asked++
	if x.discovery, x.err = s.inquire(x.at); x.err != nil {
		return false
	}
	ended := x.conn.Done()
	go func() { // as any number may be open
		select {
		case <-ended:
			s.waiter.Rouse()
		case <-ctx.Done():
		}
	}()
	return true
}

func (s *discoveryRun) inquire(at transport.Addr) (*discovery, error) {
	if at.Kind() != transport.KindUDP {
		return nil, errors.New("over UDP alone an address is one endpoint's: give the complete string, which ends in ;<size>.<id>.<max>")
	}
	if l := s.ep.sealed; l != nil && !l.HasKeyFor(0) {
		return nil, &inWords{"each key here is for one peer, and not for who is asked for its id: give the complete string, which ends in ;<size>.<id>.<max>", ErrNoKey}
	}
	at, err := s.ep.pathTo(at)
	if err != nil {
		return nil, err
	}
	return s.ep.discover(Peer{Addr: at, Profile: s.peer.Profile})
}

// await waits until a question has ended, or for as long as no other address is asked.
func (s *discoveryRun) await(ctx context.Context) {
	if s.asked < len(s.places) {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, s.pause)
		defer cancel()
	}
	s.ep.Await(ctx, &s.waiter, s.ended, nil, s.ep.Done())
}

// ended reports whether a question has.
func (s *discoveryRun) ended() bool {
	for i := range s.places[:s.asked] {
		if x := &s.places[i]; x.discovery != nil && x.conn.Err() != nil {
			return true
		}
	}
	return false
}

// look returns the peer if it was found, and reports whether questions are open.
func (s *discoveryRun) look() (found *Peer, open bool) {
	for i := range s.places[:s.asked] {
		x := &s.places[i]
		if x.discovery == nil {
			continue
		}
		err := x.conn.Err()
		if err == nil {
			open = true
			continue
		}
		var is *identityError
		switch want := s.peer.ID; {
		case !errors.As(err, &is):
		case want != 0 && want != is.ID:
			err = &IDError{Want: want, Is: is.ID}
		default:
			p := s.peer
			p.Addr, p.ID, p.Size = x.at, is.ID, is.Size
			if is.by != nil {
				s.ep.keepIntroduction(is.by)
			}
			return &p, false
		}
		s.ep.endDiscovery(x.discovery)
		x.discovery, x.err = nil, err
	}
	return nil, open
}

// noAnswer returns why no endpoint was found: there was no answer, a callback blocked the receiver, or no address was asked.
func (s *discoveryRun) noAnswer(why error) error {
	held := s.ep.receiverBlocked(s.ep.now(), s.most/2)
	switch {
	case held != "":
		return &inWords{"no answer was heard, " + held, why}
	case errors.Is(why, ErrPeerDown):
		return s.unkeyed(why)
	}
	return why
}

// unkeyed returns that no key was agreed on, if that is why no endpoint was found. A peer that is there and has another key is told apart from the others.
func (s *discoveryRun) unkeyed(why error) error {
	for i := range s.places[:s.asked] {
		x := &s.places[i]
		if x.discovery == nil {
			continue
		}
		switch err := s.ep.keyless(x.conn.key(), nil); {
		case errors.Is(err, errOtherKey):
			x.err = errOtherKey
		case err != nil:
			why = errUnkeyed
		}
	}
	return why
}

// end ends the questions that are open.
func (s *discoveryRun) end() {
	for i := range s.places {
		if x := &s.places[i]; x.discovery != nil {
			s.ep.endDiscovery(x.discovery)
		}
	}
}

// failed returns why no endpoint was found: at each address that could not be asked, or where another endpoint is, why;
// and at the others why, if there is a reason.
func (s *discoveryRun) failed(why error) error {
	f := &findError{}
	var at []string
	say := func(err error) {
		if len(at) > 0 {
			f.text = append(f.text, fmt.Sprintf("%s: %v", strings.Join(at, ", "), inside(err)))
			f.why = append(f.why, err)
		}
		at = nil
	}
	for i, x := range s.places {
		if x.err == nil && (i < s.asked || len(at) == 0) { // without the end of a long list
			at = append(at, x.at.String())
		}
	}
	say(why)
	for _, x := range s.places[:s.asked] {
		if x.err != nil {
			at = append(at, x.at.String())
			say(x.err)
		}
	}
	return f
}

// findError is why no endpoint was found, at each of the addresses.
type findError struct {
	text []string
	why  []error
}

func (e *findError) Error() string {
	return "dgrdma: find the endpoint at " + strings.Join(e.text, "; at ")
}
func (e *findError) Unwrap() []error { return e.why }
