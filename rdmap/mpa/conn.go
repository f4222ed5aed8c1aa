package mpa

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/patience"
	"github.com/dgrdma/dgrdma/internal/tcpinfo"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Conn carries the segments of one stream over a connection. One goroutine at a time calls Receive
// and Discard, and one Send and Flush; all else may be called by any.
type Conn struct {
	nc     net.Conn
	raw    syscall.RawConn // nil: calls may block, and all goes through buffers
	tcp    bool
	agreed Agreed

	receiver
	sender
	tally   tally // of a connection that is not TCP
	closing sync.Once
	closed  chan struct{}
}

// tally counts the bytes of a connection of which no TCP does.
type tally struct{ came, given, taken atomic.Uint64 }

// newConn is a connection on which both sides have agreed.
func newConn(nc net.Conn, agreed Agreed) (*Conn, error) {
	c := &Conn{nc: nc, agreed: agreed, closed: make(chan struct{})}
	c.parser.crc, c.framer.crc = agreed.CRC, agreed.CRC
	c.patience = patience.New(runtime.NumCPU())
	var err error
	if c.raw, err = rawConn(nc); err != nil {
		return nil, err
	}
	if t, ok := nc.(*net.TCPConn); ok {
		c.tcp = true
		t.SetNoDelay(true) // MPA-018
	}
	c.framer.copies = agreed.CRC || c.raw == nil
	if !agreed.Long {
		c.framer.segment = defaultSegment
	}
	c.readOnce, c.writeOnce, c.writeAll = c.readRaw, c.writeRaw, c.flushRaw
	if c.raw != nil {
		err = c.raw.Control(c.measure)
	}
	return c, err
}

// rawConn is the descriptor of a connection. Only of package net's own types it is all there is: a type
// around them may have the method too, and see nothing of what passes by it. nil for others.
func rawConn(nc net.Conn) (syscall.RawConn, error) {
	switch nc := nc.(type) {
	case *net.TCPConn:
		return nc.SyscallConn()
	case *net.UnixConn:
		return nc.SyscallConn()
	}
	return nil, nil
}

// Agreed is what both sides have agreed on.
func (c *Conn) Agreed() Agreed { return c.agreed }

// Blocks says that Send may wait until the peer takes what is sent, and that no payload goes
// past the carrier's buffers: the connection is neither package net's TCP nor a Unix socket.
func (c *Conn) Blocks() bool { return c.raw == nil }

// LocalAddr returns the address of this side.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr returns the address of the other side.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// CloseWrite tells the peer that nothing more comes, after all that is sent.
// [errors.ErrUnsupported]: the connection has no such half-way; close it.
func (c *Conn) CloseWrite() error {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return fmt.Errorf("ending one direction of a %T: %w", c.nc, errors.ErrUnsupported)
}

// Unacknowledged is how much of what was sent the peer has not taken, as [Traffic] has it. Of a connection
// that has ended nobody knows any more.
func (c *Conn) Unacknowledged() (n int, err error) {
	t, lost := c.traffic()
	if lost && t.Untaken > 0 {
		err = unix.ENOTCONN
	}
	select { // after the others: while it was open they were right
	case <-c.closed:
		err = net.ErrClosed
	default:
	}
	return t.Untaken, err
}

// Traffic is what the two TCPs have told each other of a connection. Of one that is not TCP nobody knows what the peer has: it is what the
// connection has given, and what it has taken and has not.
type Traffic struct {
	Came    uint64 // bytes of the peer
	Taken   uint64 // bytes of this side that the peer's TCP has acknowledged
	Untaken int    // bytes of this side that it has not, as it did not get them, or has no room
}

// Traffic returns it as it is now.
func (c *Conn) Traffic() Traffic {
	t, _ := c.traffic()
	return t
}

// traffic says also whether TCP has lost the connection: the peer has reset it, or TCP has given it up.
func (c *Conn) traffic() (t Traffic, lost bool) {
	if !c.tcp {
		// In this order: what is given is counted before it is taken.
		t.Came, t.Taken = c.tally.came.Load(), c.tally.taken.Load()
		t.Untaken = int(c.tally.given.Load() - t.Taken)
		return t, false
	}
	i := tcpinfo.Of(c.raw)
	return Traffic{i.Received, i.Acked, i.Unacked}, i.Lost
}

// Closed is closed when this side closes the connection, or aborts it.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// KeepAlive has TCP find out within that time that the peer's machine is gone, while there is nothing to do for it. TCP
// counts whole seconds: the time is rounded up to them, and is two at least, for one probe.
func (c *Conn) KeepAlive(within time.Duration) {
	t, ok := c.nc.(*net.TCPConn)
	if !ok {
		return
	}
	idle, interval, count := probes(within)
	// Without it, it takes longer: that is no reason to do without the connection.
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: idle, Interval: interval, Count: count})
}

// mostProbes is how many questions whether a machine is there are left without an answer. Arbitrary.
const mostProbes = 4

// probes divides a time into that before the first probe, and those after each.
func probes(within time.Duration) (idle, interval time.Duration, count int) {
	all := max(within+time.Second-1, 2*time.Second).Truncate(time.Second)
	interval = max(all/(2*mostProbes), time.Second).Truncate(time.Second)
	count = min(mostProbes, int(all/interval)-1)
	return all - time.Duration(count)*interval, interval, count
}

// Close ends the connection, and calls that wait. TCP still delivers what is sent, unless something
// has arrived that nobody read: see Discard.
func (c *Conn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		close(c.closed)
		err = c.nc.Close()
	})
	return err
}

// Abort ends the connection at once, so that the peer cannot take its end for a good one.
func (c *Conn) Abort() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		close(c.closed)
		if t, ok := c.nc.(*net.TCPConn); ok {
			t.SetLinger(0)
		}
		err = c.nc.Close()
	})
	return err
}

// Segments towards a peer that is not of our own kind (MPA-006). The cap is what RFC 5044 allows, and
// the default is for connections that are not TCP.
const (
	minSegment     = 128
	maxForeign     = 64768
	defaultSegment = 1442
)

// foreignSegment returns the longest segment that fits with its frame in one TCP segment of mss octets.
func foreignSegment(mss int) int {
	return min(max(mss&^3-LengthSize-CRCSize, minSegment), maxForeign)
}

// measure sets the length of segments to what the path takes now.
func (c *Conn) measure(fd uintptr) {
	if !c.tcp || c.agreed.Long {
		return
	}
	if mss, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG); err == nil {
		c.framer.segment = foreignSegment(mss)
	}
}

// lost says how a connection ended.
func lost(doing string, err error) error {
	return fmt.Errorf("%s: %w (%w)", doing, err, ddp.Lost)
}
