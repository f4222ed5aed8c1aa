package endpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Over UDP a port is one endpoint's, so an address alone says who is meant. Ids are 1 to 65535: an
// introduction to 0 is nobody's, and so a question for whoever is there. It is answered like one
// with a wrong id: by a frame.Hello that refers to who has another. So who asks is a connection to
// the id 0 that introduces itself, with all that it takes against loss, until it fails for that
// answer.

// findTime is how long is asked who is at an address: many times over, as the answer takes
// a round trip. Arbitrary: with 40 % loss both ways nobody is found once in ten thousand times.
const findTime = 3 * time.Second

// inquiry is the question who is at an address, and how many wait for the answer.
type inquiry struct {
	conn    *Conn
	waiting int
}

// Find asks over UDP which endpoint is at p's address, and returns p with its id and the size of its
// memory, for Connect. Only endpoints of our own kind answer, that have this one for a peer
// already or accept any. It asks again and again until the context is done, but for 3 s and
// GiveUp at most: then the error is [ErrPeerDown].
//
// A host may have more addresses. While nobody answers, the next one is asked as well every 250 ms, or 100 if they are many, and at once when one
// cannot be asked (RFC 8305, Happy Eyeballs); what is returned is at the address that answers first.
//
// The answer is believed if it comes from the address and names the question, 32 random bits. If p has an id, only
// the endpoint that has it counts.
func (e *Endpoint) Find(ctx context.Context, p Peer, more ...transport.Addr) (Peer, error) {
	most := min(findTime, e.cfg.GiveUp)
	s := finding{ep: e, peer: p, most: most}
	s.waiter.Init()
	for _, at := range append([]transport.Addr{p.Addr}, more...) {
		s.places = append(s.places, candidate{at: at})
	}
	defer s.end()
	unsealed := ""
	if e.vault == nil {
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

// mistaken returns why there is no such peer: whoever is at its address has another id.
func (n *nativeSending) mistaken(is frame.Identity) error {
	return n.peerError("", &IDError{Want: n.peer.ID, Is: is.ID})
}

// besides reports whether the peer may yet come under another id than the one that whoever is at
// its address says to have: the two of us go by several, see [Peer.As], and it has not connected
// under this one so far.
func (n *native) besides(id frame.EndpointID) bool {
	t := n.tx.terms
	if t.peer.As != t.cfg.ID {
		return true
	}
	other := n.peers.find(peerKey{ids{t.peer.As, id}, t.peer.Addr})
	return other != nil && !other.down.Load()
}

// inquire begins to ask who is at an address, unless that is being asked already.
func (e *Endpoint) inquire(p Peer) (*inquiry, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q := e.inquiries[p.Addr]; q != nil {
		q.waiting++
		return q, nil
	}
	c, err := e.newConn(p, e.now(), connectInquiring)
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
	q := &inquiry{conn: c, waiting: 1}
	if e.inquiries == nil {
		e.inquiries = make(map[transport.Addr]*inquiry)
	}
	e.inquiries[p.Addr] = q
	e.peers.add(c)
	e.settleKeys(c)
	e.focus()
	c.entry.queue()
	e.sched.Work(false)
	return q, nil
}

// inquired ends an inquiry for which nobody waits any more. Who asks next asks anew, and finds
// nothing of this one: both have the same key.
func (e *Endpoint) inquired(q *inquiry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		delete(e.inquiries, q.conn.peer.Addr)
		q.conn.stop()
		e.remove(q.conn)
	}
}

// identify tells who introduces itself to an id that nobody has here which one we have, if that
// is said in no more bytes than were asked, and to somebody who would be heard. Nothing is kept.
func (e *Endpoint) identify(f *frame.Frame, from transport.Addr) (told bool) {
	if from.Kind() != transport.KindUDP || f.Src == 0 || !f.HasMessages() || f.Size() < identifiedSize || !e.cfg.Profile.Session {
		return false
	}
	e.cursor.Begin(f)
	e.cursor.Next()
	h, ok := e.cursor.Msg.Hello()
	if !ok || h.Tells || h.Leaves || h.Refers {
		return false // answers are not answered: that would never end
	}
	if !e.accepting.Load() && e.peers.find(peerKey{ids{e.cfg.ID, f.Src}, from}) == nil {
		return false
	}
	return e.reply(reply{key: peerKey{ids{f.Dst, f.Src}, from}, hello: frame.Hello{Life: h.Life, Peer: h.Life, Refers: true}})
}

// putIdentity makes the frame of an answer that refers to us.
func putIdentity(b *batch, between frame.Header, hello frame.Hello, i frame.Identity) []byte {
	buf := padded(putHello(b, between, 0, hello, nil), b.headroom)
	i.Put(buf[b.headroom+helloSize:])
	return buf
}
