package round

import (
	"slices"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// gate is a wire that can be shut: the machine of its endpoint does nothing for a while, and
// what comes waits for it, or is lost. It keeps a few frames that were sent, for who would
// send them again.
type gate struct {
	transport.Conn
	headroom int

	mu      sync.Mutex
	open    chan struct{} // closed when it opens; nil: it is open
	closed  bool
	sent    uint64
	samples [][]byte
}

const (
	oneOf       = 64 // frames, of which one is kept
	mostSamples = 16
)

func newGate(c transport.Conn) *gate { return &gate{Conn: c, headroom: c.Caps().Headroom} }

// shut shuts the gate, or opens it.
func (g *gate) shut(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.open == nil && !g.closed:
		g.open = make(chan struct{})
	case !shut && g.open != nil:
		close(g.open)
		g.open = nil
	}
}

// pass waits until the gate is open.
func (g *gate) pass() {
	for {
		g.mu.Lock()
		open := g.open
		g.mu.Unlock()
		if open == nil {
			return
		}
		<-open
	}
}

// Recv implements [transport.Conn].
func (g *gate) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	g.pass()
	n, err := g.Conn.Recv(dst, wait)
	g.pass() // it may have been shut meanwhile
	return n, err
}

// Send implements [transport.Conn].
func (g *gate) Send(batch []transport.Outgoing) (int, error) {
	g.pass()
	g.sample(batch)
	return g.Conn.Send(batch)
}

func (g *gate) sample(batch []transport.Outgoing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range batch {
		if g.sent++; g.sent%oneOf != 1 {
			continue
		}
		o := &batch[i]
		b := slices.Concat(o.Buf[min(g.headroom, len(o.Buf)):], o.Rest, o.Tail)
		if len(g.samples) < mostSamples {
			g.samples = append(g.samples, b)
		} else {
			g.samples[g.sent/oneOf%mostSamples] = b
		}
	}
}

// pick returns a frame that was sent, or nil.
func (g *gate) pick(n uint64) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.samples) == 0 {
		return nil
	}
	return append([]byte(nil), g.samples[n%uint64(len(g.samples))]...)
}

// Close implements [transport.Conn].
func (g *gate) Close() error {
	g.shut(false)
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	return g.Conn.Close()
}
