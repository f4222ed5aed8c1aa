package simnet

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// ErrFrameSize is what Send's error wraps if a frame is larger than the MTU or
// its buffer smaller than the headroom. Frames before it in the batch were sent.
var ErrFrameSize = errors.New("simnet: frame does not fit")

// Defaults of [Config].
const (
	DefaultMTU       = 1490
	DefaultHeadroom  = 2 // not 0, so that callers who forget it are noticed
	DefaultRecvQueue = 4096
	DefaultBatch     = 64
)

const (
	poison   = 0xdb // in buffers that the caller may no longer read
	scribble = 0xee // in the headroom, which the transport may use
)

// poisoned is copied, as a loop over the bytes takes longer than all else that happens to a frame, most of all under the race detector.
var poisoned = bytes.Repeat([]byte{poison}, 2048)

// Config describes an endpoint. Zero values mean the defaults.
type Config struct {
	MTU       int  // largest frame, to send and to receive
	MayNarrow bool // say that links may carry less than MTU
	Far       bool // say that peers are behind routers
	Headroom  int  // bytes in front of each frame; negative: none
	RecvQueue int  // datagrams that wait for Recv; more are kernel drops
	Batch     int  // the hint in Caps
	NoECN     bool // have marks of datagrams neither sent nor told
	Poison    bool // overwrite what Recv returned when it dies
}

// Conn is an endpoint of a [Network].
type Conn struct {
	transport.Indifferent

	net        *Network
	mayNarrow  bool
	far        bool
	addr       transport.Addr
	caps       transport.Caps
	queueLimit int
	poison     bool
	ready      chan struct{} // one slot; filled only if waiting was set
	over       *time.Timer   // of the last Recv with an end to waiting

	// Guarded by net.mu.
	closed  bool
	waiting bool // Recv is about to read ready, or does
	queue   ring[received]
	lent    [][]byte // returned by the last Recv
	last    *link    // of the last Send, which mostly is that of the next
	stats   transport.Stats
}

// received is a datagram in a receive queue.
type received struct {
	link *link
	buf  []byte
	ecn  transport.ECN
}

var _ transport.Conn = (*Conn)(nil)

