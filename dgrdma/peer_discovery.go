package dgrdma

import (
	"context"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Over UDP a port is one endpoint's, so an address alone names it. Ids are 1 to 65535: an
// HELLO to 0 is for no endpoint, and so a question for the endpoint that is there. It is answered like one
// with a wrong id: by REFUSED with the id that there is. So the question is a connection to
// the id 0 that asks for a session, with all that it takes against loss, until it fails for that
// answer.

// findTime is how long an address is asked for its id: eleven times if it is near, and else three times. Arbitrary: one of ten thousand inquiries finds nothing
// with 25 % loss both ways if it is near, and else with 2 %.
const findTime = 3 * time.Second

// discovery is the question which endpoint is at an address, and how many wait for the answer.
type discovery struct {
	conn    *Conn
	waiting int
}

// Find asks over UDP which endpoint is at p's address, and returns p with its id and the size of its
// memory, for Connect: what LookupPeer does with a string that has neither. A host may have more addresses: the one that answers
// first counts, and if p has an id, only the endpoint that has it.
func (e *Endpoint) Find(ctx context.Context, p Peer, more ...Addr) (Peer, error) {
	most := min(findTime, e.cfg.GiveUp)
	s := discoveryRun{ep: e, peer: p, most: most}
	s.waiter.Init()
	for _, at := range append([]transport.Addr{p.Addr}, more...) {
		s.places = append(s.places, candidate{at: at})
	}
	defer s.end()
	unsealed := ""
	if e.sealed == nil {
		unsealed = " without a key"
	}
	s.pause = max(askLeast, min(askNext, most/time.Duration(len(s.places))))
	ctx, cancel := context.WithTimeoutCause(ctx, most, &inWords{
		fmt.Sprintf("nobody there answers within %v; is it there, and does it accept peers%s? Those of other kinds never "+
			"answer: they need the complete string, which ends in ;<size>.<id>.<max>", most, unsealed), ErrPeerDown,
	})
	defer cancel()
	return s.run(ctx)
}

// wrongID returns why there is no such peer: the endpoint at its address has another id.
func (s *sending) wrongID(is frame.EndpointID) error {
	return s.terms.peerError("", &IDError{Want: s.terms.peer.ID, Is: is})
}

// besides reports whether the peer may yet come under another id than the one that the endpoint at
// its address says to have: the two of us go by several, see [Peer.As], and it has not connected
// under this one so far.
func (p *sessionPeer) besides(id frame.EndpointID) bool {
	c := p.conn
	if c.peer.As != c.cfg.ID {
		return true
	}
	other := c.ep.peers.find(peerKey{ids{c.peer.As, id}, c.peer.Addr})
	return other != nil && !other.down.Load()
}

// discover begins to ask which endpoint is at an address, unless that is being asked already.
func (e *Endpoint) discover(p Peer) (*discovery, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q := e.discoveries[p.Addr]; q != nil {
		q.waiting++
		return q, nil
	}
	c, err := e.newConn(p, e.now(), connectDiscovery)
	switch {
	case err != nil:
		return nil, err
	case !c.profile.Session:
		return nil, fmt.Errorf("peers of the kind %s are not asked: give the complete string, which ends in ;<size>.<id>.<max>", c.profile.Name)
	case e.sched.Err() != nil:
		return nil, e.sched.Err()
	case e.draining.Load():
		return nil, ErrClosed
	}
	q := &discovery{conn: c, waiting: 1}
	if e.discoveries == nil {
		e.discoveries = make(map[transport.Addr]*discovery)
	}
	e.discoveries[p.Addr] = q
	e.peers.add(c)
	e.settleKeys(c)
	e.focus()
	c.entry.queue()
	e.sched.Work(false)
	return q, nil
}

// endDiscovery ends a discovery for which no goroutine waits any more. The next Find asks again, and finds
// nothing of this one: both have the same key.
func (e *Endpoint) endDiscovery(q *discovery) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		delete(e.discoveries, q.conn.peer.Addr)
		q.conn.stop()
		e.remove(q.conn)
	}
}
