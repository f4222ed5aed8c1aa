package endpoint

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/sched"
	"github.com/dgrdma/dgrdma/frame"
)

// nativeSending is the introduction of a peer of our own kind, and what the sending half
// knows by it. Guarded by the connection's mutex.
type nativeSending struct {
	*sending
	serving
	told         *cookie     // what a stranger was told before it had a connection
	mine, theirs incarnation // theirs is unknown until the peer named mine
	was          acquainted  // those of the life before
	later        incarnation // our next life, which will answer to asked
	asked        incarnation // a life of the peer that has to prove itself
	reached      ack.Wide    // newest id heard from the peer
	answer       bool        // an answer is owed
	paired       bool        // theirs believes mine
	untold       bool        // theirs may not know all our services
	renounced    bool        // who spoke for theirs said that it is over
	farewell     bool        // theirs, that was given up, is there and does not know it
	recall       bool        // next is to be told to asked, though the peer was given up
	brief        bool        // the latest introduction of another life was too short for a list of services
	before       bool        // the peer has had another life, and was given up in it
	askAt        ack.Instant
	askedAt      ack.Instant
	remindedAt   ack.Instant // when a frame of another life last made us say so
	tries        int
	asks         int // hellos that left and were not answered
	tellAt       ack.Instant
	tells        int
	alive        keepAlive
	other        frame.EndpointID // that whoever is at the address said to have; 0: none
	since        ack.Instant      // when asking began to matter: something was posted, or theirs believed
	sizes        sizing           // how long frames arrive
	narrowing    narrowing
	came         int // longest such question of the peer's, until it is answered; 0: none
}

var _ sendingKind = (*nativeSending)(nil)

func (n *nativeSending) first(random ack.Wide) ack.Wide                 { return random }
func (n *nativeSending) resume(next ack.Wide, asked frame.Seq) ack.Wide { return next }
func (n *nativeSending) renumbered(frame.Seq)                           {}
func (n *nativeSending) lives() (mine, theirs incarnation)              { return n.mine, n.theirs }

// begin starts under a name that the peer cannot have heard before, or only as that of our next life: to a peer
// that believes it already another one would be a stranger. Frame ids go on: acknowledgements that are still under
// way name ids that are never used again soon.
func (n *nativeSending) begin(now ack.Instant) {
	told, name := n.told, n.later
	if name == unknown {
		name = n.cfg.incarnation(n.mine)
	}
	n.beginAs(now, name)
	if told != nil {
		n.beginTold(now, *told)
	}
}

func (n *nativeSending) beginAs(now ack.Instant, name incarnation) {
	n.nextTxn = uint32(name)
	n.ready, n.proven, n.checks = false, true, false
	*n = nativeSending{sending: n.sending, reached: n.reached, was: n.acquainted(), mine: name, askAt: now, since: now}
	n.measure()
}

// beginTold begins with what the peer was told; nothing was sent or taken so far.
func (n *nativeSending) beginTold(now ack.Instant, told cookie) {
	n.beginAs(now, told.life)
	n.number(now, told.first)
}

// draw names our next life, if it has no name.
func (n *nativeSending) draw() {
	if n.later == unknown {
		n.later = n.cfg.incarnation(n.mine)
	}
}

// asking reports whether a hello must go out at askAt.
func (n *nativeSending) asking(now ack.Instant) bool {
	switch {
	case n.theirs == unknown:
		return true
	case n.asksNext():
		return true
	case n.later != unknown:
		return false
	}
	return !n.paired && !n.left(now)
}

// left reports whether the peer came by itself and went again: it is not asked for ever.
func (n *nativeSending) left(now ack.Instant) bool {
	return n.learned.Load() && now.Sub(n.heard.lived) >= n.cfg.GiveUp
}

// asksNext reports whether a life that we did not believe yet is asked, under our next one.
func (n *nativeSending) asksNext() bool { return n.later != unknown && n.tries < helloTries }

// next implements sendingKind.
func (n *nativeSending) next(now ack.Instant) (send bool, at ack.Instant) {
	send, at = n.introduces(now)
	switch {
	case send || n.err != nil:
		return send, at
	case n.doubts():
		return false, now // a long frame followed when much was overdue
	case !n.measures():
		return send, at
	case n.asksSize():
		return true, now
	}
	return false, min(at, n.sizes.over())
}

