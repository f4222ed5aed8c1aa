package link

import (
	"cmp"
	"slices"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Traffic is what links moved in one direction. An end of file counts as a message.
type Traffic struct{ Messages, Bytes uint64 }

func (t *Traffic) add(o Traffic) {
	t.Messages += o.Messages
	t.Bytes += o.Bytes
}

// HostStats is a snapshot of a host.
type HostStats struct {
	Memory, Free   uint64      // bytes for links to receive into, and those of them that no link has
	Sending        uint64      // bytes of messages that were handed out or sent, and are not acknowledged
	Ports          []PortStats // listened on, by name
	Links          []LinkStats // that are not over, by number
	Ended          int         // links that are over here, and whose peers have not ended them
	Made           uint64      // links so far
	Sent, Received Traffic     // of all links, also of those that are over
	Full           Full        // how often its bounds were reached
}

// PortStats is a snapshot of a port.
type PortStats struct {
	Name    string
	Waiting int // links that were asked for and not accepted yet
}

// LinkStats is a snapshot of a link.
type LinkStats struct {
	Number  uint32 // unique in its host
	Port    string // empty: it was made by Offer or Attach
	Peer    dgrdma.PeerName
	Age     time.Duration
	Dialing bool           // the other side has not answered yet
	Closing bool           // the application has ended it
	Err     error          // why it failed, or ErrClosed
	Out     *ProducerStats // nil: it sends nothing
	In      *ConsumerStats
}

// ProducerStats is a snapshot of the half of a link that sends. Each of the
// consumer's buffers is free, acquired, or filled.
type ProducerStats struct {
	Traffic             // committed
	Buffers, Size  int  // of the consumer; 0 while dialing
	Free           int  // credits: buffers that the consumer is known to have free
	Acquired       int  // handed out, and not committed
	Filled         int  // committed, and not given back by the consumer
	Unacknowledged int  // messages that may not have arrived yet
	Lost           bool // some of them never will
}

// ConsumerStats is a snapshot of the half of a link that receives. Each of its
// buffers is free, waiting, or held.
type ConsumerStats struct {
	Traffic           // messages received, and the bytes of those that were released
	Buffers, Size int // of them
	Free          int // buffers that the producer may fill
	Waiting       int // filled, and not received yet
	Held          int // received, and not released
	Owed          int // released, and the producer has not been told yet
	EndOfFile     bool
}

// Stats returns a snapshot of the host's links. The numbers of one link are taken one after the other
// while it moves on, and may differ by a few messages.
func (h *Host) Stats() HostStats {
	s := HostStats{Memory: h.block.Size(), Sending: uint64(max(h.budget.Used(), 0)), Ended: h.endedLinks.len(), Full: h.counters.read()}
	s.Full.Sending = h.budget.Waits()
	for _, f := range h.block.Free() {
		s.Free += f.N
	}
	h.mu.Lock()
	for name, l := range h.ports {
		s.Ports = append(s.Ports, PortStats{Name: name, Waiting: l.pending.len()})
	}
	h.mu.Unlock()
	h.registry.read(&s)
	slices.SortFunc(s.Ports, func(a, b PortStats) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Links, func(a, b LinkStats) int { return cmp.Compare(a.Number, b.Number) })
	return s
}

// Stats returns a snapshot of the link.
func (l *Link) Stats() LinkStats {
	s := LinkStats{Number: l.number, Port: l.port, Peer: l.peer.conn.Name(), Age: time.Since(l.made), Closing: l.finishing.Load() || l.closed.Load()}
	l.mu.Lock()
	s.Err, s.Dialing = l.err, l.remoteNumber == 0 && !l.plain
	l.mu.Unlock()
	if l.Out != nil {
		s.Out = new(l.Out.stats())
	}
	if l.In != nil {
		s.In = new(l.In.stats())
	}
	return s
}

func (p *Producer) stats() ProducerStats {
	if !p.hasLayout.Load() {
		return ProducerStats{}
	}
	// A number that is taken later is never smaller than one that is taken before.
	done, returned, committed, acquired := p.done.Load(), p.returned.Load(), p.committed.Load(), p.acquired.Load()
	s := ProducerStats{
		Traffic: Traffic{committed, p.bytes.Load()}, Buffers: int(p.buffers.Load()), Size: p.layout.size,
		Acquired: less(acquired, committed), Filled: less(committed, returned), Unacknowledged: less(committed, done), Lost: p.lost.Load(),
	}
	s.Free = max(s.Buffers-s.Acquired-s.Filled, 0)
	return s
}

func (c *Consumer) stats() ConsumerStats {
	r := &c.credits
	r.mu.Lock()
	freed, bytes, told, counted := c.freed.Load(), r.bytes, r.announced.Load(), r.how == returnsCounted
	r.mu.Unlock()
	next := c.received.Load()
	full := 0
	all := c.rings.Load()
	full += all.now.full()
	if all.before != all.now {
		full += all.before.full()
	}
	s := ConsumerStats{
		Traffic: Traffic{next, bytes}, Buffers: int(all.now.buffers), Size: c.size,
		Held: min(less(next, freed), full), EndOfFile: c.endArrived.Load(),
	}
	s.Waiting = full - s.Held
	s.Free = max(s.Buffers-full, 0)
	if counted {
		s.Owed = less(freed, told)
	}
	return s
}

// less is a-b, or 0 if b has passed a.
func less(a, b uint64) int { return int(max(a, b) - b) }

// addTo adds what a link moved.
func (s *LinkStats) addTo(sent, received *Traffic) {
	if s.Out != nil {
		sent.add(s.Out.Traffic)
	}
	if s.In != nil {
		received.add(s.In.Traffic)
	}
}
