package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// A restart must never be mistaken for more of the same: ids would look like
// duplicates and be acknowledged without being applied, and a new life that
// hears the second half of an old transaction would acknowledge what it cannot
// complete. So peers of our kind introduce each of their lives before they
// send or take data.
//
// A life is named by the id of its first transaction, a random number. The
// introduction, the hello, is an ordinary message that does nothing: frame.Hello
// has its form.
//
// The network may hold hellos back for long, like everything else. So a life is
// believed only if it names a life of ours that the ones before it cannot have
// heard of: the present one if we know no life of the peer, else one drawn for
// the occasion, which becomes ours when the peer's is believed. Thus both sides
// change lives together, and no late frame can bring a past one back. What
// acknowledges without messages names the receiver's life (see stamp).
//
// To a stranger that life is computed and not drawn, so that nothing need be kept of
// it: see cookies.
//
// Only who answers believes the life that it names; who asks may yet believe
// another one that heard the same name. Until an answer came, acknowledgements
// that ride on data may be meant for that one, and do not count.
//
// Hellos are neither acknowledged nor tracked; who has not seen its own life
// come back asks again. Data flows only to a life that was believed, and is
// taken only from one.
const (
	helloFirst = 20 * time.Millisecond
	helloMost  = time.Second
	helloIdle  = 8 * time.Second // when there is nothing to send
	helloSize  = frame.HeaderSize + frame.MessageHeaderSize
	// helloTries is how often a life that we did not believe yet is asked: it
	// may be long over. Arbitrary.
	helloTries = 8
	// mostInsisted is how often we name a life that never believed ours, before we take
	// it for over. Arbitrary: with 40 % loss all are lost once in a thousand times.
	mostInsisted = 8
)

// session is the state of the introduction, guarded by Conn.mu.
type session struct {
	mine, theirs uint32 // lives; theirs is 0 until the peer named mine
	next         uint32 // our next life, which will answer to asked; 0: none
	asked        uint32 // a life of the peer that has to prove itself
	answer       bool   // an answer is owed
	paired       bool   // theirs believes mine
	recall       bool   // next is to be told to asked, though the peer was given up
	before       bool   // the peer has had another life, and was given up in it
	askAt        ack.Instant
	askedAt      ack.Instant
	missedAt     ack.Instant // when a frame of another life last made us say so
	tries        int
	since        ack.Instant // when asking began to matter: something was posted
}

// ready reports whether data may be sent. Guarded by mu.
func (c *Conn) ready() bool { return c.err == nil && (!c.profile.Session || c.session.theirs != 0) }

// asking reports whether a hello must go out at askAt. Guarded by mu.
func (c *Conn) asking(now ack.Instant) bool {
	s := &c.session
	switch {
	case s.theirs == 0:
		return true
	case s.next != 0:
		return s.tries < helloTries
	}
	// A peer that came by itself and went again is not asked for ever.
	return !s.paired && (!c.learned.Load() || now.Sub(c.heardAt) < c.ep.cfg.GiveUp)
}

// packHello adds the hellos that are due to the batch. Guarded by mu.
func (c *Conn) packHello(b *batch, now ack.Instant) {
	s := &c.session
	if s.answer {
		s.answer = false
		c.sendHello(b, now, frame.Hello{Life: s.mine, Peer: s.theirs, Tells: true})
	}
	if !c.asking(now) || now < s.askAt || b.full() {
		return
	}
	hello := frame.Hello{Life: s.mine, Peer: s.theirs}
	switch {
	case s.theirs == 0:
		hello.Peer = s.asked
		s.asked = 0 // next time whoever is there
	case s.next != 0:
		hello = frame.Hello{Life: s.next, Peer: s.asked}
	}
	c.sendHello(b, now, hello)
	wait := min(helloFirst<<min(s.tries, 10), helloIdle)
	if c.posted.n > 0 {
		wait = min(wait, helloMost, max(c.ep.cfg.GiveUp/10, time.Millisecond))
	}
	s.tries++
	s.askedAt, s.askAt = now, now.Add(wait)
}