// introduces is next of introductions alone.
func (n *nativeSending) introduces(now ack.Instant) (send bool, at ack.Instant) {
	switch {
	case n.err != nil:
		return n.recall || n.farewell, sched.Never
	case n.answer:
		return true, now
	}
	at = sched.Never
	if n.asking(now) {
		at = n.askAt
	}
	if n.telling(now) {
		at = min(at, n.tellAt)
	}
	at = min(at, n.aliveAt())
	send = at <= now
	if n.waits() {
		at = min(at, n.giveUpAt())
	}
	return send, at
}

// introduce implements sendingKind.
func (n *nativeSending) introduce(b *batch, now ack.Instant) (full bool) {
	for {
		switch due, _ := n.introduces(now); {
		case due && b.full():
			return true
		case due:
			n.sendHello(b, now, n.hello(now))
		case n.err != nil || !n.asksSize():
			return false
		case b.full() || !b.fits(n.flight.full):
			return true
		default:
			// Last: offload takes what is shorter for the end of a run, and it is lost with it.
			n.askSize(b, now)
		}
	}
}

// hello returns the introduction that is due.
func (n *nativeSending) hello(now ack.Instant) frame.Hello {
	switch {
	case n.farewell:
		n.farewell = false
		return n.acquainted().goodbye()
	case n.err != nil:
		// One for each hello of who says that a peer which was given up is there again,
		// for there is nothing that we would ask for.
		n.recall = false
		return frame.Hello{Life: uint32(n.later), Peer: uint32(n.asked)}
	case n.answer:
		n.answer = false
		return frame.Hello{Life: uint32(n.mine), Peer: uint32(n.theirs), Tells: true}
	case n.telling(now) && n.tellAt <= now:
		n.tellAt = now.Add(n.pause(n.tells))
		n.tells++
		return frame.Hello{Life: uint32(n.mine), Peer: uint32(n.theirs)}
	case n.aliveAt() <= now:
		n.alive.asked(now, n.heard.lived)
		if n.theirs != unknown {
			return frame.Hello{Life: uint32(n.mine), Peer: uint32(n.theirs)}
		}
	}
	hello := frame.Hello{Life: uint32(n.mine), Peer: uint32(n.theirs)}
	switch {
	case n.theirs == unknown:
		hello.Peer = uint32(n.asked)
		n.asked = unknown // next time whoever is there
	case n.asksNext():
		hello = frame.Hello{Life: uint32(n.later), Peer: uint32(n.asked)}
	}
	n.askedAt, n.askAt = now, now.Add(n.pause(n.tries))
	n.tries++
	n.asks++
	return hello
}

// pause returns how long after a hello the next one of its kind leaves.
func (n *nativeSending) pause(before int) time.Duration {
	d := min(helloFirst<<min(before, 10), helloIdle)
	if n.posted.n > 0 {
		d = min(d, n.pauseAwaited(before))
	}
	return d
}

// pauseAwaited is pause where somebody waits for the answer.
func (n *nativeSending) pauseAwaited(before int) time.Duration {
	return min(helloFirst<<min(before, 10), helloMost, max(n.cfg.GiveUp/10, time.Millisecond))
}

func (n *nativeSending) sendHello(b *batch, now ack.Instant, hello frame.Hello) {
	hello.Checks = n.checksHello(hello)
	n.putAs(b, n.putHello(b, now, hello), nil, false, hello.Checks)
}

// putHello makes an introduction, or an answer to one.
func (n *nativeSending) putHello(b *batch, now ack.Instant, hello frame.Hello) []byte {
	var list *frame.Services
	// Who forges the introduction of another life must not make us send more than it did.
	if n.most >= toldSize && !hello.Leaves && (!n.brief || incarnation(hello.Peer) == n.theirs) {
		offered := *n.offers.to(n.guest.Load())
		if incarnation(hello.Peer) == n.theirs {
			offered.Known = len(n.list.All())
		}
		list = &offered
	}
	buf := n.introduction(b, now, hello, list)
	if list != nil && hello.Tells && n.came > 0 {
		at := len(buf)
		buf = buf[:at+frame.SizeProbeSize]
		frame.SizeProbe{Size: n.came}.Put(buf[at:])
		n.came = 0
	}
	return buf
}

// introduction makes the frame of one, which says what is offered, unless that is nil.
func (s *sending) introduction(b *batch, now ack.Instant, hello frame.Hello, offered *frame.Services) []byte {
	seq, ok := s.sender.Alone(now)
	if !ok {
		seq = s.sender.Next()
	}
	var h frame.Header
	s.label(&h)
	buf := putHello(b, h, s.sender.Wide(seq), hello, offered)
	if offered == nil && hello.Peer == uint32(unknown) {
		buf = padded(buf, b.headroom) // so that an answer that refers to somebody else is no longer
	}
	return buf
}

