package simnet

import (
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// Bottleneck is a queue and a transmitter that several links of a network share. Each link is
// a flow of it.
type Bottleneck struct {
	net   *Network
	queue *bottleneck.Queue[parcel] // guarded by net.mu, as flows is
	flows map[*link]*bottleneck.Flow
}

// parcel is a datagram that is on its way through a link.
type parcel struct {
	link    *link
	buf     []byte
	ecn     transport.ECN
	ordinal uint64
	sent    time.Duration
	chance  fate
	verdict Verdict
}

// FlowStats says what of a link came to a [Bottleneck], and how it fared.
type FlowStats struct {
	bottleneck.Counts

	Median, Delay95, Longest time.Duration // waiting for the transmission to begin
}

// NewBottleneck makes a bottleneck, for [Link.Through]. The times of its configuration are
// since the network was made.
func (n *Network) NewBottleneck(cfg bottleneck.Config) *Bottleneck {
	b := &Bottleneck{net: n, flows: make(map[*link]*bottleneck.Flow)}
	b.queue = bottleneck.New(cfg, b.dropped)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bottlenecks = append(n.bottlenecks, b)
	return b
}

// Stats returns the counters of one direction.
func (b *Bottleneck) Stats(from, to transport.Addr) FlowStats {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	if f := b.flows[b.net.links[route{from, to}]]; f != nil {
		return flowStats(f)
	}
	return FlowStats{}
}

// TotalStats returns the counters of all directions together.
func (b *Bottleneck) TotalStats() FlowStats {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	return flowStats(b.queue.All())
}

// Queued returns how many bytes wait now.
func (b *Bottleneck) Queued() int {
	b.net.mu.Lock()
	defer b.net.mu.Unlock()
	b.drain(b.net.now())
	return b.queue.Bytes()
}

func flowStats(f *bottleneck.Flow) FlowStats {
	return FlowStats{f.Counts(), f.Delay(0.5), f.Delay(0.95), f.Delay(1)}
}

// enter has a datagram wait. Its time is not before that of any other.
func (b *Bottleneck) enter(p parcel, now time.Duration) {
	f := b.flows[p.link]
	if f == nil {
		f = b.queue.NewFlow()
		b.flows[p.link] = f
	}
	b.drain(now)
	p.link.stats.InFlight++
	b.queue.Enter(now, f, len(p.buf), p.ecn != transport.NotECT, p)
}

// drain has all go on that has left by now.
func (b *Bottleneck) drain(now time.Duration) {
	for at, ok := b.queue.Due(); ok && at <= now; at, ok = b.queue.Due() {
		b.leave()
	}
}

// leave has the next go on, which is due.
func (b *Bottleneck) leave() {
	left := b.queue.Leave()
	p := left.What
	p.link.stats.InFlight--
	if left.Marked {
		p.link.stats.Marked++
		p.ecn = transport.CE
	}
	b.net.travel(p, left.At)
}

func (b *Bottleneck) dropped(p parcel, why bottleneck.Reason) {
	p.link.stats.InFlight--
	switch why {
	case bottleneck.Full:
		p.link.stats.TailDropped++
	case bottleneck.Control:
		p.link.stats.Controlled++
	case bottleneck.Down:
		p.link.stats.Down++
	}
	b.net.recycle(p.buf)
}

// discard ends the way of all that is in the queue.
func (b *Bottleneck) discard() {
	b.queue.Clear(func(p parcel) {
		p.link.stats.InFlight--
		p.link.stats.Unattached++
	})
}

// nextBottleneck returns the one of which something leaves first, and when; nil if nothing
// does. Of equal ones the oldest is first.
func (n *Network) nextBottleneck() (first *Bottleneck, due time.Duration) {
	for _, b := range n.bottlenecks {
		if at, ok := b.queue.Due(); ok && (first == nil || at < due) {
			first, due = b, at
		}
	}
	return first, due
}