// packRecall adds the answer to who says that a peer which was given up is there
// again: one for each hello, for there is nothing that we would ask for. Guarded by
// mu.
func (c *Conn) packRecall(b *batch, now ack.Instant) (more bool) {
	s := &c.session
	if !s.recall {
		return false
	}
	if b.full() {
		return true
	}
	s.recall = false
	c.sendHello(b, now, frame.Hello{Life: s.next, Peer: s.asked})
	return false
}

func (c *Conn) sendHello(b *batch, now ack.Instant, hello frame.Hello) {
	seq, ok := c.sender.Alone(now)
	if !ok {
		seq = c.sender.Next()
	}
	b.add(c, putHello(b, frame.Header{Dst: c.dst(), Src: c.peer.As}, c.sender.Wide(seq), hello), false)
}

// putHello makes the frame of an introduction between two ids.
func putHello(b *batch, between frame.Header, id ack.Wide, hello frame.Hello) []byte {
	buf := b.small()
	between.Flags = frame.FlagMessages
	between.SetHelloID(uint32(id))
	between.Put(buf[b.headroom:])
	m := hello.Message()
	m.Put(buf[b.headroom+frame.HeaderSize:])
	return buf[:b.headroom+helloSize]
}

// hello acts on an introduction, with the turn to receive.
func (c *Conn) hello(now ack.Instant, f *frame.Frame, h frame.Hello) Reason {
	var fin finished
	defer c.ep.finish(&fin) // what is left, if a callback does not return
	why, event := c.introduced(now, f, h, &fin)
	fin.deliver()
	if event != 0 {
		c.ep.event(Event{Kind: event, Conn: c, Peer: c.Name()})
	}
	return why
}

func (c *Conn) introduced(now ack.Instant, f *frame.Frame, h frame.Hello, fin *finished) (why Reason, event EventKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.session
	switch {
	case c.closed:
		why = RefusedForeign
	case c.ep.cfg.KeepOldLife && s.theirs != 0 && h.Life != s.theirs:
		why = RefusedForeign
	case c.err != nil && h.Life == s.theirs:
		why = RefusedDown
	case c.err != nil && s.next != 0 && h.Peer == s.next:
		// Nothing is pending, and the peer began anew: so do we.
		next, before := s.next, s.theirs != 0
		c.revive(now)
		c.beginLife(now, next)
		s.before = before
		event = c.believe(now, f, h.Life)
	case c.err != nil:
		// Or somebody says so in its name, who does not hear the answer.
		if s.next == 0 {
			s.next = c.ep.cfg.lifeBut(s.mine)
		}
		s.asked, s.recall = h.Life, true
	case s.theirs == 0 && (h.Peer == s.mine || c.becomes(now, h)):
		event = c.believe(now, f, h.Life)
	case s.theirs == 0:
		s.ask(now, h.Life)
	case h.Life == s.theirs:
		s.answer = s.answer || h.Peer != s.mine
		if c.rx.life == h.Life && c.rx.epoch == c.epoch.Load() {
			c.rx.recv.AckOnly(ack.Wide(f.HelloID()))
		}
	case s.next != 0 && h.Peer == s.next:
		c.abandon(now, fin, c.peerError("transactions in flight", ErrPeerRestarted))
		c.beginLife(now, s.next)
		s.before = true
		event = c.believe(now, f, h.Life)
	case h.Peer == s.mine && h.Tells && s.next == 0 && !s.paired && !c.rx.placed:
		// This one believes ours, and the one that we believe never did: it is what was
		// said when nothing was kept of us, and came late.
		c.believe(now, f, h.Life)
	case (h.Peer == 0 || h.Peer == s.mine) && s.next == 0 && !s.paired && s.tries < mostInsisted:
		// The life that we believe did not show yet that it believes ours: perhaps nothing
		// is kept of us there, because our hello was lost. Named again, it may be recalled.
		s.askAt = min(s.askAt, max(now, s.askedAt.Add(helloFirst)))
	case h.Peer == 0 || h.Peer == s.mine || h.Peer == s.next || c.heardBefore(now, h):
		if s.next == 0 {
			s.next = c.ep.cfg.lifeBut(s.mine)
		}
		s.ask(now, h.Life)
	default:
		why = RefusedForeign // an answer to a life that is over
	}
	if h.Tells && h.Life == s.theirs && h.Peer == s.mine && c.rx.life == s.theirs {
		c.rx.paired, s.paired = true, true
	}
	if why == RefusedNone {
		s.answer = s.answer || !h.Tells && h.Life == s.theirs
		c.queue()
	} else {
		c.rx.counters.Refused[why]++
	}
	return why, event
}