// padded makes the frame of an introduction as long as one with an identity.
func padded(buf []byte, headroom int) []byte {
	buf = buf[:headroom+identifiedSize]
	clear(buf[headroom+helloSize:])
	return buf
}

// putHello makes the frame of an introduction between two ids, and says in it which
// services are offered, unless that is nil.
func putHello(b *batch, between frame.Header, id ack.Wide, hello frame.Hello, offered *frame.Services) []byte {
	buf := b.small()
	between.Flags = frame.FlagMessages
	between.SetHelloID(uint32(id))
	between.Put(buf[b.headroom:])
	m := hello.Message()
	m.Put(buf[b.headroom+frame.HeaderSize:])
	if offered == nil {
		return buf[:b.headroom+helloSize]
	}
	offered.Put(buf[b.headroom+helloSize:])
	return buf[:b.headroom+toldSize]
}

// stamp implements sendingKind. A peer that waits for each transaction would wait for
// the delay of acknowledgements each time: what comes next does not.
func (n *nativeSending) stamp(buf []byte, id, start frame.Seq) []byte {
	n.quick = true
	s := frame.Stamp{Life: uint32(n.theirs), ID: uint32(n.sender.Wide(id)), Start: uint32(n.reached.Near(start))}
	at := len(buf)
	buf = buf[:at+frame.StampSize]
	s.Put(buf[at:])
	return buf
}

// ask makes a hello to that life due.
func (n *nativeSending) ask(now ack.Instant, life incarnation) {
	if n.theirs != unknown {
		if n.asked != life {
			n.tries = 0
		}
		n.tries = min(n.tries, helloTries-1) // heard of it: once more
	}
	n.asked = life
	n.askAt = min(n.askAt, now)
}

// insists reports whether a life that was believed and never showed that it believes ours
// is still named, though another one has introduced itself. One that has written is a connection's,
// and was kept there: naming it for long would recall nothing. One that came by itself and left is
// not named any more.
func (n *nativeSending) insists(now ack.Instant, taken bool) bool {
	if n.renounced || n.left(now) {
		return false
	}
	return n.tries < leastInsisted || !taken && now < n.since.Add(n.cfg.GiveUp/2)
}

// askSoon makes a hello due as soon as one may follow the last.
func (n *nativeSending) askSoon(now ack.Instant) {
	n.askAt = min(n.askAt, max(now, n.askedAt.Add(helloFirst)))
}

// keyed implements sendingKind. Something tells the peer that we have the key.
func (n *nativeSending) keyed(now ack.Instant) {
	n.askAt = now
	n.answer = n.answer || n.theirs != unknown
}

// hurry ends the idle rhythm of hellos, because something is to be sent.
func (n *nativeSending) hurry(now ack.Instant) {
	if n.theirs == unknown {
		n.tries, n.since = 0, now
		n.askSoon(now)
	}
}

// remind is told that a frame came which does not belong to the life we know, or that belongs to
// one that was given up. Its sender has to be asked, or reminded who we are: a hello may have
// been lost; or told that it was given up: it may have stood still meanwhile.
func (n *nativeSending) remind(now ack.Instant) {
	switch {
	case now < n.remindedAt.Add(helloFirst) && n.remindedAt != 0:
		return
	case n.err != nil:
		n.farewell = !n.renounced
	case n.theirs != unknown && n.later == unknown:
		n.answer = true
	default:
		n.tries = min(n.tries, 2)
		n.askSoon(now)
	}
	n.remindedAt = now
}

// waits reports whether something is posted for a peer that is not there.
func (n *nativeSending) waits() bool { return n.theirs == unknown && n.posted.n > 0 }

func (n *nativeSending) giveUpAt() ack.Instant { return n.since.Add(n.cfg.GiveUp) }

// overdue implements sendingKind.
func (n *nativeSending) overdue(now ack.Instant) (missed int, why error) {
	if err := n.overdueSize(now); err != nil {
		return 0, err
	}
	switch {
	case n.waits() && now >= n.giveUpAt():
	case n.alive.over(now, n.heard.lived, n.cfg.GiveUp) && n.aliveAt() <= now: // the last question had its time
	default:
		return 0, nil
	}
	switch {
	case n.theirs != unknown:
		return 0, n.givenUp("asking whether it is still there")
	case n.other != 0:
		return 0, n.mistaken(frame.Identity{ID: n.other})
	case n.silent():
		return 0, n.givenUp("introducing ourselves")
	}
	return 0, n.givenUp("introducing ourselves (a peer of another kind needs its profile)")
}
