package rpc

import "sync"

// slots are the places of calls that are with handlers. Connections over streams wait for one, and read no more until then. What reads a
// connection over RDMA has to go on, and so its calls wait here: they are no more than the peer was granted.
type slots struct {
	places chan struct{} // one for each call that is with a handler

	mu      sync.Mutex
	waiting []*serverCall // in order
	theirs  bool          // the next free place is of those that wait here, and not of streams
}

// take reports whether a call has a place. Otherwise it waits until put returns it.
func (s *slots) take(c *serverCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.places <- struct{}{}:
		return true
	default:
		s.waiting = append(s.waiting, c)
		return false
	}
}

// put gives a place back. It returns the call that has it next, if one waits.
func (s *slots) put() (next *serverCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := len(s.waiting) > 0
	if !wait || !s.theirs {
		<-s.places // now a stream that waits has it
		if s.theirs = true; !wait {
			return nil
		}
		select {
		case s.places <- struct{}{}:
		default:
			return nil
		}
	}
	s.theirs = false
	next, s.waiting[0] = s.waiting[0], nil
	if s.waiting = s.waiting[1:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	return next
}

// start has a call carried out as soon as there is a place for it.
func (s *Server) start(c *serverCall) {
	if s.slots.take(c) {
		go c.runs()
	}
}

// run carries out a call that has a place.
func (s *Server) run(c *serverCall) {
	all := c.all // the call is used again when it is answered
	s.carryOut(c)
	if all != nil {
		all.Done()
	}
}

// free gives back the place of a call that was carried out.
func (s *Server) free() {
	if next := s.slots.put(); next != nil {
		go next.runs()
	}
}
