package rpc

import (
	"slices"
	"sync"
)

// budget is memory that connections share: what peers have lent to be fetched, and calls hold until they are answered. Those that
// find too little wait, and are served in the order in which they came.
type budget struct {
	mu      sync.Mutex
	left    int
	waiting []*share
}

// share is part of a budget.
type share struct {
	n       int
	granted func() // called when there are n octets, if they were not there at once
	has     bool   // guarded by budget.mu
}

// take reports whether a share is granted at once. Otherwise its granted is called by a goroutine that gives some back. At most what
// the budget had at its beginning may be asked for.
func (b *budget) take(s *share) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) > 0 || s.n > b.left {
		b.waiting = append(b.waiting, s)
		return false
	}
	b.left -= s.n
	s.has = true
	return true
}

// put gives a share back, or takes back that it was asked for.
func (b *budget) put(s *share) {
	b.mu.Lock()
	if s.has {
		b.left += s.n
	} else {
		b.waiting = slices.DeleteFunc(b.waiting, func(other *share) bool { return other == s })
	}
	served := 0
	for _, w := range b.waiting {
		if w.n > b.left {
			break
		}
		b.left -= w.n
		w.has = true
		served++
	}
	// A copy, because what waits is moved.
	grants := slices.Clone(b.waiting[:served])
	b.waiting = slices.Delete(b.waiting, 0, served)
	b.mu.Unlock()
	for _, w := range grants {
		w.granted()
	}
}
