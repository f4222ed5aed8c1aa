package metrics

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
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
	rdma      []family[RDMA]
	rpc       []family[RPC]

	turnedAway, cutShort atomic.Uint64
	turn                 chan struct{} // of handlers: one answer is made at a time

	mu      sync.Mutex
	sources sources[Endpoint]
	hosts   sources[RDMA]
	servers sources[RPC]
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns an empty collector, for sources that have these counters.
func New(counted Counted) *Collector {
	return &Collector{
		began:     time.Now(),
		turn:      make(chan struct{}, 1),
		endpoints: append(slices.Clip(endpointFamilies), countedOfEndpoints(counted)...),
		peers:     append(slices.Clip(peerFamilies), countedOfPeers(counted)...),
		rdma:      rdmaFamilies(counted.RDMA),
		rpc:       rpcFamilies(counted.RPC),
		sources:   sources[Endpoint]{name: func(e *Endpoint) *string { return &e.Name }},
		hosts:     sources[RDMA]{name: func(h *RDMA) *string { return &h.Name }},
		servers:   sources[RPC]{name: func(s *RPC) *string { return &s.Name }},
	}
}

// Add adds a source. The collector shows it until it is closed. Nil is no source, and
// shows nothing.
func (c *Collector) Add(s Source) {
	if s == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources.add(s)
}

// look returns snapshots of all sources, in the order in which they were added.
func (c *Collector) look() ([]Endpoint, []RDMA, []RPC) {
	c.mu.Lock()
	e, h, s := slices.Clone(c.sources.all), slices.Clone(c.hosts.all), slices.Clone(c.servers.all)
	c.mu.Unlock()
	endpoints, hosts, servers := look(e, c.sources.name), look(h, c.hosts.name), look(s, c.servers.name)
	if len(endpoints) < len(e) || len(hosts) < len(h) || len(servers) < len(s) {
		c.mu.Lock()
		c.sources.prune()
		c.hosts.prune()
		c.servers.prune()
		c.mu.Unlock()
	}
	return endpoints, hosts, servers
}

// View returns what ViewHandler answers.
func (c *Collector) View() *View {
	endpoints, hosts, servers := c.look()
	return &View{
		Format: Format, PID: os.Getpid(), Time: time.Now().Round(0), Endpoints: endpoints, RDMA: hosts, RPC: servers, Elapsed: time.Since(c.began).Seconds(),
	}
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	to <- buildInfo.Desc()
	to <- turnedAway
	to <- cutShort
	describe(to, c.endpoints)
	describe(to, c.peers)
	describe(to, hostFamilies)
	describe(to, linkFamilies)
	describe(to, c.rdma)
	describe(to, c.rpc)
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	to <- buildInfo
	to <- prometheus.MustNewConstMetric(turnedAway, prometheus.CounterValue, float64(c.turnedAway.Load()))
	to <- prometheus.MustNewConstMetric(cutShort, prometheus.CounterValue, float64(c.cutShort.Load()))
	endpoints, hosts, servers := c.look()
	for i := range hosts {
		collect(to, c.rdma, &hosts[i], hosts[i].Name)
	}
	for i := range servers {
		collect(to, c.rpc, &servers[i], servers[i].Name)
	}
	for _, e := range endpoints {
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
