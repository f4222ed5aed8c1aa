package sched

import (
	"sync/atomic"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/internal/patience"
)

const (
	// lendMost is how long a helper stays that takes datagrams for others, and none of
	// those it waits for. Arbitrary: short for a person, long beside a batch.
	lendMost = 20 * time.Millisecond
	// idleTurn is how long nobody may receive after a helper left, before the
	// receiving goroutine does again: a peer of ours that hears nothing for
	// ack.Granularity longer than usual sends some of it again.
	idleTurn = ack.Granularity * 4 / 5
	// longAbsence of a helper is when it would be better if another goroutine
	// received meanwhile: in that time a megabyte comes.
	longAbsence = 250 * time.Microsecond
)

// lending is how the receiving goroutine lends its turn to a goroutine that waits in
// Await, the helper, which would sleep otherwise. A helper that comes again soon finds
// the turn where it was left. With several who wait the turn goes back: each would
// receive for the others.
type lending struct {
	waiters  atomic.Int32  // goroutines in Await
	asked    atomic.Bool   // someone would help
	loans    atomic.Uint64 // how often someone did: tests ask
	offered  chan struct{} // one token: the turn may be borrowed now
	returned chan struct{} // one token: the receiving goroutine is to take it back now
	worth    patience.Help

	// Of who has the turn.
	left ack.Instant // when the last helper left; 0: nobody did since it was lent
}

func (l *lending) init() {
	l.worth.Init()
	l.offered, l.returned = make(chan struct{}, 1), make(chan struct{}, 1)
}

// judge is told, by who has the turn, after what absence a helper came back; one that
// did not in time, or helped in vain, was away for idleTurn.
func (l *lending) judge(absence time.Duration) { l.worth.Judge(absence, longAbsence) }

// help receives until the wait is over, or until nothing came for a moment. It returns
// at once if help is not welcome, or someone else receives; after that, offered says
// when to try again.
func (s *Scheduler[W]) help(u *until) {
	l := &s.lending
	if !s.cfg.Lend || s.broken.Load() {
		return
	}
	if l.waiters.Load() > 1 {
		patience.Leave(l.returned)
		return
	}
	if !l.worth.Welcome() {
		patience.Leave(l.returned)
		return
	}
	if !s.receiving.tryTake() {
		l.asked.Store(true)
		return
	}
	back := false
	defer func() {
		s.receiving.give()
		if back { // in this order: who takes the token looks for the turn but once
			patience.Leave(l.returned)
		}
	}()
	l.loans.Add(1)
	began := s.engine.Now()
	if l.left != 0 {
		l.judge(began.Sub(l.left))
		l.left = 0
	}
	for !u.met() {
		n, err := s.receive(atATime)
		if n == 0 || err != nil { // which the receiving goroutine will meet again
			l.judge(idleTurn)
			back = true
			return
		}
		if l.waiters.Load() > 1 || s.engine.Now().Sub(began) >= lendMost {
			back = true
			return
		}
	}
	l.left = s.engine.Now()
}

// lend gives the turn to whoever asked for it, until it lies idle.
func (s *Scheduler[W]) lend(idle *time.Timer) {
	l := &s.lending
	select {
	case <-l.returned: // of an earlier loan
	default:
	}
	l.left = 0
	s.receiving.give()
	patience.Leave(l.offered)
	for look := idleTurn; ; {
		atOnce := false
		idle.Reset(look)
		select {
		case <-l.returned:
			atOnce = true
		case <-s.stop:
			s.receiving.take() // the helper is about to meet the end of the transport
			return
		case <-idle.C:
		}
		look = idleTurn
		if !s.receiving.tryTake() {
			continue
		}
		if l.left != 0 && !atOnce {
			if look = idleTurn - s.engine.Now().Sub(l.left); look > 0 {
				s.receiving.give()
				patience.Leave(l.offered) // who asked just now found it taken
				continue
			}
		}
		l.left = 0
		l.asked.Store(false)
		if !atOnce {
			l.judge(idleTurn)
		}
		return
	}
}
