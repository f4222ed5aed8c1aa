package run

import (
	"errors"
	"net"
)

// Break ends all sending and receiving for a reason. Of several reasons the first counts;
// while Close runs, the end of the transport is none.
func (s *Scheduler[W]) Break(err error) {
	s.mu.Lock()
	first := s.err == nil && !(s.closed && errors.Is(err, net.ErrClosed))
	if first {
		s.err = err
		s.broken.Store(true)
		if !s.closed {
			close(s.ended)
		}
	}
	s.mu.Unlock()
	if first {
		s.kick()
		s.engine.Broken(err)
	}
}

// breakUnless breaks the scheduler if a callback panicked in a call of the engine, which is
// half done then. The program may recover the panic, and run the engine again.
func (s *Scheduler[W]) breakUnless(whole *bool) {
	if !*whole {
		s.Break(s.cfg.ErrPanic)
	}
}

// IsOver reports whether Await has nothing left to do: the scheduler was closed, or broke
// and has no goroutines of its own.
func (s *Scheduler[W]) IsOver() bool {
	select {
	case <-s.done:
		return true
	default:
		return !s.own && s.broken.Load()
	}
}

// Ended returns a channel that is closed when the scheduler breaks, or Close begins.
func (s *Scheduler[W]) Ended() <-chan struct{} { return s.ended }

// Err returns why the scheduler broke, or nil.
func (s *Scheduler[W]) Err() error {
	if !s.broken.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
