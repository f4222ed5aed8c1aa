package rpc

import (
	"slices"
	"sync"
)

// budget is memory that connections share: that of items which peers have lent to be fetched, and that of replies. Calls hold it until they are answered. Those that
// find too little wait.
//
// A peer that does not answer keeps its memory until the server gives it up. So that the others go on, a host gets no more than is left after
// it: half of all, of what that leaves the next host half, and so on. A host that holds nothing gets what it asks for as soon as that is there, and the others no more
// before; so the largest share is granted some time as well. Those of one host are served in the order in which they came, and hosts in turn.
type budget struct {
	mu    sync.Mutex
	left  int
	hosts map[string]*hostShare // that hold memory, or wait
	turn  []*hostShare          // those that wait
	spare *hostShare            // of a host that has nothing any more
}

// hostShare is what a host has of a budget.
type hostShare struct {
	held    int
	waiting []*share
}

// share is part of a budget.
type share struct {
	host    string
	n       int
	granted func() // called when there are n octets, if they were not there at once
	has     bool   // guarded by budget.mu
}

// take reports whether a share is granted at once. Otherwise its granted is called by a goroutine that gives some back. At most what
// the budget had at its beginning may be asked for.
func (b *budget) take(s *share) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.n == 0 {
		return true
	}
	h := b.hosts[s.host]
	if h == nil {
		if b.hosts == nil {
			b.hosts = make(map[string]*hostShare)
		}
		if h, b.spare = b.spare, nil; h == nil {
			h = new(hostShare)
		}
		b.hosts[s.host] = h
	}
	if len(h.waiting) > 0 || b.first() != nil || !b.fits(h, s) {
		if h.waiting = append(h.waiting, s); len(h.waiting) == 1 {
			b.turn = append(b.turn, h)
		}
		return false
	}
	b.grant(h, s)
	return true
}

// first returns the first host that waits and holds nothing, or nil: it is the next.
func (b *budget) first() *hostShare {
	for _, h := range b.turn {
		if h.held == 0 {
			return h
		}
	}
	return nil
}

// fits reports whether a host may have a share now.
func (b *budget) fits(h *hostShare, s *share) bool {
	return s.n <= b.left && (h.held == 0 || h.held+s.n <= b.left-s.n)
}

func (b *budget) grant(h *hostShare, s *share) {
	b.left -= s.n
	h.held += s.n
	s.has = true
}

// put gives a share back, or takes back that it was asked for.
func (b *budget) put(s *share) {
	if s.n == 0 {
		return
	}
	b.mu.Lock()
	b.end(s)
}

// end ends a share, passes on what that leaves, and unlocks b.mu.
func (b *budget) end(s *share) {
	h := b.hosts[s.host]
	if s.has {
		b.left += s.n
		h.held -= s.n
	} else if h.waiting = slices.DeleteFunc(h.waiting, func(other *share) bool { return other == s }); len(h.waiting) == 0 {
		b.turn = slices.DeleteFunc(b.turn, func(other *hostShare) bool { return other == h })
	}
	if h.held == 0 && len(h.waiting) == 0 {
		delete(b.hosts, s.host)
		b.spare = h
	}
	s.n, s.has = 0, false
	b.passOn()
}

// withdraw takes back that a share was asked for. It reports false if that was granted before, of which granted tells.
func (b *budget) withdraw(s *share) bool {
	b.mu.Lock()
	if s.has {
		b.mu.Unlock()
		return false
	}
	b.end(s)
	return true
}

// resize changes a share that was granted to n octets, which may be more than there are.
func (b *budget) resize(s *share, n int) {
	switch {
	case n == 0:
		b.put(s)
		return
	case n == s.n:
		return
	}
	b.mu.Lock()
	b.left += s.n - n
	b.hosts[s.host].held += n - s.n
	s.n = n
	b.passOn()
}

// passOn grants what can be granted, and unlocks b.mu.
func (b *budget) passOn() {
	var grants []*share
	for next := b.next(); next != nil; next = b.next() {
		grants = append(grants, next)
	}
	b.mu.Unlock()
	for _, w := range grants {
		w.granted()
	}
}

// next grants the next share of those that wait, and returns it, or nil if none fits.
func (b *budget) next() *share {
	h := b.first()
	if h == nil {
		for _, other := range b.turn {
			if b.fits(other, other.waiting[0]) {
				h = other
				break
			}
		}
	}
	if h == nil || !b.fits(h, h.waiting[0]) {
		return nil
	}
	s := h.waiting[0]
	b.grant(h, s)
	h.waiting = slices.Delete(h.waiting, 0, 1)
	b.turn = slices.DeleteFunc(b.turn, func(other *hostShare) bool { return other == h })
	if len(h.waiting) > 0 {
		b.turn = append(b.turn, h)
	}
	return s
}
