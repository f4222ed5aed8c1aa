package run

import "time"

// progressPoll is how long a caller of Progress waits for datagrams before it looks
// whether Close has begun. Arbitrary: short for a person, long compared with a batch.
const progressPoll = 20 * time.Millisecond

// Progress runs the engine once. It takes the datagrams that have come, waiting no longer
// than wait for the first, and applies them. It acts on deadlines that passed, sends what
// is due and delivers answers. It returns how many datagrams there were at first: none if
// another goroutine received all the while. With [Forever] it returns when something was
// done.
func (s *Scheduler[W]) Progress(wait time.Duration) (int, error) {
	if !s.receiveLock.tryLock() {
		if wait == 0 {
			return 0, s.closing()
		}
		var over <-chan time.Time
		if wait >= 0 {
			over = time.After(wait)
		}
		select {
		case <-s.receiveLock.free:
			wait = 0
		case <-s.ending:
			return 0, s.cfg.ErrClosed
		case <-over:
			return 0, s.closing()
		}
	}
	defer s.receiveLock.unlock()
	return s.progress(wait)
}

// progress is Progress of the holder of the receive lock.
func (s *Scheduler[W]) progress(wait time.Duration) (n int, err error) {
	if err = s.Err(); err == nil {
		n, err = s.receiveUntil(wait)
	}
	if err != nil && err != s.cfg.ErrClosed {
		s.Break(err)
		s.serve()
	} else if !s.own { // else the send goroutine does all this
		if s.alarm.next() <= s.engine.Now() {
			s.expire()
		}
		select {
		case <-s.wake:
			s.serve()
		default:
			if s.pending.Load() {
				s.serve()
			}
		}
	}
	return n, err
}

// closing returns ErrClosed once Close has begun.
func (s *Scheduler[W]) closing() error {
	select {
	case <-s.ending:
		return s.cfg.ErrClosed
	default:
		return nil
	}
}

// receiveUntil is receive that ends when something else is due, or Close begins.
func (s *Scheduler[W]) receiveUntil(wait time.Duration) (n int, err error) {
	left := s.untilDue(wait)
	for ; left < 0 || left > progressPoll; left = s.untilDue(wait) {
		began := s.engine.Now()
		if n, err = s.receive(progressPoll); n > 0 || err != nil {
			return n, err
		}
		if err = s.closing(); err != nil {
			return 0, err
		}
		if wait > 0 {
			wait = max(0, wait-s.engine.Now().Sub(began))
		}
	}
	return s.receive(left)
}

// untilDue returns how long to wait for datagrams: until something else is due, if there
// is no send goroutine to do it.
func (s *Scheduler[W]) untilDue(wait time.Duration) time.Duration {
	if s.own || wait == 0 {
		return wait
	}
	least := func(a, b time.Duration) time.Duration {
		if a < 0 {
			return b
		}
		return min(a, b)
	}
	if len(s.wake) > 0 {
		return 0
	}
	if s.pending.Load() {
		if !s.sendLock.isLocked() {
			return 0
		}
		wait = least(wait, claimLimit) // the transport may block the holder of the send lock
	}
	next := s.alarm.next()
	if next == Never {
		return wait
	}
	return least(wait, max(0, next.Sub(s.engine.Now())))
}
