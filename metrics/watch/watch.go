// Package watch makes endpoints, hosts of links, hosts of RDMA over TCP and servers of ONC RPC sources of package metrics.
//
//	c := watch.New()
//	c.Add(watch.Host(h)) // or watch.Endpoint(e)
//	c.AddRDMA(watch.RDMA(v, "tcp:10.0.0.1:7471"))
//	c.AddRPC(watch.RPC(r, n, "10.0.0.1:2049"))
//
// Package metrics says what a scrape costs.
package watch

import (
	"errors"
	"fmt"
	"math"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/metrics"
	"github.com/dgrdma/dgrdma/rpc"
	"github.com/dgrdma/dgrdma/verbs"
)

// New returns an empty collector, for endpoints and hosts.
func New() *metrics.Collector {
	return metrics.New(metrics.Counted{
		Endpoint: metrics.CountersOf[dgrdma.Counters](), Transport: metrics.CountersOf[dgrdma.TransportStats](),
		RDMA: metrics.CountersOf[verbs.HostStats](), RPC: metrics.CountersOf[rpc.ServerStats](),
	})
}

// Endpoint makes a source of an endpoint.
func Endpoint(e *dgrdma.Endpoint) metrics.Source { return source{e, nil} }

// Host makes a source of a host: its endpoint and its links.
func Host(h *link.Host) metrics.Source { return source{h.Endpoint(), h} }

type source struct {
	endpoint *dgrdma.Endpoint
	host     *link.Host // nil: it has no links
}

func (s source) Of() any { return s.endpoint }

func (s source) Look() (metrics.Endpoint, bool) {
	e := s.endpoint
	stats, peers := e.Inspect()
	if stats.Closed {
		return metrics.Endpoint{}, false
	}
	v := metrics.Endpoint{
		Name: fmt.Sprintf("%d@%v", e.ID(), e.LocalAddr()), ID: uint16(e.ID()), Address: e.LocalAddr().String(), URL: e.URL(), Memory: e.Size(),
		Age: stats.Age.Seconds(), GiveUp: e.GiveUp().Seconds(), Error: text(stats.Err),
		Counters: metrics.Counts(&stats.Counters), Refused: refusals(&stats.Counters), Transport: metrics.Counts(&stats.Transport), Peers: make([]metrics.Peer, len(peers)),
		Completion: histogram(&stats.Completion), RoundTrip: histogram(&stats.RoundTrip),
	}
	same := make(map[string]int, len(peers))
	for i := range peers {
		v.Peers[i] = viewPeer(e.ID(), &peers[i])
		same[v.Peers[i].Name]++
	}
	for i := range v.Peers {
		if p := &v.Peers[i]; same[p.Name] > 1 {
			p.Name = fmt.Sprintf("%s at %s", p.Name, p.Local)
		}
	}
	if s.host != nil {
		links := s.host.Stats()
		v.Host = viewHost(&links)
	}
	return v, true
}

func histogram(h *dgrdma.Histogram) metrics.Histogram {
	return metrics.NewHistogram(dgrdma.HistogramBound, h.Counts[:], h.Sum)
}

// refusals returns how many frames were refused, by reason.
func refusals(c *dgrdma.Counters) map[string]uint64 {
	m := make(map[string]uint64, len(c.Refused))
	for i, n := range c.Refused {
		if i > 0 { // the first is none
			m[dgrdma.Reason(i).String()] = n
		}
	}
	return m
}

func viewPeer(own dgrdma.EndpointID, c *dgrdma.ConnStats) metrics.Peer {
	p := metrics.Peer{
		Name: nameOf(c.Peer), ID: uint16(c.Peer.ID), As: uint16(c.As), Address: c.Peer.Addr.String(), Profile: c.Profile, State: stateOf(c), Error: text(c.Err),
		Learned: c.Learned, Memory: c.Memory, FrameBytes: c.FrameSize, Life: c.Life, OurEpoch: c.Mine, TheirEpoch: c.Theirs,
		RTT: c.RTT.Seconds(), RTTMin: c.MinRTT.Seconds(), RTTLatest: c.LatestRTT.Seconds(), WindowFrames: c.FrameWindow, WindowBytes: windowOf(c),
		InFlight: c.InFlight, Lost: c.Lost, OnWire: c.OnWire, ECN: c.ECN, Congestion: Congestion(&c.Congestion), Queued: c.Queued, Open: c.Open,
		Counters: metrics.Counts(&c.Counters), Refused: c.RefusedReasons(),
	}
	if ip := c.Peer.Addr.Local(); ip.IsValid() {
		p.Local = ip.String()
	}
	if c.As != own {
		p.Name = fmt.Sprintf("%s as %d", p.Name, c.As)
	}
	if c.Silent >= 0 {
		p.Silent = new(c.Silent.Seconds())
	}
	return p
}

