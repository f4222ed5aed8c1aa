package verbs

import (
	"fmt"
	"sync"

	"github.com/dgrdma/dgrdma/rdmap"
)

// SharedReceives is a queue of receives from which several queue pairs take one for each message that comes
// (RDMAP-108: their peers share what is posted; one that sends much takes from all).
type SharedReceives struct {
	mu    sync.Mutex
	list  []rdmap.Receive // a ring
	head  int
	n     int
	limit int
	below func()
}

// NewSharedReceives makes a queue that holds at most n receives.
func NewSharedReceives(n int) *SharedReceives {
	return &SharedReceives{list: make([]rdmap.Receive, max(n, 1))}
}

// Post adds a receive. Its completion goes to the queue of the queue pair that takes it.
func (s *SharedReceives) Post(r Receive) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == len(s.list) {
		return fmt.Errorf("verbs: %d shared receives are posted: %w", s.n, ErrFull)
	}
	s.list[(s.head+s.n)%len(s.list)] = r
	s.n++
	return nil
}

// Len is how many receives nobody has taken.
func (s *SharedReceives) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// WhenBelow has f called once, on a goroutine of its own, when fewer than limit receives are left.
func (s *SharedReceives) WhenBelow(limit int, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.below = limit, f
	s.warn()
}

func (s *SharedReceives) warn() {
	if s.below != nil && s.n < s.limit {
		go s.below()
		s.below = nil
	}
}

// Take is for streams.
func (s *SharedReceives) Take() (r rdmap.Receive, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return r, false
	}
	r, s.list[s.head] = s.list[s.head], rdmap.Receive{}
	s.head = (s.head + 1) % len(s.list)
	s.n--
	s.warn()
	return r, true
}