// Addr returns the n-th address of a network: a locally administered MAC address, in
// which the number can be read.
func Addr(n uint32) transport.Addr {
	return transport.EtherAddr([6]byte{0x02, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func newConn(n *Network, addr transport.Addr, cfg Config) *Conn {
	return &Conn{
		net:  n,
		addr: addr,
		caps: transport.Caps{
			MTU:      orDefault(cfg.MTU, DefaultMTU),
			Headroom: max(orDefault(cfg.Headroom, DefaultHeadroom), 0),
			Batch:    orDefault(cfg.Batch, DefaultBatch),
			ECN:      !cfg.NoECN,
		},
		queueLimit: orDefault(cfg.RecvQueue, DefaultRecvQueue),
		mayNarrow:  cfg.MayNarrow,
		far:        cfg.Far,
		poison:     cfg.Poison,
		ready:      make(chan struct{}, 1),
	}
}

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// Recv implements [transport.Conn]. It returns all that waits and fits dst.
func (c *Conn) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	switch {
	case wait == 0:
		return c.tryRecv(dst)
	case wait < 0:
		return c.receive(dst, nil)
	}
	if c.over == nil {
		c.over = time.NewTimer(wait)
	} else {
		c.over.Reset(wait)
	}
	defer c.over.Stop()
	return c.receive(dst, c.over.C)
}

// receive waits until something is there, or it is over.
func (c *Conn) receive(dst []transport.Datagram, over <-chan time.Time) (int, error) {
	for {
		got, err := c.tryRecv(dst)
		if got > 0 || err != nil {
			return got, err
		}
		select {
		case <-c.ready:
		case <-over:
			return 0, nil
		}
	}
}

func (c *Conn) tryRecv(dst []transport.Datagram) (int, error) {
	n := c.net
	n.mu.Lock()
	defer n.mu.Unlock()
	c.takeBack()
	if c.closed {
		return 0, c.closedError("receive")
	}
	got := min(len(dst), c.queue.len())
	for i := range dst[:got] {
		r := c.queue.pop()
		dst[i].From, dst[i].Data, dst[i].ECN = r.link.from, r.buf, c.seen(r.ecn)
		c.lent = append(c.lent, r.buf)
	}
	c.waiting = got == 0
	return got, nil
}

// takeBack ends the life of what the last Recv returned.
func (c *Conn) takeBack() {
	for _, buf := range c.lent {
		if c.poison {
			for left := buf; len(left) > 0; {
				left = left[copy(left, poisoned):]
			}
		}
		c.net.recycle(buf)
	}
	c.lent = c.lent[:0]
}

// Send implements [transport.Conn]. Over links without delay the datagrams are
// in the receivers' queues when it returns.
func (c *Conn) Send(batch []transport.Outgoing) (int, error) {
	n := c.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return 0, c.closedError("send")
	}
	clock := time.Duration(-1) // read once per batch, if at all
	sent, err := 0, error(nil)
	for i := range batch {
		o := &batch[i]
		if err = c.check(o); err != nil {
			break
		}
		l := c.last
		if l == nil || l.to != *o.To {
			l = n.link(c.addr, *o.To)
			c.last = l
		}
		sent++
		if l.perfect {
			l.stats.Sent++
			n.deliver(l, n.clone(c.caps.MTU, o.Buf[c.caps.Headroom:], o.Rest, o.Tail), c.seen(o.ECN), l.stats.Sent)
			continue
		}
		if clock < 0 {
			clock = n.now()
		}
		if n.enter(l, n.clone(c.caps.MTU, o.Buf[c.caps.Headroom:], o.Rest, o.Tail), c.seen(o.ECN), clock) == refused {
			c.stats.SendDrops++
		}
	}
	if clock >= 0 {
		n.deliverDue(clock)
	}
	n.wakeReceivers()
	return sent, err
}

// seen returns what of a mark gets through the endpoint.
func (c *Conn) seen(m transport.ECN) transport.ECN {
	if !c.caps.ECN {
		return transport.NotECT
	}
	return m
}

// check refuses what does not fit, and spoils the headroom, as a wire that writes its
// header there would.
func (c *Conn) check(o *transport.Outgoing) error {
	head := c.caps.Headroom
	if len(o.Buf) < head {
		return fmt.Errorf("%w: buffer of %d bytes, headroom %d", ErrFrameSize, len(o.Buf), head)
	}
	if size := o.Len() - head; size > c.caps.MTU {
		return fmt.Errorf("%w: %d bytes, MTU %d", ErrFrameSize, size, c.caps.MTU)
	}
	for i := range o.Buf[:head] {
		o.Buf[i] = scribble
	}
	return nil
}

// Caps implements [transport.Conn].
func (c *Conn) Caps() transport.Caps { return c.caps }

// MTU implements [transport.Conn].
func (c *Conn) MTU(transport.Addr) int { return c.caps.MTU }

// IsNear implements [transport.Conn].
func (c *Conn) IsNear(transport.Addr) bool { return !c.far }

// MayNarrow implements [transport.Conn].
func (c *Conn) MayNarrow(transport.Addr) bool { return c.mayNarrow }

// LocalAddr implements [transport.Conn].
func (c *Conn) LocalAddr() transport.Addr { return c.addr }

// Stats implements [transport.Conn]. SendDrops are the datagrams that a
// Script refused; what links lose an endpoint cannot know, see [LinkStats].
func (c *Conn) Stats() transport.Stats {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	return c.stats
}

// Close implements [transport.Conn]. What waits in the receive queue is gone,
// what is under way goes to the next Conn attached here. It returns nil.
func (c *Conn) Close() error {
	n := c.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if !c.closed {
		n.detach(c)
		n.wakeReceivers()
	}
	return nil
}

func (c *Conn) closedError(op string) error {
	return fmt.Errorf("simnet: %s at %v: %w", op, c.addr, net.ErrClosed)
}
