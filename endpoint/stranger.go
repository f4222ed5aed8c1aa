package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/internal/strangers"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
)

// mostReplies bounds how many strangers are answered after a batch of datagrams; the
// others ask again. Arbitrary: as many frames as a turn sends at once.
const mostReplies = maxBatch

// perReply is what an answer that waits takes at most, that it has to be sealed included.
const perReply = 1 << 10

const _ = uint(strangers.Memory - 2*mostReplies*perReply) // in the clear, and of handshakes

const (
	// mostUnproven bounds the learned peers of kinds that have nothing to prove themselves with: unless
	// MaxPeers says otherwise, all of them together stay within what strangers have, with what they
	// may hold open.
	mostUnproven = 256
	// perUnproven is what each of them takes at most, its reserve included.
	perUnproven = 64 << 10
)

// leaverPause is how long nobody is looked for whose place could be had, after none
// was found: to look takes the longer, the more peers there are. Arbitrary.
const leaverPause = ack.Instant(100 * time.Millisecond)

// reply is a hello to a stranger.
type reply struct {
	key   peerKey
	hello frame.Hello
	id    ack.Wide
	tells bool // which services we have, as there is room: no answer is longer than what was asked
}

// stray counts what came and belongs to no connection.
func (e *Endpoint) stray(d *transport.Datagram) {
	e.strangers.FramesReceived++
	e.strangers.BytesReceived += uint64(len(d.Data))
}

// stranger counts why something was refused of somebody who is no peer, and says so.
func (e *Endpoint) stranger(why Reason, who PeerName) {
	e.strangers.Refused[why]++
	if e.cfg.OnEvent != nil || e.cfg.Logger != nil {
		e.event(Event{Kind: FrameRefused, Peer: who, Reason: why})
	}
}

// seals reports whether a frame is what an endpoint sends that seals its connections.
func seals(f *frame.Frame) bool { return !f.HasMessages() && f.Flags&seal.Flag != 0 }

// meet returns the connection to a peer that was not configured, if that is wanted
// and the frame is reason enough for it.
func (e *Endpoint) meet(now ack.Instant, f *frame.Frame, from transport.Addr) *Conn {
	if seals(f) {
		e.stranger(RefusedSealed, PeerName{f.Src, from})
		return nil
	}
	if !e.accepting.Load() || f.Src == 0 || !f.HasMessages() {
		e.stranger(RefusedSource, PeerName{f.Src, from})
		return nil
	}
	return waysOf(e.cfg.Profile).meet(e, now, Peer{ID: f.Src, Addr: from}, f)
}

// meetForeign learns a peer at once, which has nothing to prove itself with.
func (e *Endpoint) meetForeign(now ack.Instant, p Peer, f *frame.Frame) *Conn {
	return e.learn(now, p, f, nil)
}

// meetNative learns a peer that names what it was told.
func (e *Endpoint) meetNative(now ack.Instant, p Peer, f *frame.Frame) *Conn {
	key := peerKey{ids{f.Dst, f.Src}, p.Addr}
	e.cursor.Begin(f)
	e.cursor.Next()
	h, ok := e.cursor.Msg.Hello()
	switch {
	case h.Checks && !e.checksum:
		e.stranger(RefusedChecksum, p.name())
		return nil
	case !ok:
		e.challenge(now, key, f)
		return nil
	case h.Refers: // who asked before
		e.stranger(RefusedNoSession, p.name())
		return nil
	}
	named := incarnation(h.Peer)
	told, _, proven := e.cookies.find(now, key, incarnation(h.Life), named)
	switch {
	case proven:
		return e.learn(now, p, f, &told)
	case h.Tells:
		// It may be the answer of somebody who keeps as little of us. Answers are not
		// answered: that would never end.
		e.stranger(RefusedNoSession, p.name())
	case named != unknown && named != e.cookies.any(now, key):
		e.challenge(now, key, f)
	default:
		if _, ok := e.roomFor(now, p.Addr); !ok {
			e.stranger(RefusedNoRoom, p.name())
			return nil
		}
		if !e.offer(now, key, h, f.Size() >= toldSize) {
			e.stranger(RefusedNoSession, p.name())
		}
	}
	return nil
}

// challenge tells a stranger, which believes us to be in a life that is over, of
// another one: then it introduces itself.
func (e *Endpoint) challenge(now ack.Instant, to peerKey, f *frame.Frame) {
	e.reply(reply{key: to, hello: frame.Hello{Life: uint32(e.cookies.any(now, to)), Tells: true}, tells: f.Size() >= toldSize})
	e.stranger(RefusedNoSession, PeerName{to.theirs, to.addr})
}

// offer answers a stranger's introduction.
func (e *Endpoint) offer(now ack.Instant, to peerKey, h frame.Hello, tells bool) (answered bool) {
	if c, fresh := e.cookies.offer(now, to, incarnation(h.Life)); fresh {
		return e.reply(reply{key: to, hello: frame.Hello{Life: uint32(c.life), Peer: h.Life}, id: c.first, tells: tells})
	}
	// That life was a peer, which was closed. As if we had restarted, it has to begin
	// another one.
	return e.reply(reply{key: to, hello: frame.Hello{Life: uint32(e.cookies.any(now, to)), Peer: h.Life}, tells: tells})
}

