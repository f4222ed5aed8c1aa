package run

import (
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/internal/patience"
)

const (
	// pollLimit is how long a caller polls that takes datagrams for other callers, and
	// none of those it waits for. Arbitrary: short for a person, long compared with a batch.
	pollLimit = 20 * time.Millisecond
	// idleLimit is how long the receive lock may be free after a caller polled, before the
	// receive goroutine takes it back: a peer of our own kind sends some of it again when it
	// hears nothing for ack.Granularity longer than usual.
	idleLimit = ack.Granularity * 4 / 5
	// longAbsence of a caller is when the receive goroutine had better received in its
	// place: in that time a megabyte comes.
	longAbsence = 250 * time.Microsecond
)

// handover is how the receive goroutine leaves the receive lock to callers of Await. A
// caller that polls would sleep otherwise. A caller that comes again soon finds the lock
// free. With several callers the receive goroutine takes it back: each would receive for
// the others.
type handover struct {
	waiters   atomic.Int32  // goroutines in Await
	requested atomic.Bool   // a caller would poll
	polls     atomic.Uint64 // how often a caller polled: tests ask
	offered   chan struct{} // one token: the receive lock is free for callers now
	returned  chan struct{} // one token: the receive goroutine is to take the receive lock back now
	policy    patience.Handover

	polled ack.Instant // when the last caller ended its poll; 0: none did since the handover. Guarded by the receive lock
}

func (h *handover) init() {
	h.policy.Init()
	h.offered, h.returned = make(chan struct{}, 1), make(chan struct{}, 1)
}

// recordAbsence counts how long a caller was away before it polled again. One that did not
// come in time, or polled in vain, was away for idleLimit. Guarded by the receive lock.
func (h *handover) recordAbsence(absence time.Duration) { h.policy.Record(absence, longAbsence) }

// pollAsCaller receives until the wait is over, or until nothing came for a moment. It
// returns at once if callers are not to poll, or another goroutine receives; a token in
// offered then tells when to try again.
func (s *Scheduler[W]) pollAsCaller(u *until) {
	h := &s.handover
	if !s.cfg.CallerPolling || s.broken.Load() {
		return
	}
	if h.waiters.Load() > 1 {
		patience.Leave(h.returned)
		return
	}
	if !h.policy.MayPoll() {
		patience.Leave(h.returned)
		return
	}
	if !s.receiveLock.tryLock() {
		h.requested.Store(true)
		return
	}
	takeBack := false
	defer func() {
		s.receiveLock.unlock()
		if takeBack { // in this order: the receive goroutine tries the lock once for a token
			patience.Leave(h.returned)
		}
	}()
	h.polls.Add(1)
	began := s.engine.Now()
	if h.polled != 0 {
		h.recordAbsence(began.Sub(h.polled))
		h.polled = 0
	}
	for !u.isMet() {
		n, err := s.receive(awaitPoll)
		if n == 0 || err != nil { // the receive goroutine will meet the error again
			h.recordAbsence(idleLimit)
			takeBack = true
			return
		}
		if h.waiters.Load() > 1 || s.engine.Now().Sub(began) >= pollLimit {
			takeBack = true
			return
		}
	}
	h.polled = s.engine.Now()
}

// handOver leaves the receive lock to callers that poll, until it is idle for too long.
func (s *Scheduler[W]) handOver(idle *time.Timer) {
	h := &s.handover
	select {
	case <-h.returned: // of an earlier handover
	default:
	}
	h.polled = 0
	s.receiveLock.unlock()
	patience.Leave(h.offered)
	for look := idleLimit; ; {
		atOnce := false
		idle.Reset(look)
		select {
		case <-h.returned:
			atOnce = true
		case <-s.stop:
			s.receiveLock.lock() // the caller that polls is about to meet the end of the transport
			return
		case <-idle.C:
		}
		look = idleLimit
		if !s.receiveLock.tryLock() {
			continue
		}
		if h.polled != 0 && !atOnce {
			if look = idleLimit - s.engine.Now().Sub(h.polled); look > 0 {
				s.receiveLock.unlock()
				patience.Leave(h.offered) // a caller that tried just now found it locked
				continue
			}
		}
		h.polled = 0
		h.requested.Store(false)
		if !atOnce {
			h.recordAbsence(idleLimit)
		}
		return
	}
}
