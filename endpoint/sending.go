package endpoint

import (
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// sending is the half of a connection that sends: what is posted, the frames in flight,
// and what is to be acknowledged. All of it is guarded by the connection's mutex.
type sending struct {
	*terms
	kind   sendingKind
	agenda agenda

	wire    wire
	unacked outstanding
	v107
	ctl     ack.Controller
	posted  lanes
	letters int // sent and not settled, of all channels
	nextTxn uint32
	stint   stint

	flight
	framing
	again   ack.Instant // when a timeout is looked at again that the receiver may have the answer to
	unheard []uint32    // ids in the batch that is being sent that count as delivered when they are sent
	carried int         // length of the longest buffer of a frame that was acknowledged
	// partMessage is that of the frame that packRun makes: on the stack it would escape.
	partMessage frame.Message

	ready   bool        // the peer takes data, says its kind
	checks  bool        // frames have a checksum
	proven  bool        // and more than one frame
	probe   bool        // a probe is due
	aloneAt ack.Instant // when an acknowledgement last left by itself
	quick   bool        // they do not wait for company: none came
	parting bool        // the peer is to be told that nothing comes any more
	holding ack.Instant // since when what does not fill a frame waits for company
	rested  ack.Instant // when the last frame was settled

	counters  Counters
	times     *Times // nil: none yet
	heard     heard
	err       error // why nothing can be posted
	reporting bool  // it is being told that the peer is down: nothing of it is taken yet
	closed    bool
	done      chan struct{} // closed when err is set
	drained   chan struct{} // not nil while someone waits for posted to become empty
	room      chan struct{} // one token when the queue has room again
}

// agenda is where the sending half says when it wants to be served.
type agenda interface {
	// queue has it served. Whoever does calls sched.Work afterwards, without locks.
	queue()
	// arm has it looked at when the time comes, in place of what was said before.
	arm(now, at ack.Instant)
	// disarm takes that back.
	disarm()
	// queued reports whether it is to be served already.
	queued() bool
}

// heard is what the receiving half said at the end of its last batch.
type heard struct {
	counters Counters
	open     int         // incomplete incoming transactions
	held     int         // bytes kept because of them
	at       ack.Instant // when its last frame came
	lived    ack.Instant // when it last showed that it is there
}

func (s *sending) init(t *terms, a agenda, batches *atomic.Uint64) {
	*s = sending{terms: t, agenda: a, stint: 1, done: make(chan struct{}), room: make(chan struct{}, 1)}
	s.flight.full, s.batches = s.headroom+s.most, batches
	if s.mayCheck {
		s.full, s.more, s.least = s.full+frame.ChecksumSize, frame.ChecksumSize, s.headroom+frame.CheckedSize(0)
	}
	s.measure()
}

// start begins with a peer of whom nothing is known.
func (s *sending) start(now ack.Instant) {
	p := &s.profile
	s.ctl = s.cfg.controller(p, s.most)
	s.wire.start(now)
	s.nextTxn = p.FirstTransaction
	s.kind.begin(now)
}

// mostTimeout is the longest time before a frame is sent again.
func (s *sending) mostTimeout() time.Duration { return min(time.Second, s.cfg.GiveUp/10) }

// mostBetween is the longest time between two copies of a frame while round trips are shorter. A peer
// that tells copies by the time between them, as this implementation does of such a peer, takes what
// comes later for another life: eight in a row have to be lost before that. OpenCPI's driver itself
// does not look at that time. It may need longer to name what it has, and then copies wait for it.
func (s *sending) mostBetween() time.Duration {
	if s.profile.NeverRetransmits {
		return 0
	}
	return s.profile.CopyFor / 8
}

// post puts a transaction at the end of the queue, and reports whether the connection is
// to be served. What waits behind something else leaves when that does, unless both wait
// for company. Only who serves asks next: controllers do not run in Post. now counts if
// nothing was posted.
func (s *sending) post(now ack.Instant, f *Flow, t *Transaction) (queued bool) {
	next := s.posted.push(f, t)
	if s.posted.n == 1 {
		s.holding = now
		s.kind.hurry(now)
	}
	if next || s.cfg.Coalesce > 0 {
		s.agenda.queue()
	}
	return s.agenda.queued()
}

// lose takes out a transaction that will never be done.
func (s *sending) lose(t *Transaction, fin *finished, err error) {
	s.posted.remove(t)
	s.counters.TransactionsLost++
	fin.add(t, err)
}

// tells reports whether the peer is told when the connection is closed.
func (s *sending) tells() bool { return s.err == nil || s.kind.offering() }

// leave has the peer told that nothing comes any more, behind what is to be acknowledged to it.
func (s *sending) leave() {
	s.parting = true
	s.agenda.queue()
}

// settled accounts for an acknowledged frame.
func (s *sending) settled(now ack.Instant, id uint32, fin *finished) {
	o := s.at(id)
	var since ack.Instant // when those began that are done
	done := uint64(0)
	for t, n := o.first, o.n; n > 0; n-- {
		next := t.next
		if t.frames--; t.frames == 0 && t.complete {
			if t.begunAt != since {
				s.took(now.Sub(since), done)
				since, done = t.begunAt, 0
			}
			done++
			s.posted.done(t)
			fin.add(t, nil)
		}
		t = next
	}
	s.took(now.Sub(since), done)
	s.rested = now
	s.carried = max(s.carried, int(o.length))
	s.discard(o)
}

// sent finishes what was sent to a peer that never acknowledges.
func (s *sending) sent(now ack.Instant, fin *finished) {
	for _, id := range s.unheard {
		// It may be acknowledged or given up already.
		if s.sender.Settle(now, ack.Wide(id).Seq()) {
			s.settled(now, id, fin)
		}
	}
	s.unheard = s.unheard[:0]
	s.roomMade()
}

// noteRoundTrip counts the round trip that was measured last, if one was.
func (s *sending) noteRoundTrip() {
	if d, measured := s.unacked.Measured(); measured {
		s.measured().RoundTrip.note(d, 1)
	}
}

// took counts transactions that are done and began that long ago.
func (s *sending) took(d time.Duration, n uint64) {
	if n > 0 {
		s.measured().Completion.note(d, n)
		s.counters.TransactionsDone += n
	}
}

// measured returns where times are counted, of which idle connections have none.
func (s *sending) measured() *Times {
	if s.times == nil {
		s.times = new(Times)
	}
	return s.times
}

// restAfter is how long nothing was done when a connection gives back the
// memory that it has for frames in flight. Arbitrary: rare beside what it saves.
const restAfter = time.Second

// resting reports whether there is such memory and nothing is in flight.
func (s *sending) resting() bool { return s.unacked.InFlight() == 0 && len(s.out) > 0 }

// rest gives it back.
func (s *sending) rest() {
	s.unacked.Shrink()
	s.flight.rest()
}

// abandon fails everything that is posted and forgets what is in flight, so that
// something else can be posted.
func (s *sending) abandon(now ack.Instant, fin *finished, err error) {
	// Anew, for the old one would wait for what was in flight.
	ctl := s.cfg.controller(&s.profile, s.most)
	s.forfeit(fin, err)
	s.ctl = ctl
	s.wire.forget(now)
}

// forfeit fails everything that is posted and forgets what is in flight. It calls
// nothing that is not ours.
func (s *sending) forfeit(fin *finished, err error) {
	s.stint = s.stint.after()
	for t := s.posted.some(); t != nil; t = s.posted.some() {
		s.lose(t, fin, err)
	}
	s.flight.clear()
	s.probe = false
	s.roomMade()
}

// fail ends the connection, and reports whether it had not ended before.
func (s *sending) fail(now ack.Instant, fin *finished, err error) bool {
	if s.err != nil {
		return false
	}
	s.err = err
	s.down.Store(true)
	s.forfeit(fin, err)
	s.wire.forget(now)
	s.rest()
	s.agenda.disarm()
	close(s.done)
	return true
}

// revive makes a connection usable again that had failed.
func (s *sending) revive(now ack.Instant) {
	s.err = nil
	s.down.Store(s.reporting)
	s.done = make(chan struct{})
	s.start(now)
}

// givenUp says that the peer is given up, and whether it ever was there.
func (s *sending) givenUp(op string) error {
	if s.silent() {
		return s.peerError(op, errNeverAnswered)
	}
	return s.peerError(op, ErrPeerDown)
}

// silent reports whether nothing was ever heard of the peer.
func (s *sending) silent() bool { return s.heard.counters.FramesReceived == 0 }

// overdue acts on what the passing of time asks for. It returns how many frames of the
// peer are given up, and why the peer is, if it is.
func (s *sending) overdue(now, heard ack.Instant) (missed int, why error) {
	if s.resting() && now >= s.rested.Add(restAfter) {
		s.rest()
	}
	if s.err != nil {
		return 0, nil
	}
	if heard < now {
		s.again = now.Add(ack.Granularity)
	}
	switch s.unacked.Expire(now, heard) {
	case ack.Dead:
		why = s.dead()
	case ack.Probe:
		s.probe = s.profile.Probe
	}
	missed, err := s.kind.overdue(now)
	if err != nil {
		why = err
	}
	return missed, why
}

// withdraw takes a transaction back of which nothing was sent.
func (s *sending) withdraw(t *Transaction) bool {
	if t.begun || !s.posted.has(t) {
		return false
	}
	s.posted.remove(t)
	t.posted = false
	s.roomMade()
	s.agenda.queue() // t may have been what kept others back, or all there was
	return true
}

// drain returns a channel that is closed when nothing is posted any more, or nil if
// nothing is.
func (s *sending) drain() <-chan struct{} {
	if s.pending() && s.drained == nil {
		s.drained = make(chan struct{})
	}
	return s.drained
}

func (s *sending) pending() bool { return s.posted.n > 0 || s.letters > 0 }

// roomMade tells who waits for the queue.
func (s *sending) roomMade() {
	select {
	case s.room <- struct{}{}:
	default:
	}
	if s.drained != nil && !s.pending() {
		close(s.drained)
		s.drained = nil
	}
}
