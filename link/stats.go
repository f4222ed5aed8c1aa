package link

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Traffic is what went through links one way. An end of file counts as a message.
type Traffic struct{ Messages, Bytes uint64 }

func (t *Traffic) add(o Traffic) {
	t.Messages += o.Messages
	t.Bytes += o.Bytes
}

// HostStats is a snapshot of a host.
type HostStats struct {
	Memory, Free   uint64      // bytes for links to receive into, and those of them that no link has
	Sending        uint64      // bytes that messages take which were handed out or sent, and not acknowledged
	Ports          []PortStats // listened on, by name
	Links          []LinkStats // that are not over, by number
	Ended          int         // links that are over here, and that their peers did not say the same of
	Made           uint64      // links so far
	Sent, Received Traffic     // of all links, those that are over included
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
	Closing bool           // the application is through with it
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
	Owed          int // released, of which the producer was not told yet
	EndOfFile     bool
}

// Stats returns a snapshot of the host's links. Numbers of one link are taken one
// after the other while it moves on, and may differ by a few messages.
func (h *Host) Stats() HostStats {
	s := HostStats{Memory: h.block.Size(), Sending: uint64(max(h.budget.used.Load(), 0)), Ended: h.endings.len(), Full: h.full.read()}
	s.Full.Sending = h.budget.reached.Load()
	for _, f := range h.block.Free() {
		s.Free += f.N
	}
	h.mu.Lock()
	for name, l := range h.ports {
		s.Ports = append(s.Ports, PortStats{Name: name, Waiting: l.offers.len()})
	}
	h.mu.Unlock()
	h.roll.read(&s)
	slices.SortFunc(s.Ports, func(a, b PortStats) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Links, func(a, b LinkStats) int { return cmp.Compare(a.Number, b.Number) })
	return s
}

// Stats returns a snapshot of the link.
func (l *Link) Stats() LinkStats {
	s := LinkStats{Number: l.number, Port: l.port, Peer: l.peer.conn.Name(), Age: time.Since(l.made), Closing: l.leaving.Load() || l.ending.Load()}
	l.mu.Lock()
	s.Err, s.Dialing = l.err, l.theirs == 0 && !l.plain
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
	if !p.begun.Load() {
		return ProducerStats{}
	}
	// What is taken later is never behind what is taken before.
	done, returned, committed, acquired := p.done.Load(), p.returned.Load(), p.committed.Load(), p.acquired.Load()
	s := ProducerStats{
		Traffic: Traffic{committed, p.bytes.Load()}, Buffers: int(p.wire.buffers), Size: p.wire.size,
		Acquired: less(acquired, committed), Filled: less(committed, returned), Unacknowledged: less(committed, done), Lost: p.lost.Load(),
	}
	s.Free = max(s.Buffers-s.Acquired-s.Filled, 0)
	return s
}

func (c *Consumer) stats() ConsumerStats {
	r := &c.credits
	r.mu.Lock()
	freed, bytes, told, counted := c.freed.Load(), r.bytes, r.told.Load(), r.how == returnsCounted
	r.mu.Unlock()
	next := c.next.Load()
	full := 0
	for i := range c.flags {
		if c.flags[i].Load() != 0 {
			full++
		}
	}
	s := ConsumerStats{
		Traffic: Traffic{next, bytes}, Buffers: int(c.wire.buffers), Size: c.wire.size,
		Held: min(less(next, freed), full), EndOfFile: c.eof.Load(),
	}
	s.Waiting = full - s.Held
	s.Free = s.Buffers - full
	if counted {
		s.Owed = less(freed, told)
	}
	return s
}

// less is a-b, or 0 if b went past a meanwhile.
func less(a, b uint64) int { return int(max(a, b) - b) }

// roll is all links of a host that are not over, and what went through the others.
type roll struct {
	mu             sync.Mutex
	links          map[*Link]struct{}
	made           uint64
	sent, received Traffic
}

func (r *roll) enter(l *Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links == nil {
		r.links = make(map[*Link]struct{})
	}
	r.links[l] = struct{}{}
	r.made++
}

// strike notes that a link is over. Who calls may hold the lock of a producer.
func (r *roll) strike(l *Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, l)
	s := l.Stats()
	s.addTo(&r.sent, &r.received)
}

// addTo adds what went through a link.
func (s *LinkStats) addTo(sent, received *Traffic) {
	if s.Out != nil {
		sent.add(s.Out.Traffic)
	}
	if s.In != nil {
		received.add(s.In.Traffic)
	}
}

// read adds all links to a snapshot. None ends meanwhile, so that none is counted
// twice or not at all.
func (r *roll) read(s *HostStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Made, s.Sent, s.Received = r.made, r.sent, r.received
	s.Links = make([]LinkStats, 0, len(r.links))
	for l := range r.links {
		x := l.Stats()
		x.addTo(&s.Sent, &s.Received)
		s.Links = append(s.Links, x)
	}
}
