package simnet

import (
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// Network is a set of endpoints and the links between them.
type Network struct {
	seed  uint64
	start time.Time

	mu     sync.Mutex // guards all below, and everything in links and Conns
	closed bool
	conns  map[transport.Addr]*Conn
	links  map[route]*link
	free   [][]byte // datagram buffers out of use, last in first out
	wake   []*Conn  // to be woken before mu is released

	bottlenecks []*Bottleneck

	underWay schedule
	timer    *time.Timer
	armed    bool          // timer will fire at fireAt
	fireAt   time.Duration // since start
}

type route struct{ from, to transport.Addr }

// New returns a network without endpoints. Networks with the same seed treat
// the same datagrams the same way.
func New(seed uint64) *Network {
	return &Network{
		seed:  seed,
		start: time.Now(),
		conns: make(map[transport.Addr]*Conn),
		links: make(map[route]*link),
	}
}

// Attach adds an endpoint. An address can be attached again after its Conn was
// closed; attaching one that is in use, or no address, panics. On a closed
// network the Conn is closed from the start.
func (n *Network) Attach(addr transport.Addr, cfg Config) *Conn {
	if addr.IsZero() {
		panic("BUG: simnet: attach without an address")
	}
	c := newConn(n, addr, cfg)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		c.closed = true
		return c
	}
	if n.conns[addr] != nil {
		panic("BUG: simnet: address in use: " + addr.String())
	}
	n.conns[addr] = c
	n.redirect(addr, c)
	return c
}

// Link sets how datagrams travel from one address to another; neither needs to
// be attached. It may be called again at any time: datagrams under way keep
// their times, those sent later take the new link as if it were another cable,
// and its Script starts counting at 0. Counters and generators go on.
func (n *Network) Link(from, to transport.Addr, cfg Link) {
	cfg.mustBeValid()
	if cfg.Through != nil && cfg.Through.net != n {
		panic("BUG: simnet: a link through a bottleneck of another network")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(from, to).configure(cfg)
}

// Inject puts a datagram into the receive queue of whoever is attached at to, as if
// from had sent it: what somebody can do who forges addresses. It passes no link,
// and counts as none of its datagrams.
func (n *Network) Inject(from, to transport.Addr, frame []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deliver(newLink(n.seed, from, n.conns[to], to), n.clone(0, frame), transport.NotECT, 0)
	n.wakeReceivers()
}

// LinkStats returns the counters of one direction.
func (n *Network) LinkStats(from, to transport.Addr) LinkStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.links[route{from, to}]; l != nil {
		return l.stats
	}
	return LinkStats{}
}

// TotalStats returns the sums over all directions.
func (n *Network) TotalStats() LinkStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	var sum LinkStats
	for _, l := range n.links {
		sum.add(&l.stats)
	}
	return sum
}

// Close closes all endpoints and discards what is under way. It always returns
// nil and may be called any number of times.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, c := range n.conns {
		n.detach(c)
	}
	for _, it := range n.underWay {
		it.link.stats.InFlight--
		it.link.stats.Unattached++
	}
	for _, b := range n.bottlenecks {
		b.discard()
	}
	n.underWay, n.free = nil, nil
	if n.timer != nil {
		n.timer.Stop()
	}
	n.wakeReceivers()
	return nil
}

// link returns the link of a direction and makes a perfect one if there is none.
func (n *Network) link(from, to transport.Addr) *link {
	r := route{from, to}
	l := n.links[r]
	if l == nil {
		l = newLink(n.seed, from, n.conns[to], to)
		n.links[r] = l
	}
	return l
}

// redirect points all links to addr at c, which is nil if nobody is there.
func (n *Network) redirect(addr transport.Addr, c *Conn) {
	for r, l := range n.links {
		if r.to == addr {
			l.dst = c
		}
	}
}

func (n *Network) detach(c *Conn) {
	c.closed = true
	delete(n.conns, c.addr)
	n.redirect(c.addr, nil)
	for c.queue.len() > 0 {
		n.recycle(c.queue.pop().buf)
	}
	n.wakeLater(c)
}

// deliver puts a datagram that has reached the end of its link into the
// receiver's queue. ordinal is 0 for copies.
func (n *Network) deliver(l *link, buf []byte, ecn transport.ECN, ordinal uint64) {
	c := l.dst
	switch {
	case c == nil:
		l.stats.Unattached++
		n.recycle(buf)
		return
	case len(buf) > c.caps.MTU:
		c.stats.Truncated++
		l.stats.Overrun++
		n.recycle(buf)
		return
	case c.queue.len() >= c.queueLimit:
		c.stats.KernelDrops++
		l.stats.Overrun++
		n.recycle(buf)
		return
	}
	l.delivered(ordinal)
	c.queue.push(received{l, buf, ecn})
	n.wakeLater(c)
}

// wakeLater notes that c's Recv has something to do. It is woken when the
// whole batch is in, so that it does not meet a locked mutex.
func (n *Network) wakeLater(c *Conn) {
	if c.waiting {
		c.waiting = false
		n.wake = append(n.wake, c)
	}
}

func (n *Network) wakeReceivers() {
	for _, c := range n.wake {
		select {
		case c.ready <- struct{}{}:
		default: // from before: it was not waited for any longer
		}
	}
	n.wake = n.wake[:0]
}

// clone copies a frame, of which parts may lie elsewhere, into a buffer of the network with
// room for at least size bytes.
func (n *Network) clone(size int, frame []byte, rest ...[]byte) []byte {
	var buf []byte
	if last := len(n.free) - 1; last >= 0 {
		buf = n.free[last]
		n.free[last] = nil
		n.free = n.free[:last]
	}
	length := len(frame)
	for _, r := range rest {
		length += len(r)
	}
	if cap(buf) < length {
		buf = make([]byte, 0, max(size, length))
	}
	buf = append(buf[:0], frame...)
	for _, r := range rest {
		buf = append(buf, r...)
	}
	return buf
}

func (n *Network) recycle(buf []byte) { n.free = append(n.free, buf) }