// learn makes the connection to a peer that was not configured, if there is room,
// which is found out before anything is made.
func (e *Endpoint) learn(now ack.Instant, p Peer, f *frame.Frame, told *cookie) *Conn {
	leaver, ok := e.roomFor(now, p.Addr)
	if !ok {
		e.stranger(RefusedNoRoom, p.name())
		return nil
	}
	if leaver != nil {
		leaver.end() // which may be there after all: what it sends is answered
		e.strangers.Dismissed++
	}
	c, err := e.newConn(p, now, connectPeer(told))
	if err == nil {
		c.learned.Store(true)
		c.guest.Store(!e.open.Load())
		c.rx.held.shares = true
		c, err = e.enter(c)
	}
	if err != nil {
		e.stranger(RefusedSource, p.name()) // the endpoint is about to be closed
	}
	return c // nil, if there is an error
}

// roomFor reports whether there is room for a peer of that host, or would be if a
// peer leaves.
func (e *Endpoint) roomFor(now ack.Instant, addr transport.Addr) (leaver *Conn, ok bool) {
	full := e.peers.fullHost(addr, e.cfg.PeersPerHost)
	switch {
	case full != nil:
		leaver = e.leaver(now, full, &full.search) // or it would stay full of those that are long gone
	case e.peers.len() >= e.cfg.MaxPeers, e.peers.learnedLen() >= e.mostLearned:
		leaver = e.leaver(now, nil, &e.search)
	default:
		return nil, true
	}
	return leaver, leaver != nil
}

// search is for a peer that leaves, among those of a host or among all.
type search struct {
	found *Conn
	again ack.Instant // when it is worth to look, after none was found
}

// leaver returns the learned peer of a host, or of all if that is nil, that would make
// room for a new one: the one longest silent of those that are down, never finished
// their introduction, or have been silent for longer than a peer that is there would be
// for no reason.
func (e *Endpoint) leaver(now ack.Instant, of *host, s *search) *Conn {
	leaves := func(c *Conn) bool {
		silent := now.Sub(c.rx.livedAt)
		return c.learned.Load() && (c.down.Load() || silent > 6*e.cfg.GiveUp || !c.rx.kind.introduced() && silent > e.cfg.GiveUp)
	}
	if c := s.found; c != nil && leaves(c) && e.peers.find(c.key()) == c {
		return c
	}
	s.found = nil
	if now < s.again {
		return nil
	}
	for _, c := range e.peers.appendOf(of, nil, leaves) {
		if s.found == nil || c.rx.livedAt < s.found.rx.livedAt {
			s.found = c
		}
	}
	if s.found == nil {
		s.again = now + leaverPause
	}
	return s.found
}

// reply has a stranger answered at the end of the batch, unless too many others are. One
// answer is enough for a burst: who hears late asks again meanwhile, and is no worse for it.
func (e *Endpoint) reply(r reply) (answered bool) {
	r.hello.Checks = e.answersChecked()
	n := len(e.replies)
	switch {
	case n > 0 && e.replies[n-1] == r:
		e.strangers.Duplicates++
		return true
	case n == mostReplies:
		e.strangers.Unanswered++
		return false
	}
	e.replies = append(e.replies, r)
	e.strangers.Challenges++
	return true
}

// Reply implements sched.Engine: it puts them into a batch of their own. It is called
// with both turns.
func (e engine) Reply() {
	b := &e.batch
	bytes := 0
	for i := range e.replies {
		r := &e.replies[i]
		buf := r.put(b, e.Endpoint)
		to := r.key.addr // what To points to never changes, and replies will
		if r.hello.Checks {
			buf = addChecksum(buf, b.headroom)
		}
		b.frames = append(b.frames, transport.Outgoing{To: &to, Buf: buf})
		bytes += len(buf) - b.headroom
		if t := e.cfg.Trace; t != nil && t.FrameSent != nil {
			t.FrameSent(PeerName{r.key.theirs, r.key.addr}, buf[b.headroom:], false)
		}
	}
	e.mu.Lock()
	e.gone.FramesSent += uint64(len(e.replies))
	e.gone.BytesSent += uint64(bytes)
	e.mu.Unlock()
	e.replies = e.replies[:0]
	e.Flush()
	if e.vault != nil {
		e.transmit(e.vault.takeOwed())
	}
}

// put makes the frame of the reply.
func (r *reply) put(b *batch, e *Endpoint) []byte {
	between := frame.Header{Dst: r.key.theirs, Src: r.key.ours}
	if r.hello.Refers {
		return putIdentity(b, between, r.hello, frame.Identity{ID: e.cfg.ID, Size: e.Size()})
	}
	return putHello(b, between, r.id, r.hello, r.services(e))
}

// services returns which services the reply tells of, or nil.
func (r *reply) services(e *Endpoint) *frame.Services {
	need := toldSize
	if r.hello.Checks {
		need += frame.ChecksumSize
	}
	if !r.tells || e.cfg.MTU < need {
		return nil
	}
	return e.offers.to(!e.open.Load())
}
