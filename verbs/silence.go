package verbs

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// ErrSilent is the end of a connection whose peer has done nothing of what it had to for [Options.GiveUp].
var ErrSilent = errors.New("the peer is silent")

// looks is how often it is looked, within the time after which a peer is given up, whether it does anything.
const looks = 8

// sight is what is seen of a peer at one time.
type sight struct {
	mpa.Traffic
	asks int // requests of this side that it has to answer
}

// silence finds out that a peer does nothing of what it has to do. It is told the time, and is to look every so often: of what is
// longer, as when this side got no processor, it has seen nothing.
type silence struct {
	every time.Duration
	after time.Duration // the peer is given up
	at    time.Time     // of the last look
	seen  sight
	late  bool          // that look was
	long  time.Duration // that the peer has been silent, at least
}

func newSilence(giveUp time.Duration, now time.Time) silence {
	return silence{every: max(giveUp/looks, time.Millisecond), after: giveUp, at: now}
}

// look sees what the peer has done, and says whether that is too little.
func (s *silence) look(now time.Time, v sight) (over bool) {
	was, wasLate := s.seen, s.late
	passed := now.Sub(s.at)
	s.at, s.seen, s.late = now, v, passed > 2*s.every
	switch {
	case v.asks == 0 && v.Untaken == 0, was.asks == 0 && was.Untaken == 0: // it has nothing to do, or had not
		s.long = 0
	case v.Came != was.Came:
		s.long = 0
	case was.Untaken > 0 && v.Taken != was.Taken: // what is before a request is on its way still
		s.long = 0
	case s.late && !wasLate: // who was stopped reads first what came meanwhile
		s.long = min(s.long+2*s.every, s.after-1)
	default:
		s.long += min(passed, 2*s.every)
	}
	return s.long >= s.after
}

// why is the error of a peer that is given up.
func (s *silence) why() error {
	return fmt.Errorf("%w: nothing has come from it for %v; requests that it has not answered: %d, bytes that it does not take: %d; is its program stopped, or its machine or the network down?",
		ErrSilent, s.long.Round(time.Millisecond), s.seen.asks, s.seen.Untaken)
}

// watch looks after the peer from now on, if it is to be given up at all.
func (q *QueuePair) watch(giveUp time.Duration) {
	if giveUp <= 0 {
		return
	}
	q.conn.KeepAlive(giveUp)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.silence = newSilence(giveUp, time.Now())
	q.watcher = time.AfterFunc(q.silence.every, q.look)
}

// look sees what the peer has done.
func (q *QueuePair) look() {
	if traffic := q.conn.Traffic(); q.tooSilent(traffic) {
		q.conn.Abort()
	}
}

func (q *QueuePair) tooSilent(t mpa.Traffic) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx.Err() != nil {
		return false
	}
	if !q.silence.look(time.Now(), sight{t, q.stream.Stats().Unanswered}) {
		q.watcher.Reset(q.silence.every)
		return false
	}
	if q.gaveUp == nil && !q.closing {
		q.gaveUp = q.silence.why()
	}
	return true
}

// notAnswered says that TCP has given up a peer: its probes, or what it sends again, had no answer.
func notAnswered(err error) bool {
	return errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH)
}
