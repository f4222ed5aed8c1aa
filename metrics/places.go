package metrics

import (
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// MostReaders is how many connections a listener of [Collector.Places] has at once. Arbitrary: many more
// than look at one program.
const MostReaders = 64

var turnedAway = prometheus.NewDesc("dgrdma_metrics_turned_away_total", "Connections to these metrics that were closed, because as many were open as may be.", nil, nil)

// Places makes a listener for an HTTP server of [Collector.Handler] that has [MostReaders] connections at
// once. Those of more are closed at once, and counted.
func (c *Collector) Places(l net.Listener) net.Listener {
	return &places{l, c, make(chan struct{}, MostReaders)}
}

type places struct {
	net.Listener
	of    *Collector
	taken chan struct{}
}

// Accept implements [net.Listener].
func (p *places) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case p.taken <- struct{}{}:
			return &reader{Conn: c, leave: sync.OnceFunc(func() { <-p.taken })}, nil
		default:
			p.of.turnedAway.Add(1)
			c.Close()
		}
	}
}

// reader is a connection that has a place.
type reader struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (r *reader) Close() error {
	defer r.leave()
	return r.Conn.Close()
}
