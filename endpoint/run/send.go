package run

import "github.com/dgrdma/dgrdma/internal/patience"

// sendLoop serves items when no other goroutine does, acts on deadlines, and delivers
// answers.
func (s *Scheduler[W]) sendLoop() {
	defer s.loops.Done()
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-s.alarm.timer.C:
			s.expire()
		}
		s.serve()
	}
}

// Queue puts an item in the list of those with work. The caller then releases its own
// locks and calls Work.
func (s *Scheduler[W]) Queue(w *Entry[W]) {
	s.work.add(w)
	s.pending.Store(true)
}

// Work has queued items served. This goroutine serves them if inline is set and no other
// goroutine sends, else one of the scheduler's own does. What is queued during a batch of
// datagrams is served at its end.
func (s *Scheduler[W]) Work(inline bool) {
	if s.batching.Load() {
		return // the end of the batch clears batching, then looks at pending
	}
	if !inline {
		s.kick()
		return
	}
	// Other goroutines may queue more work during send. From the third round on it is for
	// the send goroutine, so that the caller is not kept.
	for i := 0; i < 2 && s.pending.Load(); i++ {
		if !s.sendLock.tryLock() {
			return // the holder of the send lock looks at pending after it released it
		}
		s.send(false)
	}
	if s.pending.Load() {
		s.kick()
	}
}

// serve serves all items with work, and delivers answers.
func (s *Scheduler[W]) serve() {
	if err := s.Err(); err != nil {
		s.engine.Abandon(err)
	}
	// The goroutine that holds the send lock, or claims it, looks at pending after it
	// released it.
	if s.pending.Load() && s.sendLock.tryLock() {
		s.send(false)
		if s.pending.Load() && !s.sendLock.claimed.Load() {
			s.kick()
		}
	}
	s.engine.Deliver()
}

// send serves and sends what is pending, and releases the send lock, which the caller
// holds. The caller then looks at pending.
func (s *Scheduler[W]) send(reply bool) {
	defer s.sendLock.unlock()
	whole := false
	defer s.breakUnless(&whole)
	if s.broken.Load() {
		s.pending.Store(false) // a broken scheduler serves no work
	} else {
		if reply {
			s.engine.Reply()
		}
		s.serveAll()
		if s.beforeUnlock != nil {
			s.beforeUnlock()
		}
	}
	whole = true
}

// serveAll serves and sends until no item has work, or the send lock is claimed. What is
// left for the claiming goroutine is pending at once: its claim may end while Flush waits.
// Guarded by sendLock.
func (s *Scheduler[W]) serveAll() {
	for s.pending.Swap(false) {
		now := s.engine.Now()
		serving := s.work.take()
		for i, w := range serving {
			if s.sendLock.claimed.Load() {
				s.work.putBack(serving[i:])
				s.pending.Store(true)
				break
			}
			w.queued.Store(false)
			for !s.engine.Serve(w.item, now) {
				s.engine.Flush()
				if s.sendLock.claimed.Load() {
					s.Queue(w)
					break
				}
			}
		}
		s.engine.Flush()
		s.work.drop()
		if s.sendLock.claimed.Load() {
			return
		}
	}
}

// Kick has answers delivered soon.
func (s *Scheduler[W]) Kick() { s.kick() }

func (s *Scheduler[W]) kick() { patience.Leave(s.wake) }
