package budget

import "sync/atomic"

// Share is what one link has of the budget. Call Init first. Methods may be called from any
// goroutine.
type Share struct {
	budget       *Budget
	peer         *Peer
	wake, shrink func()
	charged      atomic.Int64
	waits        atomic.Bool
	closed       atomic.Bool
}

// Init makes it a share of b. wake wakes the goroutine that waits for bytes, and must not call
// the share. shrink gives back what the link keeps and does not need.
func (s *Share) Init(b *Budget, p *Peer, wake, shrink func()) {
	s.budget, s.peer, s.wake, s.shrink = b, p, wake, shrink
}

// Left returns how many bytes more the peer may have: as many as it leaves for others.
func (s *Share) Left() int64 { return (s.budget.limit - s.budget.used.Load() - s.peer.used.Load()) / 2 }

// Fits reports whether the peer may have n bytes more.
func (s *Share) Fits(n int64) bool { return n == 0 || n <= s.Left() }

// Charge counts n bytes. Not ok: the peer may not have them, or the share is closed.
func (s *Share) Charge(n int64) (ok bool) {
	if n == 0 {
		return true
	}
	if s.peer.used.Add(n) > s.budget.limit-s.budget.used.Add(n) {
		s.budget.uncharge(s.peer, n)
		return false
	}
	s.charged.Add(n)
	if s.closed.Load() { // Close may have been before, or after
		s.Uncharge(n)
		return false
	}
	return true
}

// Uncharge takes n bytes off, unless Close did.
func (s *Share) Uncharge(n int64) {
	for {
		charged := s.charged.Load()
		if charged < n || n == 0 {
			return
		}
		if s.charged.CompareAndSwap(charged, charged-n) {
			s.budget.uncharge(s.peer, n)
			return
		}
	}
}

// Close takes off all that is charged. Nothing can be charged after that.
func (s *Share) Close() {
	s.closed.Store(true)
	s.SetGrown(false)
	if n := s.charged.Swap(0); n > 0 {
		s.budget.uncharge(s.peer, n)
	}
}

// SetGrown says whether the link may have something to shrink.
func (s *Share) SetGrown(grown bool) {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if grown && !s.closed.Load() {
		b.grown[s] = struct{}{}
	} else {
		delete(b.grown, s)
	}
}

// CanShrink says that the link has something to shrink. If links wait, one of them has all
// links shrink, and looks again.
func (s *Share) CanShrink() {
	if s.budget.waiters.Load() > 0 {
		s.budget.surplus.Store(true)
		s.budget.scheduleWake()
	}
}

// Wait enters the link among those that are woken when bytes are uncharged, and has all links
// shrink if that can help. The caller looks again after it.
func (s *Share) Wait() {
	b := s.budget
	first := !s.waits.Swap(true)
	if first {
		b.waits.Add(1)
		b.mu.Lock()
		b.waiting[s] = struct{}{}
		b.mu.Unlock()
		b.waiters.Add(1)
	}
	if b.surplus.Swap(false) || first {
		b.shrinkAll()
	}
}

// StopWaiting ends what Wait began.
func (s *Share) StopWaiting() {
	if !s.waits.Swap(false) {
		return
	}
	b := s.budget
	b.mu.Lock()
	delete(b.waiting, s)
	b.mu.Unlock()
	b.waiters.Add(-1)
}

// Chunk returns memory for a message of n bytes, for which SizeOf(n) bytes are charged; nil for
// no bytes.
func (s *Share) Chunk(n int) *Chunk { return s.peer.free.take(n) }

// Free gives a chunk back to the links of the peer, and uncharges it.
func (s *Share) Free(c *Chunk) {
	s.peer.free.give(c)
	s.Uncharge(int64(len(c.Bytes)))
}

// Forget uncharges a chunk that the application may still write to: no message gets it again.
func (s *Share) Forget(c *Chunk) { s.Uncharge(int64(len(c.Bytes))) }

// wasteful is how many times as long as its message a chunk may be that waits for an
// acknowledgement. Arbitrary: to copy bytes costs less than to send them.
const wasteful = 4

// Fit returns the chunk for the first n bytes of c: c itself, or a shorter one with a copy if
// they fill little of c.
func (s *Share) Fit(c *Chunk, n int) *Chunk {
	if c == nil || SizeOf(n)*wasteful > int64(len(c.Bytes)) {
		return c
	}
	short := s.Chunk(n)
	if short != nil {
		// This is less than what Free takes off, so it is not checked.
		more := SizeOf(n)
		copy(short.Bytes, c.Bytes[:n])
		s.charged.Add(more)
		s.peer.used.Add(more)
		s.budget.used.Add(more)
	}
	s.Free(c)
	return short
}
