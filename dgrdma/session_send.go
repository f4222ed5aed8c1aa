package dgrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/run"
	"github.com/dgrdma/dgrdma/endpoint/session"
	"github.com/dgrdma/dgrdma/frame"
)

const (
	// toldMTU is the least room for a list of services in a frame of the handshake, see newConn.
	toldMTU = (frame.ListedSize-frame.SessionHeaderSize+7)&^7 + frame.SessionHeaderSize
	// helloMost is the longest time between two frames that ask for an answer while one is waited for.
	helloMost = time.Second
	// longestTrip is how long an answer may take, at most, to one of several HELLOs: else the peer was not there before, more likely. Arbitrary.
	longestTrip = 640 * time.Millisecond
	// leastPause is the shortest time between two of them, however short GiveUp is. Arbitrary.
	leastPause = time.Millisecond
)

// How many services a WELCOME told, if it told none, and if there was no WELCOME.
const (
	unlisted  = -1
	noWelcome = frame.MostServices + 1
)

// sessionSending is the sending half of a connection to a session peer. Guarded by the connection's mutex.
type sessionSending struct {
	*sending
	peerServices // what the peer serves
	peer         *sessionPeer
	m            session.Machine
	learns       bool   // the connection begins with a frame of the peer's
	taken        *taken // of that frame, until it is acted on

	frames session.Sender
	sent   *ack.Flight // those that wait for acknowledgement

	replies  session.Replies
	bye      session.Frame // to be sent as the connection ends
	hellos   int           // that left and were not answered
	helloAt  ack.Instant   // when the first one left
	trip     time.Duration // how long the answer took with which the session began, at most; 0: that is not known
	since    ack.Instant   // when asking, or the list of services, began to matter: something was posted, or the last session began or ended
	other    frame.EndpointID
	restarts bool // there was a session before
	untold   bool // the peer may not know all our services
	// welcomed is how many services the WELCOME of ours told that told fewest, of those that may still begin a session; unlisted: one had
	// no list; noWelcome: there is none.
	welcomed int
	bell     bool   // a bell is to leave
	belled   bool   // one has left in this session
	bellID   uint32 // of the last one

	came int // longest PROBE of the peer's, until it is answered; 0: none
}

// taken is the session that an unknown source confirmed. It is decided once: where another peer makes room, the end of its session may make
// worthless what this one was told.
type taken struct {
	m session.Machine
	o session.Output
}

var _ sendingKind = (*sessionSending)(nil)

func (n *sessionSending) epochs() (mine, theirs session.Epoch) { return n.m.Local, n.m.Remote }

func (n *sessionSending) open() bool { return n.m.State >= session.Confirming }

// at returns what the machine is told of its surroundings.
func (n *sessionSending) at(now ack.Instant) session.At {
	trip, _ := n.answered(now)
	return session.At{
		Now: now, Next: n.sent.Next(), Posted: n.pending(), Takes: true, Pause: max(n.mostTimeout(), leastPause), Routed: n.terms.routed, Trip: trip,
	}
}

// answered returns how long the answer took, at most, if one to HELLO comes now; 0: that is not known. exact: only one HELLO left.
func (n *sessionSending) answered(now ack.Instant) (trip time.Duration, exact bool) {
	if trip = now.Sub(n.helloAt); n.hellos == 0 || n.hellos > 1 && trip > longestTrip {
		return 0, false
	}
	return trip, n.hellos == 1
}

// machine calls f with what the machine needs.
func (n *sessionSending) machine(now ack.Instant, f func(at session.At, e session.Epochs) session.Output) session.Output {
	var o session.Output
	n.peer.conn.ep.epochs.with(n.terms.key(), now, func(e session.Epochs) { o = f(n.at(now), e) })
	return o
}

// begin implements sendingKind: it asks for a session, and for another one after a Reset.
func (n *sessionSending) begin(now ack.Instant) {
	n.nextTxn = n.terms.cfg.Entropy()
	n.ready, n.proven, n.checks = false, true, false
	n.measure()
	n.since, n.restarts = now, false
	n.replies.Clear()
	if n.learns {
		n.learns = false
		return
	}
	o := n.machine(now, func(at session.At, e session.Epochs) session.Output {
		if n.m.State != session.None {
			n.m.Restart(at, e)
		}
		n.m.State = min(n.m.State, session.Down)
		return n.m.Connect(at, e)
	})
	n.reply(o.Reply, spoken{})
}

// connected has the program connect to a peer that came by itself.
func (n *sessionSending) connected(now ack.Instant) {
	o := n.machine(now, func(at session.At, e session.Epochs) session.Output { return n.m.Connect(at, e) })
	n.reply(o.Reply, spoken{})
}

