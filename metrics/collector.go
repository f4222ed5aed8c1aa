package metrics

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Source is something to be shown: an endpoint, with its links if it has any.
type Source interface {
	// Of is what it shows. It can be compared: of two sources of the same thing the
	// later one is shown.
	Of() any
	// Look returns what it is at this moment; not ok: it is closed for good. It may be
	// called from any goroutine.
	Look() (e Endpoint, ok bool)
}

// Collector shows sources. It is a [prometheus.Collector]; its methods may be called
// from any goroutine.
type Collector struct {
	began     time.Time
	endpoints []family[Endpoint]
	peers     []family[Peer]

	mu      sync.Mutex
	sources []named
}

// named is a source under the name that nothing else has.
type named struct {
	Source
	name string
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a collector of nothing yet, for sources that count this.
func New(counted Counted) *Collector {
	return &Collector{
		began:     time.Now(),
		endpoints: append(slices.Clip(endpointFamilies), countedOfEndpoints(counted)...),
		peers:     append(slices.Clip(peerFamilies), countedOfPeers(counted)...),
	}
}

// Add shows a source until it is closed.
func (c *Collector) Add(s Source) {
	e, ok := s.Look()
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune()
	for i := range c.sources {
		if c.sources[i].Of() == s.Of() {
			c.sources[i].Source = s
			return
		}
	}
	c.sources = append(c.sources, named{s, c.unused(e.Name)})
}

// unused makes a name that no other source has: endpoints of simulated networks or
// of other namespaces may have the same id and address. Guarded by mu.
func (c *Collector) unused(base string) string {
	name := base
	for n := 2; slices.ContainsFunc(c.sources, func(s named) bool { return s.name == name }); n++ {
		name = fmt.Sprintf("%s#%d", base, n)
	}
	return name
}

// prune forgets what is closed. Guarded by mu.
func (c *Collector) prune() {
	c.sources = slices.DeleteFunc(c.sources, func(s named) bool {
		_, ok := s.Look()
		return !ok
	})
}

// look looks at all sources, in the order in which they were added.
func (c *Collector) look() []Endpoint {
	c.mu.Lock()
	sources := slices.Clone(c.sources)
	c.mu.Unlock()
	all := make([]Endpoint, 0, len(sources))
	for _, s := range sources {
		if e, ok := s.Look(); ok {
			e.Name = s.name
			all = append(all, e)
		}
	}
	if len(all) < len(sources) {
		c.mu.Lock()
		c.prune()
		c.mu.Unlock()
	}
	return all
}

// View returns what /debug/dgrdma shows.
func (c *Collector) View() *View {
	return &View{
		Format: Format, PID: os.Getpid(), Time: time.Now().Round(0), Endpoints: c.look(), Elapsed: time.Since(c.began).Seconds(),
	}
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	to <- buildInfo.Desc()
	describe(to, c.endpoints)
	describe(to, c.peers)
	describe(to, hostFamilies)
	describe(to, linkFamilies)
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	to <- buildInfo
	for _, e := range c.look() {
		collect(to, c.endpoints, &e, e.Name)
		for i := range e.Peers {
			collect(to, c.peers, &e.Peers[i], e.Name, e.Peers[i].Name)
		}
		if e.Host == nil {
			continue
		}
		collect(to, hostFamilies, e.Host, e.Name)
		for i := range e.Host.Links {
			l := &e.Host.Links[i]
			collect(to, linkFamilies, l, e.Name, l.Peer, l.Port, fmt.Sprint(l.Number))
		}
	}
}
