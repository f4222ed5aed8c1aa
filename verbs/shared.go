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
	list  []Receive // a ring
	head  int
	n     int
	limit int
	below func()
}

// NewSharedReceives makes a queue that holds at most n receives.
func NewSharedReceives(n int) *SharedReceives {
	return &SharedReceives{list: make([]Receive, max(n, 1))}
}

// Post adds a receive. It completes in the queue of the queue pair that takes it. [ErrFull]: as many are posted as
// it holds.
func (s *SharedReceives) Post(r Receive) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == len(s.list) {
		return fmt.Errorf("post a shared receive: all %d places of NewSharedReceives are taken: %w", s.n, ErrFull)
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

// taker is the queue as streams see it.
type taker SharedReceives

func (t *taker) Take() (taken rdmap.Receive, ok bool) {
	s := (*SharedReceives)(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return taken, false
	}
	taken, s.list[s.head] = rdmap.Receive(s.list[s.head]), Receive{}
	s.head = (s.head + 1) % len(s.list)
	s.n--
	s.warn()
	return taken, true
}
