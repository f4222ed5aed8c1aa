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
// introduction, the hello, is an ordinary message that does nothing: no data,
// both completion words all-ones. Its fields:
//
//	Txn    the sender's life
//	Addr   the life of the receiver as the sender knows it, or 0
//	Index  helloAsk: answer, please; helloTell: this is the answer
//
// Hellos are neither acknowledged nor tracked; who has not seen its own life
// come back asks again. Data flows only to a peer that knows our present life,
// and is taken only from a life that was introduced.
const (
	helloAsk  = 0
	helloTell = 1

	helloFirst = 20 * time.Millisecond
	helloMost  = time.Second
	helloIdle  = 8 * time.Second // when there is nothing to send
	helloSize  = frame.HeaderSize + frame.MessageHeaderSize
)

// maxBuried is how many past lives of a peer are remembered, whose late hellos
// must not bring them back. Arbitrary.
const maxBuried = 8

// session is the state of the introduction, guarded by Conn.mu.
type session struct {
	mine, theirs uint32 // lives; 0: none, or not known
	known        bool   // the peer knows mine
	answer       bool   // an answer is owed
	askAt        ack.Instant
	askedAt      ack.Instant
	asked        int
	since        ack.Instant // when asking began to matter: something was posted
	buried       [maxBuried]uint32
	nBuried      int
}

func (s *session) bury(life uint32) {
	if life != 0 {
		s.buried[s.nBuried%maxBuried] = life
		s.nBuried++
	}
}

func (s *session) isBuried(life uint32) bool {
	for i := 0; i < min(s.nBuried, maxBuried); i++ {
		if s.buried[i] == life {
			return true
		}
	}
	return false
}

// isHello reports whether a frame is an introduction.
func isHello(m *frame.Message) bool {
	return m.Count == 0 && m.Len == 0 && !m.Completes() && m.Txn != 0 && m.Index <= helloTell && !m.More
}

// ready reports whether data may be sent. Guarded by mu.
func (c *Conn) ready() bool { return c.err == nil && (!c.profile.Session || c.session.known) }

// putHello writes a hello into b and returns its length. Guarded by mu.
func (c *Conn) putHello(b []byte, seq frame.Seq, index uint16) int {
	h := frame.Header{Dst: c.dst(), Src: c.ep.cfg.ID, Seq: seq, Flags: frame.FlagMessages}
	h.Put(b)
	m := frame.Message{
		Txn: c.session.mine, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion,
		Index: index, Addr: c.session.theirs,
	}
	m.Put(b[frame.HeaderSize:])
	return helloSize
}

// packHello adds the hellos that are due to the batch. Guarded by mu.
func (c *Conn) packHello(b *batch, now ack.Instant) {
	s := &c.session
	if s.answer {
		s.answer = false
		c.sendHello(b, now, helloTell)
	}
	if !s.known && now >= s.askAt {
		c.sendHello(b, now, helloAsk)
		wait := min(helloFirst<<min(s.asked, 10), helloIdle)
		if c.posted.n > 0 {
			wait = min(wait, helloMost)
		}
		s.asked++
		s.askedAt, s.askAt = now, now.Add(wait)
	}
}

func (c *Conn) sendHello(b *batch, now ack.Instant, index uint16) {
	seq, ok := c.sender.Alone(now)
	if !ok {
		seq = c.sender.Next()
	}
	buf := b.small()
	n := c.putHello(buf[c.ep.headroom:], seq, index)
	b.add(c, buf[:c.ep.headroom+n], false)
}

// hello acts on an introduction, on the receiving goroutine.
func (c *Conn) hello(now ack.Instant, m *frame.Message) {
	e := c.ep
	c.mu.Lock()
	s := &c.session
	var fin finished
	var events [2]EventKind
	switch {
	case c.closed || s.isBuried(m.Txn):
		c.mu.Unlock()
		c.rx.counters.Refused[RefusedForeign]++
		return
	case m.Txn != s.theirs:
		if s.theirs != 0 && e.cfg.KeepOldLife {
			c.mu.Unlock()
			c.rx.counters.Refused[RefusedForeign]++
			c.refused(RefusedForeign, m.Txn, nil)
			return
		}
		restarted := s.theirs != 0
		s.bury(s.theirs)
		s.theirs = m.Txn
		// What this batch acknowledged so far was said by the old life.
		c.rx.begin(m.Txn)
		if c.err != nil {
			c.revive(now)
		} else if restarted && s.known {
			c.abandon(now, &fin, c.peerError("transactions in flight", ErrPeerRestarted))
			c.newLife(now)
		}
		events[0] = PeerUp
		if restarted {
			c.counters.Restarts++
			events[0] = PeerRestarted
		}
	}
	if m.Addr == s.mine && !s.known {
		s.known = true
		if s.asked == 1 {
			c.sender.RTT().Sample(now, now.Sub(s.askedAt))
		}
		if c.posted.n > 0 {
			c.queue()
		}
	}
	if m.Index == helloAsk {
		s.answer = true
	}
	if s.answer || !s.known {
		if m.Txn == s.theirs && m.Addr != s.mine {
			s.askAt = min(s.askAt, now) // it does not know us: do not wait
		}
		c.queue()
	}
	c.touch()
	c.mu.Unlock()
	fin.deliver()
	for _, k := range events {
		if k != 0 {
			e.event(Event{Kind: k, Conn: c, Peer: c.Name()})
		}
	}
}

// newLife starts our sending half anew under a name that the peer cannot have
// heard before. Frame ids go on: acknowledgements that are still under way
// name ids that are never used again soon. Guarded by mu.
func (c *Conn) newLife(now ack.Instant) {
	s := &c.session
	for old := s.mine; s.mine == 0 || s.mine == old; {
		s.mine = c.ep.cfg.Entropy()
	}
	c.nextTxn = s.mine
	s.known = false
	s.asked, s.askAt, s.since = 0, now, now
}
