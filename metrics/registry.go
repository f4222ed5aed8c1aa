package metrics

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// Registry is the endpoints and hosts that are shown. Its methods may be called
// from any goroutine.
type Registry struct {
	began time.Time

	mu      sync.Mutex
	sources []source
}

// source is an endpoint, and its host if it has one.
type source struct {
	name string
	ep   *dgrdma.Endpoint
	host *link.Host
}

// New returns a registry of nothing.
func New() *Registry { return &Registry{began: time.Now()} }

// Endpoint shows an endpoint until it is closed.
func (r *Registry) Endpoint(e *dgrdma.Endpoint) { r.add(e, nil) }

// Host shows a host, its endpoint and its links until it is closed.
func (r *Registry) Host(h *link.Host) { r.add(h.Endpoint(), h) }

func (r *Registry) add(e *dgrdma.Endpoint, h *link.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prune()
	for i := range r.sources {
		if s := &r.sources[i]; s.ep == e {
			if h != nil {
				s.host = h
			}
			return
		}
	}
	r.sources = append(r.sources, source{name: r.unused(fmt.Sprintf("%d@%v", e.ID(), e.LocalAddr())), ep: e, host: h})
}

// unused makes a name that no other endpoint has: those of simulated networks or
// of other namespaces may have the same id and address. Guarded by mu.
func (r *Registry) unused(base string) string {
	name := base
	for n := 2; slices.ContainsFunc(r.sources, func(s source) bool { return s.name == name }); n++ {
		name = fmt.Sprintf("%s#%d", base, n)
	}
	return name
}

// prune forgets endpoints that are closed. Guarded by mu.
func (r *Registry) prune() {
	r.sources = slices.DeleteFunc(r.sources, func(s source) bool { return s.ep.Stats().Closed })
}

// snapshot is what is known of an endpoint at one moment.
type snapshot struct {
	source
	stats dgrdma.Stats
	peers []dgrdma.ConnStats
	links *link.HostStats // nil: it has no links
}

// snapshots looks at all endpoints, in the order in which they were added.
func (r *Registry) snapshots() []snapshot {
	r.mu.Lock()
	sources := slices.Clone(r.sources)
	r.mu.Unlock()
	all := make([]snapshot, 0, len(sources))
	closed := false
	for _, s := range sources {
		x := snapshot{source: s}
		if x.stats, x.peers = s.ep.Inspect(); x.stats.Closed {
			closed = true
			continue
		}
		if s.host != nil {
			x.links = new(s.host.Stats())
		}
		all = append(all, x)
	}
	if closed {
		r.mu.Lock()
		r.prune()
		r.mu.Unlock()
	}
	return all
}

// connOf names a connection: by its peer, and by our id if that is not the
// endpoint's.
func (s *snapshot) connOf(c *dgrdma.ConnStats) string {
	if c.As == s.ep.ID() {
		return nameOf(c.Peer)
	}
	return fmt.Sprintf("%s as %d", nameOf(c.Peer), c.As)
}

// nameOf names a peer as endpoints are named.
func nameOf(p dgrdma.PeerName) string { return fmt.Sprintf("%d@%v", p.ID, p.Addr) }
