package sched

import "time"

// farewellWait is how long Close waits to send what is queued: the transport, which is
// about to be closed, may hold up who sends. Arbitrary: long beside a batch, short for
// a person.
const farewellWait = 20 * time.Millisecond

// Close ends everything; who calls it again waits for the first. farewell is called
// when no batch is being applied that had begun before: what it queues is sent.
// transport ends Receive and Send; what Receive returned last is given back to it. end is
// called when no goroutine of the scheduler is left, and nobody has a turn, nor will have
// one again. Each is called even if a callback in the one before it does not return.
func (s *Scheduler[W]) Close(farewell func(), transport func() error, end func()) (err error) {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	if first && s.err == nil {
		close(s.ended)
	}
	s.mu.Unlock()
	if !first {
		<-s.done
		return nil
	}
	close(s.ending)
	defer close(s.done)
	defer end()
	defer func() { err = s.halt(transport) }()
	if s.own {
		applied := make(chan struct{})
		s.AfterBatch(func() { close(applied) })
		<-applied
	} else {
		s.receiving.take() // nobody drives any more
	}
	farewell()
	s.sendLast()
	return nil
}

// sendLast sends what is queued.
func (s *Scheduler[W]) sendLast() {
	// Who has the turn may have looked at pending for the last time, and the receiving
	// goroutine may claim ours.
	for wait := time.Duration(0); wait < farewellWait; wait += farewellWait / 100 {
		if s.sending.tryTake() {
			s.send(false)
			if !s.pending.Load() {
				return
			}
		}
		time.Sleep(farewellWait / 100)
	}
}

// halt ends everything that Close found running.
func (s *Scheduler[W]) halt(transport func() error) error {
	close(s.stop)
	err := transport()
	s.loops.Wait()
	if s.own {
		s.receiving.take() // nobody helps any more
	}
	s.sending.mu.Lock() // a caller of Work may still be sending, and none begins any more
	s.engine.Receive(0) // nobody else would, and until then the transport keeps what it lent
	return err
}
