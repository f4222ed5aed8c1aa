package link

import "sync"

// spare is memory for messages to be sent. What was given back last is taken
// first: it is still in the processor's cache.
type spare struct {
	mu   sync.Mutex
	free [][]byte
}

func (s *spare) take(size int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.free) - 1
	if last < 0 {
		return make([]byte, size)
	}
	b := s.free[last]
	s.free = s.free[:last]
	return b
}

func (s *spare) give(b []byte) {
	s.mu.Lock()
	s.free = append(s.free, b)
	s.mu.Unlock()
}
