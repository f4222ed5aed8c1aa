package run

import (
	"runtime"
	"time"
)

// Forever is a wait without end.
const Forever time.Duration = -1

// spins is how many looks in vain come before the goroutine yields: there may be only
// one processor. Arbitrary.
const spins = 64

// receiveLoop takes datagrams until the transport ends.
func (s *Scheduler[W]) receiveLoop(blocks bool) {
	defer s.loops.Done()
	if blocks {
		runtime.LockOSThread() // ends with the goroutine
	}
	idle := time.NewTimer(idleLimit)
	defer s.receiveLock.unlock()
	for !s.broken.Load() {
		if s.requested.Load() {
			s.handOver(idle)
		}
		if _, err := s.receive(Forever); err != nil {
			s.Break(err)
			return
		}
	}
}

// receive takes a batch, and applies it. The caller holds the receive lock.
func (s *Scheduler[W]) receive(wait time.Duration) (n int, err error) {
	if s.replyPending && (wait < 0 || wait > claimLimit) {
		wait = claimLimit
	}
	if s.cfg.Spin && wait != 0 {
		for i := 0; n == 0 && err == nil && i < spins; i++ {
			n, err = s.engine.Receive(0)
		}
		if n == 0 {
			runtime.Gosched()
		}
	} else {
		n, err = s.engine.Receive(wait)
	}
	if err != nil || n == 0 {
		if s.replyPending {
			s.sendAfterBatch()
		}
		return n, err
	}
	if err := s.Err(); err != nil {
		return n, err
	}
	return n, s.apply(n)
}

// apply applies a batch, and sends what it calls for. So one goroutine receives
// acknowledgements and sends, as long as they come in.
func (s *Scheduler[W]) apply(n int) error {
	reply, err := s.applyBatch(n)
	s.replyPending = s.replyPending || reply
	if s.replyPending || s.pending.Load() {
		s.sendAfterBatch()
	}
	return err
}

// applyBatch has the engine apply a batch, and then calls what waits for its end.
func (s *Scheduler[W]) applyBatch(n int) (reply bool, err error) {
	s.batching.Store(true)
	defer s.endBatch()
	whole := false
	defer s.breakUnless(&whole)
	reply, err = s.engine.Apply(n)
	whole = true
	return reply, err
}

func (s *Scheduler[W]) endBatch() {
	s.batching.Store(false)
	s.batchEnd.run()
}

// sendAfterBatch sends what a batch called for. If the transport blocks the holder of the
// send lock, that goroutine serves what is pending when it goes on, and the reply is sent
// after a later batch.
func (s *Scheduler[W]) sendAfterBatch() {
	if s.sendLock.claim() {
		reply := s.replyPending
		s.replyPending = false
		s.send(reply)
	}
	if s.pending.Load() {
		s.kick()
	}
}
