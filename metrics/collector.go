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
	// Of returns the thing that the source shows. Things are compared by ==: of two
	// sources of the same thing, the collector shows the one that was added later.
	Of() any
	// Look returns a snapshot of the thing; ok is false when that is closed for good. Any
	// goroutine may call it.
	Look() (e Endpoint, ok bool)
}

// Collector shows sources. It is a [prometheus.Collector]. Any goroutine may call its
// methods.
type Collector struct {
	began     time.Time
	endpoints []family[Endpoint]
	peers     []family[Peer]

	mu      sync.Mutex
	sources []named
}

// named is a source with a name that no other source has.
type named struct {
	Source
	name string
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns an empty collector, for sources that have these counters.
func New(counted Counted) *Collector {
	return &Collector{
		began:     time.Now(),
		endpoints: append(slices.Clip(endpointFamilies), countedOfEndpoints(counted)...),
		peers:     append(slices.Clip(peerFamilies), countedOfPeers(counted)...),
	}
}

// Add adds a source. The collector shows it until it is closed. Nil is no source, and
// shows nothing.
func (c *Collector) Add(s Source) {
	if s == nil {
		return
	}
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

// unused makes a name that no other source has: endpoints of simulated networks, or of
// other network namespaces, may have the same id and address. Guarded by mu.
func (c *Collector) unused(base string) string {
	name := base
	for n := 2; slices.ContainsFunc(c.sources, func(s named) bool { return s.name == name }); n++ {
		name = fmt.Sprintf("%s#%d", base, n)
	}
	return name
}

// prune removes the sources that are closed. Guarded by mu.
func (c *Collector) prune() {
	c.sources = slices.DeleteFunc(c.sources, func(s named) bool {
		_, ok := s.Look()
		return !ok
	})
}

// look returns snapshots of all sources, in the order in which they were added.
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

// View returns what ViewHandler answers.
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
