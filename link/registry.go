package link

import "sync"

// registry is all links of a host that are not over, and what the others moved.
type registry struct {
	mu             sync.Mutex
	links          map[*Link]struct{}
	made           uint64
	sent, received Traffic
}

func (r *registry) add(l *Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links == nil {
		r.links = make(map[*Link]struct{})
	}
	r.links[l] = struct{}{}
	r.made++
}

// remove notes that a link is over. The caller may hold the lock of a producer.
func (r *registry) remove(l *Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, l)
	s := l.Stats()
	s.addTo(&r.sent, &r.received)
}

// read adds all links to a snapshot. None ends while it runs, so that each is counted once.
func (r *registry) read(s *HostStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Made, s.Sent, s.Received = r.made, r.sent, r.received
	s.Links = make([]LinkStats, 0, len(r.links))
	for l := range r.links {
		x := l.Stats()
		x.addTo(&s.Sent, &s.Received)
		s.Links = append(s.Links, x)
	}
}
