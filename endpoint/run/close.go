package run

import "time"

// disconnectWait is how long Close waits to send what is queued: the transport, which is
// about to be closed, may block the holder of the send lock. Arbitrary: long compared with
// a batch, short for a person.
const disconnectWait = 20 * time.Millisecond

// Close ends everything; a second call waits for the first. It calls three functions:
//
//   - disconnect, when no batch is being applied that had begun before: what it queues is
//     sent;
//   - transport, which ends Receive and Send; what Receive returned last is then given back
//     to it;
//   - end, when no goroutine of the scheduler is left, and Close holds both locks for good.
func (s *Scheduler[W]) Close(disconnect func(), transport func() error, end func()) error {
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
	defer close(s.done) // also if a callback panics: the program may have deferred another call
	if s.own {
		applied := make(chan struct{})
		s.AfterBatch(func() { close(applied) })
		<-applied
	} else {
		s.receiveLock.lock() // no goroutine polls from here on
	}
	disconnect()
	s.sendLast()
	err := s.halt(transport)
	end()
	return err
}

// sendLast sends what is queued.
func (s *Scheduler[W]) sendLast() {
	// The holder of the send lock may have looked at pending for the last time, and the
	// receive goroutine may claim the lock from this goroutine.
	for wait := time.Duration(0); wait < disconnectWait; wait += disconnectWait / 100 {
		if s.sendLock.tryLock() {
			s.send(false)
			if !s.pending.Load() {
				return
			}
		}
		time.Sleep(disconnectWait / 100)
	}
}

// halt ends the transport and the goroutines.
func (s *Scheduler[W]) halt(transport func() error) error {
	close(s.stop)
	err := transport()
	s.loops.Wait()
	if s.own {
		s.receiveLock.lock() // no caller polls from here on
	}
	s.sendLock.mu.Lock() // a caller of Work may still be sending; none begins from here on
	s.engine.Receive(0)  // gives back the buffers of the last batch, which the transport keeps until then
	return err
}