// beginSession begins a session. What is posted waits for the list of the peer's services, if it has none so far.
func (n *sessionSending) beginSession(now ack.Instant, s spoken) {
	n.initSent(now)
	trip, exact := n.answered(now)
	switch n.trip = trip; {
	case exact:
		n.sent.RTT().Sample(now, trip)
	case trip > 0: // it may answer any of them: a round trip is no longer
		n.sent.RTT().Assume(trip)
	case s.trip > 0: // the peer has measured it
		n.sent.RTT().Assume(min(s.trip, firstTimeout))
	}
	n.hellos, n.other = 0, 0
	n.terms.nextID.Store(uint32(n.m.Local) + 1)
	n.frames.Begin(&n.m)
	n.peerServices = s.peerServices
	n.ready, n.proven = s.listed, true
	n.checks = n.terms.mayCheck && s.checks
	n.bell, n.belled, n.since = false, false, now
	// A CONFIRM says how many of our services the WELCOME had, which may be older than the last of them. Where both
	// endpoints ask, no CONFIRM may come, and a WELCOME is all that the peer has seen. A peer that has no room for a list gets none.
	knows := n.welcomed
	if n.m.State == session.Up {
		knows = s.list.Known
	}
	n.untold = n.terms.most < frame.ListedSize || !s.listed || knows < len(n.terms.offers.to(n.terms.guest.Load()).All())
	n.measure()
	n.came = 0
}

// failed implements sendingKind: the connection failed, or is closed.
func (n *sessionSending) failed(now ack.Instant) {
	o := n.machine(now, func(_ session.At, e session.Epochs) session.Output {
		if n.closed {
			return n.m.Close(e)
		}
		return n.m.GiveUp(e)
	})
	if o.Reply.Kind == session.Bye {
		n.bye = o.Reply
	}
	n.ready, n.bell, n.untold, n.came = false, false, false, 0
	n.replies.Clear()
	n.terms.resets.Add(1)
}

// next implements sendingKind.
func (n *sessionSending) next(now ack.Instant) (send bool, at ack.Instant) {
	if n.replies.Len() > 0 {
		return true, now
	}
	if n.err != nil {
		return false, run.Never
	}
	at = run.Never
	if t, ok := n.m.RetryAt(); ok {
		if t <= now {
			return true, now
		}
		at = t
	}
	if n.waits() {
		at = min(at, n.giveUpAt())
	}
	if !n.open() {
		return false, at
	}
	alive := n.aliveAt()
	at = min(at, alive)
	switch {
	case n.bell || n.untold || n.came > 0 || alive <= now || n.sent.Withheld():
		return true, now
	case n.suspects():
		return false, now // a long frame followed when much was overdue
	case !n.measures():
		return false, at
	case n.asksSize():
		return true, now
	}
	return false, min(at, max(n.path.RoundEnds(), n.again))
}

// introduce implements sendingKind.
func (n *sessionSending) introduce(b *outgoing.Batch, now ack.Instant) (full bool) {
	for n.err == nil || n.replies.Len() > 0 {
		if n.replies.Len() == 0 {
			o := n.machineRetry(now, false)
			n.reply(o.Reply, spoken{})
		}
		switch {
		case n.replies.Len() > 0:
			if b.IsFull() {
				return true
			}
			n.sendHandshake(b, now, n.replies.Take())
			continue
		case n.err != nil || !n.open():
			return false
		}
		if n.aliveAt() <= now {
			n.bell = true
		}
		switch {
		case !n.bell && !n.untold && n.came == 0 && !n.sent.Withheld() && !n.asksSize():
			return false
		case b.IsFull():
			return true
		case n.untold:
			n.untold = false
			n.sendServices(b, now)
		case n.bell:
			n.bell = false
			n.sendBell(b, now)
		case n.sent.Withheld():
			n.sendWithheld(b, now)
		case n.came > 0:
			n.sendProbed(b)
		case !b.Fits(n.inFlight.FullLength()):
			return true
		default:
			// Last: offload takes what is shorter for the end of a run, and it is lost with it.
			n.askSize(b, now)
		}
	}
	return false
}

// machineRetry has the machine repeat what is due, or what it has at once.
func (n *sessionSending) machineRetry(now ack.Instant, at bool) session.Output {
	if t, ok := n.m.RetryAt(); !ok || !at && t > now {
		return session.Output{}
	}
	return n.m.Retry(n.at(now), at)
}

// sendKept sends a frame that is none of a transaction, and is sent again as those are.
func (n *sessionSending) sendKept(b *outgoing.Batch, id uint32, buf []byte, control frame.Control) {
	n.inFlight.Keep(id, buf, nil, 0)
	h := n.frames.Header(control)
	h.ID = id
	h.Put(buf[b.Headroom():])
	n.frames.Piggyback()
	n.put(b, buf, nil, false)
}

// keyed implements sendingKind.
func (n *sessionSending) keyed(now ack.Instant) {
	n.reply(n.machineRetry(now, true).Reply, spoken{})
}

// hurry ends the idle rhythm of HELLOs, because something is to be sent.
func (n *sessionSending) hurry(now ack.Instant) {
	if n.m.State == session.Asking || n.awaitsList() {
		n.since = now
	}
	n.m.Hurry(n.at(now))
}
