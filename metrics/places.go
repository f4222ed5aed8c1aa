package metrics

import (
	"container/list"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// MostReaders is how many connections a listener of [Collector.Places] has at once. Arbitrary: many more
// than look at one program.
const MostReaders = 64

var turnedAway = prometheus.NewDesc("dgrdma_metrics_turned_away_total", "Connections to these metrics that were closed, because as many were open as may be.", nil, nil)

// Places makes a listener for an HTTP server of [Collector.Handler] that has [MostReaders] connections at
// once. A newcomer who finds no place gets that of the connection that has been there longest, which is closed and
// counted: so those who connect and stay keep nobody out.
func (c *Collector) Places(l net.Listener) net.Listener { return &places{Listener: l, of: c} }

type places struct {
	net.Listener
	of *Collector

	mu      sync.Mutex
	readers list.List // of *reader, the longest there first
}

// Accept implements [net.Listener].
func (p *places) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	r := &reader{Conn: c, of: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers.Len() == MostReaders {
		out := p.readers.Remove(p.readers.Front()).(*reader)
		out.at = nil
		p.of.turnedAway.Add(1)
		out.Conn.Close()
	}
	r.at = p.readers.PushBack(r)
	return r, nil
}

// reader is a connection that has a place.
type reader struct {
	net.Conn
	of *places
	at *list.Element // nil: it has none any more
}

// Close implements [net.Conn].
func (r *reader) Close() error {
	r.of.mu.Lock()
	if r.at != nil {
		r.of.readers.Remove(r.at)
		r.at = nil
	}
	r.of.mu.Unlock()
	return r.Conn.Close()
}
