package dgrdma

import (
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/outgoing"
	"github.com/dgrdma/dgrdma/endpoint/pathmtu"
	"github.com/dgrdma/dgrdma/endpoint/queue"
	"github.com/dgrdma/dgrdma/endpoint/segmentation"
	"github.com/dgrdma/dgrdma/frame"
)

// sending is the half of a connection that sends: what is posted, the frames in flight,
// and what is to be acknowledged. All of it is guarded by the connection's mutex.
type sending struct {
	terms  *terms
	kind   sendingKind
	agenda agenda

	wire    wire
	unacked outstanding
	ctl     ack.Controller
	posted  queue.Queue[Transaction]
	letters int // sent and not settled, of all channels
	nextTxn uint32
	epoch   connEpoch

	inFlight    outgoing.InFlight[Transaction]
	path        pathmtu.Path        // how long frames are
	leastChunk  int                 // data bytes of a message that fills a frame, if it is not the last
	shortLayout segmentation.Layout // of transactions that are cut short
	again       ack.Instant         // when a timeout is looked at again that the receiver may have the answer to
	unheard     []uint32            // ids in the batch that is being sent that count as delivered when they are sent
	carried     int                 // length of the longest buffer of a frame that was acknowledged
	// partMessage is that of the frame that buildRun makes: on the stack it would escape.
	partMessage frame.Message

	ready         bool        // the peer takes data, says its kind
	checks        bool        // frames have a checksum
	proven        bool        // and more than one frame
	probe         bool        // a probe is due
	aloneAt       ack.Instant // when an acknowledgement last left by itself
	quick         bool        // they do not wait for company: none came
	disconnecting bool        // the peer is to be told that nothing comes any more
	holding       ack.Instant // since when what does not fill a frame waits for company
	rested        ack.Instant // when the last frame was settled

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
	// queue has it served. The goroutine that does calls run.Work afterwards, without locks.
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

func (s *sending) init(t *terms, a agenda, b *outgoing.Batch) {
	*s = sending{terms: t, agenda: a, epoch: 1, done: make(chan struct{}), room: make(chan struct{}, 1)}
	l := outgoing.Lengths{Full: s.terms.headroom + s.terms.most}
	if s.terms.mayCheck {
		l = outgoing.Lengths{Full: l.Full + frame.ChecksumSize, Spare: frame.ChecksumSize, Least: s.terms.headroom + frame.CheckedSize(0)}
	}
	s.inFlight.Init(l, b)
	s.measure()
}

// start begins with a peer of which nothing is known.
func (s *sending) start(now ack.Instant) {
	p := &s.terms.profile
	s.ctl = s.terms.cfg.controller(p, s.terms.most, s.terms.routed)
	s.wire.start(now)
	s.nextTxn = p.FirstTransaction
	s.kind.begin(now)
}

// mostTimeout is the longest time before a frame is sent again.
func (s *sending) mostTimeout() time.Duration { return min(time.Second, s.terms.cfg.GiveUp/10) }

// post puts a transaction at the end of the queue, and reports whether the connection is
// to be served. What waits after something else leaves when that does, unless both wait
// for company. Only the goroutine that serves calls next: controllers do not run in Post. now counts if
// nothing was posted.
func (s *sending) post(now ack.Instant, f *Flow, t *Transaction) (queued bool) {
	t.flow, t.entry.Item, t.entry.Fence, t.entry.Urgent = f, t, t.Fence, t.Urgent
	next := s.posted.Push(&f.queued, &t.entry)
	if s.posted.Len() == 1 {
		s.holding = now
		s.kind.hurry(now)
	}
	if next || s.terms.cfg.Coalesce > 0 {
		s.agenda.queue()
	}
	return s.agenda.queued()
}

// lose takes out a transaction that will never be done.
func (s *sending) lose(t *Transaction, fin *finished, err error) {
	s.posted.Remove(&t.entry)
	s.counters.TransactionsLost++
	fin.add(t, err)
}

// sendsDisconnect reports whether the peer is told when the connection is closed.
func (s *sending) sendsDisconnect() bool { return s.err == nil }

// disconnect has the peer told that nothing comes any more, after what is to be acknowledged to it.
func (s *sending) disconnect() {
	s.disconnecting = true
	s.agenda.queue()
}

// settled accounts for an acknowledged frame.
func (s *sending) settled(now ack.Instant, id uint32, fin *finished) {
	o := s.inFlight.At(id)
	var since ack.Instant // when those began that are done
	done := uint64(0)
	for t, n := o.First, o.N; n > 0; n-- {
		next := t.entry.Next()
		if t.frames--; t.frames == 0 && t.complete {
			if t.begunAt != since {
				s.took(now.Sub(since), done)
				since, done = t.begunAt, 0
			}
			done++
			s.posted.Remove(&t.entry)
			fin.add(t, nil)
		}
		t = next
	}
	s.took(now.Sub(since), done)
	s.rested = now
	s.carried = max(s.carried, int(o.Length))
	s.inFlight.Discard(o)
}

// abandon fails everything that is posted and forgets what is in flight, so that
// something else can be posted.
func (s *sending) abandon(now ack.Instant, fin *finished, err error) {
	// A new one, for the old one would wait for what was in flight.
	ctl := s.terms.cfg.controller(&s.terms.profile, s.terms.most, s.terms.routed)
	s.forfeit(fin, err)
	s.ctl = ctl
	s.wire.forget(now)
}

// forfeit fails everything that is posted and forgets what is in flight. It calls
// nothing that is not ours.
func (s *sending) forfeit(fin *finished, err error) {
	s.epoch = s.epoch.after()
	for t := s.posted.Oldest(); t != nil; t = s.posted.Oldest() {
		s.lose(t, fin, err)
	}
	for _, t := range slices.Collect(s.posted.Waiting()) {
		s.lose(t, fin, err)
	}
	s.inFlight.Clear()
	s.probe = false
	s.roomMade()
}

// fail ends the connection, and reports whether it had not ended before.
func (s *sending) fail(now ack.Instant, fin *finished, err error) bool {
	if s.err != nil {
		return false
	}
	s.err = err
	s.terms.down.Store(true)
	s.forfeit(fin, err)
	s.wire.forget(now)
	s.kind.failed(now)
	s.rest()
	s.agenda.disarm()
	close(s.done)
	return true
}

// revive makes a connection usable again that had failed.
func (s *sending) revive(now ack.Instant) {
	s.reopen()
	s.start(now)
}

// reopen is revive, but for what is sent.
func (s *sending) reopen() {
	s.err = nil
	s.terms.down.Store(s.reporting)
	s.done = make(chan struct{})
}

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
		// The longer the receiver is behind, the rarer: with thousands of connections these looks would take all of a processor.
		s.again = now.Add(max(ack.Granularity, now.Sub(heard)/2))
	}
	switch s.unacked.Expire(now, heard) {
	case ack.Dead:
		why = s.dead()
	case ack.Probe:
		s.probe = s.terms.profile.Probe
	}
	missed, err := s.kind.overdue(now, heard)
	if err != nil {
		why = err
	}
	return missed, why
}