// Congestion shows what a congestion controller does; nil: it does not say.
func Congestion(s *dgrdma.CongestionState) *metrics.Congestion {
	if s.Controller == "" {
		return nil
	}
	return &metrics.Congestion{
		Controller: s.Controller, Why: s.Why, State: s.State, Bandwidth: s.Bandwidth, Pacing: s.PacingRate, MinRTT: s.MinRTT.Seconds(),
		LongTerm: s.InflightLongTerm, ShortTerm: s.InflightShortTerm,
	}
}

// nameOf names a peer as endpoints are named.
func nameOf(p dgrdma.PeerName) string { return fmt.Sprintf("%d@%v", p.ID, p.Addr) }

// windowOf returns how many bytes may be in flight; 0: no limit, which a controller says
// with a number that no frame reaches.
func windowOf(c *dgrdma.ConnStats) int {
	if c.Window >= math.MaxInt32 {
		return 0
	}
	return c.Window
}

func stateOf(c *dgrdma.ConnStats) string {
	switch {
	case c.Down:
		return metrics.StateDown
	case !c.Ready():
		return metrics.StateAsking
	case c.Silent < 0:
		return metrics.StateUnheard
	}
	return metrics.StateUp
}

func viewHost(s *link.HostStats) *metrics.Host {
	h := &metrics.Host{
		Memory: s.Memory, Free: s.Free, Sending: s.Sending, Ended: s.Ended, Made: s.Made, Sent: metrics.Traffic(s.Sent), Received: metrics.Traffic(s.Received),
		Full:  fullOf(&s.Full),
		Ports: make([]metrics.Port, len(s.Ports)), Links: make([]metrics.Link, len(s.Links)),
	}
	for i, p := range s.Ports {
		h.Ports[i] = metrics.Port(p)
	}
	for i := range s.Links {
		h.Links[i] = viewLink(&s.Links[i])
	}
	return h
}

// fullOf returns how often bounds were reached, by their names.
func fullOf(f *link.Full) map[string]uint64 {
	return map[string]uint64{"backlog": f.Backlog, "links": f.Links, "memory": f.Memory, "letters": f.Letters, "ended": f.Ended, "sending": f.Sending}
}

func viewLink(s *link.LinkStats) metrics.Link {
	l := metrics.Link{Number: s.Number, Port: s.Port, Peer: nameOf(s.Peer), State: linkState(s), Age: s.Age.Seconds()}
	if l.State == metrics.LinkFailed {
		l.Error = text(s.Err)
	}
	if o := s.Out; o != nil {
		l.Out = &metrics.Out{
			Traffic: metrics.Traffic(o.Traffic), Buffers: o.Buffers, BufferBytes: o.Size, Free: o.Free, Acquired: o.Acquired, Filled: o.Filled,
			Unacknowledged: o.Unacknowledged, Lost: o.Lost,
		}
	}
	if i := s.In; i != nil {
		l.In = &metrics.In{
			Traffic: metrics.Traffic(i.Traffic), Buffers: i.Buffers, BufferBytes: i.Size, Free: i.Free, Waiting: i.Waiting, Held: i.Held,
			Owed: i.Owed, EndOfFile: i.EndOfFile,
		}
	}
	return l
}

func linkState(s *link.LinkStats) string {
	switch {
	case s.Err != nil && !errors.Is(s.Err, link.ErrClosed):
		return metrics.LinkFailed
	case s.Closing:
		return metrics.LinkClosing
	case s.Dialing:
		return metrics.LinkDialing
	}
	return metrics.LinkOpen
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