// becomes makes the life ours that the sender of a hello was told when we kept
// nothing of it, and believes since: we have connected to it meanwhile. Guarded by mu.
func (c *Conn) becomes(now ack.Instant, h frame.Hello) bool {
	told, _, fresh := c.ep.cookies.find(now, c.key(), h.Life, h.Peer)
	if fresh {
		c.beginAs(now, told)
	}
	return fresh
}

// beginAs begins with what the peer was told. Guarded by mu; nothing was sent or taken
// so far.
func (c *Conn) beginAs(now ack.Instant, told cookie) {
	c.beginLife(now, told.life)
	c.startSender(now, told.first)
}

// heardBefore reports whether a hello names what its sender was told when we kept
// nothing of it yet: then another life of the peer came first, but this one may be
// the present one.
func (c *Conn) heardBefore(now ack.Instant, h frame.Hello) bool {
	_, ok, _ := c.ep.cookies.find(now, c.key(), h.Life, h.Peer)
	return ok
}

// ask makes a hello to that life due. Guarded by mu.
func (s *session) ask(now ack.Instant, life uint32) {
	if s.theirs != 0 {
		if s.asked != life {
			s.tries = 0
		}
		s.tries = min(s.tries, helloTries-1) // heard of it: once more
	}
	s.asked = life
	s.askAt = min(s.askAt, now)
}

// believe takes a life of the peer for its present one. Guarded by mu; called
// with the turn to receive.
func (c *Conn) believe(now ack.Instant, f *frame.Frame, life uint32) EventKind {
	s := &c.session
	if s.tries == 1 {
		c.sender.RTT().Sample(now, now.Sub(s.askedAt))
	}
	s.theirs, s.asked = life, 0
	c.ep.cookies.spend(now, introduction{c.key(), s.mine, life})
	s.answer = true // it waits to see its own life
	s.tries, s.askAt = 0, now.Add(helloFirst)
	// What this batch acknowledged so far was said by an old life, and what is
	// to be acknowledged too. Reset may have come since this frame did.
	c.due.Init(c.profile.AckEvery, c.profile.AckDelay)
	c.rx.epoch = c.epoch.Load()
	c.rx.begin(life, s.mine, ack.Wide(f.HelloID()))
	if s.before {
		c.counters.Restarts++
		return PeerRestarted
	}
	return PeerUp
}

// hurry ends the idle rhythm of hellos, because something is to be sent.
// Guarded by mu.
func (s *session) hurry(now ack.Instant) {
	if s.theirs == 0 {
		s.tries, s.since = 0, now
		s.askAt = min(s.askAt, max(now, s.askedAt.Add(helloFirst)))
	}
}

// missed notes that a frame came which does not belong to the life we know. Its
// sender has to be asked, or reminded who we are: a hello may have been lost.
func (c *Conn) missed(now ack.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.session
	switch {
	case c.err != nil || now < s.missedAt.Add(helloFirst) && s.missedAt != 0:
		return
	case s.theirs != 0 && s.next == 0:
		s.answer = true
	default:
		s.tries = min(s.tries, 2)
		s.askAt = min(s.askAt, max(now, s.askedAt.Add(helloFirst)))
	}
	s.missedAt = now
	c.queue()
}

// newLife starts our sending half anew under a name that the peer cannot have
// heard before. Frame ids go on: acknowledgements that are still under way
// name ids that are never used again soon. Guarded by mu.
func (c *Conn) newLife(now ack.Instant) { c.beginLife(now, c.ep.cfg.lifeBut(c.session.mine)) }

func (c *Conn) beginLife(now ack.Instant, name uint32) {
	c.nextTxn = name
	c.session = session{mine: name, askAt: now, since: now}
}

// lifeBut draws the name of a life, once: the numbers of an application's Entropy may
// all be the same.
func (c *Config) lifeBut(old uint32) uint32 {
	life := c.Entropy()
	for life == 0 || life == old {
		life++
	}
	return life
}
