package ether

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

const (
	headerSize = 14 // of Ethernet: two addresses, and the EtherType
	// lookAtMTU is how many calls send until the interface's MTU is asked for again: the kernel
	// refuses longer frames of a packet socket, and not of this one. Arbitrary: it takes two short
	// calls.
	lookAtMTU = 256
	// lookAtQdiscs is how long the queueing disciplines are taken for what they were; they are
	// looked at with the MTU. Arbitrary: it takes tens of microseconds.
	lookAtQdiscs = time.Second
	// lookAtClock is how many calls of Send pass until the clock is read, for the next try.
	// Arbitrary.
	lookAtClock = 16
	// firstPause is how long after a try in vain the next one is, and each further pause is twice as
	// long, until longestPause. Arbitrary: a try takes a fraction of a millisecond, and the kernel frees
	// the queue of a program that ended within tenths of a second.
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// xdp is the way by an AF_XDP socket.
type xdp struct {
	conn      *Conn
	buffer    int  // as of [Config]
	anyhow    bool // whatever stands on the interface
	onWay     func(iface string, why error)
	socket    *xskPlace
	listening bool            // as long as Listen is not done
	last      *transport.Addr // whose address is in header
	header    [headerSize]byte
	waiting   mmsg.Waiting
	rounds    int       // until the MTU is asked for
	looked    time.Time // when the queueing disciplines were looked at last
	question  interfaceQuestion

	// Of the next try, while there is no socket.
	pause time.Duration // before it; 0: there is none, unless the interface returns
	next  time.Time
	calls int // of Send, until the clock is read

	absent atomic.Pointer[error] // why there is no socket; nil: there is one
	said   string                // what onWay was told last
}

// xskPlace has the socket, if there is one, for the cleanup of a [Conn] that is gone. The
// goroutine that sends changes it while it holds the packet socket; the last Release of that
// closes what is in it.
type xskPlace struct{ *xsk }

func (p *xskPlace) close() {
	if p.xsk != nil {
		p.xsk.close()
		p.xsk = nil
	}
}

// newXDP makes the way, without a socket.
func newXDP(c *Conn, cfg Config) *xdp {
	w := &xdp{conn: c, buffer: cfg.Buffer, anyhow: cfg.NeedXDP, onWay: cfg.OnWay, listening: true, socket: &xskPlace{}}
	copy(w.header[6:], c.mac[:])
	binary.BigEndian.PutUint16(w.header[12:], c.etherType)
	c.socket.AtEnd(w.socket.close)
	return w
}

// open opens a socket on the interface, if there is none on it; a queue that is in use may become
// free within that time. Only within Hold.
func (w *xdp) open(within time.Duration) error {
	c := w.conn
	ifindex := c.ifindex.Load()
	if w.socket.xsk != nil && w.socket.ifindex == ifindex {
		return nil
	}
	w.socket.close()
	err := w.obstacle(ifindex)
	passing := err != nil
	if err == nil {
		var x *xsk
		if x, err = openXSK(w.newSocket, ifindex, c.mtu, w.buffer, within); err == nil {
			w.socket.xsk, w.rounds, w.pause = x, lookAtMTU, 0
			w.absent.Store(nil)
			return nil
		}
		passing = isPassing(err)
		err = advise(err)
	}
	w.without(err, passing)
	return err
}

// newSocket returns an AF_XDP socket in the namespace of the interface.
func (w *xdp) newSocket() (fd int, err error) {
	err = w.conn.socket.Control(func(packet int) error {
		fd, err = socketBeside(packet, w.listening)
		return err
	})
	return fd, err
}

// isPassing reports whether there may be a socket later, without that anything is done for it here.
func isPassing(err error) bool {
	return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.ENETDOWN)
}

// without notes why there is no socket, and when to try for one again.
func (w *xdp) without(why error, passing bool) {
	w.absent.Store(&why)
	switch {
	case !passing:
		w.pause = 0
	case w.pause == 0:
		w.pause = firstPause
	default:
		w.pause = min(2*w.pause, longestPause)
	}
	w.next = time.Now().Add(w.pause)
}

// isDue reports whether it is time to try for a socket again.
func (w *xdp) isDue() bool {
	if w.pause == 0 {
		return false
	}
	if w.calls++; w.calls < lookAtClock {
		return false
	}
	w.calls = 0
	return !time.Now().Before(w.next)
}

// say tells [Config.OnWay], if there is something new. While the interface is away nothing leaves by any way.
func (w *xdp) say() {
	if w.onWay == nil || w.conn.away.Load() {
		return
	}
	why, said := w.conn.WithoutXDP(), "by AF_XDP"
	if why != nil {
		said = why.Error()
	}
	if said != w.said {
		w.said = said
		w.onWay(w.conn.name, why)
	}
}

// obstacle says what is in the way of a socket that could be had.
func (w *xdp) obstacle(ifindex int32) error {
	if err := w.narrower(ifindex); err != nil || w.anyhow {
		return err
	}
	w.looked = time.Now()
	return w.passesBy(int(ifindex))
}

// plain are the queueing disciplines that the kernel takes by itself, and others that do nothing to
// frames but order them.
var plain = []string{"noqueue", "pfifo_fast", "pfifo", "mq", "fq_codel", "codel", "fq", "ingress"}

// passesBy says so if there is something on the interface that sees and shapes what is sent, and would
// not see it any more.
func (w *xdp) passesBy(ifindex int) error {
	if w.conn.links == nil {
		return errors.New("the system does not tell what queueing disciplines the interface has")
	}
	kinds, err := w.conn.links.Qdiscs(ifindex)
	if err != nil {
		return fmt.Errorf("queueing disciplines of interface %s: %w", w.conn.name, err)
	}
	for _, kind := range kinds {
		if !slices.Contains(plain, kind) {
			return fmt.Errorf("interface %s has the queueing discipline %s, which AF_XDP passes by; ask for that with xdp=on", w.conn.name, kind)
		}
	}
	return nil
}

// advise says what to do about the reasons why there is no socket.
func advise(err error) error {
	what := "do without it (xdp=off)"
	switch {
	case errors.Is(err, unix.EAFNOSUPPORT):
		what = "the kernel has none (CONFIG_XDP_SOCKETS): " + what
	case errors.Is(err, unix.EBUSY):
		what = "every queue of the interface has an AF_XDP socket already: end the program that has it, or " + what
	case errors.Is(err, unix.ENOBUFS):
		what = "it is more than may be locked (ulimit -l): raise that, or " + what
	}
	return fmt.Errorf("an AF_XDP socket for sending cannot be had: %w; %s", err, what)
}

// ErrXDPOff is why frames leave by system calls with [Config.NoXDP].
var ErrXDPOff = errors.New("AF_XDP is switched off (xdp=off)")

// WithoutXDP returns why frames leave by system calls on the packet socket; nil if they leave by
// AF_XDP.
func (c *Conn) WithoutXDP() error {
	if c.sending.xdp == nil {
		return ErrXDPOff
	}
	if why := c.sending.xdp.absent.Load(); why != nil {
		return *why
	}
	return nil
}

// leave closes the socket: from now on frames leave by calls, until a later try if the reason may
// pass. What is queued is given up.
func (w *xdp) leave(why error, passing bool) {
	c := w.conn
	c.sendDrops.Add(uint64(w.socket.queue.frames()))
	w.socket.close()
	c.sending.way = &c.sending.calls
	w.without(why, passing)
	w.say()
}

// lookAround says what has come into the way of the socket that there is.
func (w *xdp) lookAround() error {
	w.rounds = lookAtMTU
	if err := w.narrower(w.socket.ifindex); err != nil || w.anyhow {
		return err
	}
	now := time.Now()
	if now.Sub(w.looked) < lookAtQdiscs {
		return nil
	}
	w.looked = now
	return w.passesBy(int(w.socket.ifindex))
}

// transmit implements [way].
func (w *xdp) transmit(batch []transport.Outgoing) (int, error) {
	c := w.conn
	if !c.socket.Hold() {
		return 0, net.ErrClosed
	}
	defer c.socket.Release()
	x := w.socket.xsk
	if w.rounds--; w.rounds < 0 {
		if err := w.lookAround(); err != nil {
			w.leave(err, true)
			return c.sending.calls.transmit(batch)
		}
	}
	w.waiting.Begin()
	x.takeBack()
	for len(x.free) < x.chunksOf(batch[0].Len()) {
		if err := w.waiting.For(x); err != nil {
			return w.full(batch, 0)
		}
	}
	n := w.fill(batch)
	if n == 0 {
		return 0, nil // no Ethernet address
	}
	for dropped := 0; ; {
		err := x.call()
		switch {
		case err == 0:
			w.waiting.Went()
			return n, nil
		case err == unix.EAGAIN:
			if w.waiting.For(x) != nil {
				return w.full(batch, n) // what is queued leaves with what is sent next
			}
		case err == unix.EBUSY && dropped < cap(x.free):
			dropped++
			c.sendDrops.Add(1) // there is no carrier, or the driver has a reason of its own
		default:
			if err == unix.ENETDOWN || err == unix.ENXIO || err == unix.ENODEV {
				c.wentAway()
			}
			w.leave(os.NewSyscallError("sendto", err), false)
			return n, nil
		}
	}
}

// full gives up the frames after the first n.
func (w *xdp) full(batch []transport.Outgoing, n int) (int, error) {
	w.conn.sendDrops.Add(uint64(len(batch) - n))
	return len(batch), nil
}

// fill queues frames from the first on, as many as one call moves, and returns how many it
// took, or gave up.
func (w *xdp) fill(batch []transport.Outgoing) (n int) {
	x := w.socket.xsk
	// What is to be sent may lie in a mapped file that was cut.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for left := x.perCall; n < len(batch); n++ {
		o := &batch[n]
		if o.To != w.last {
			if o.To.Kind() != transport.KindEther {
				break
			}
			w.last = o.To
			mac := o.To.MAC()
			copy(w.header[:], mac[:])
		}
		need := x.chunksOf(o.Len())
		if need > len(x.free) || need > left {
			break
		}
		if !x.put(&w.header, o) {
			w.conn.sendDrops.Add(1)
			continue
		}
		left -= need
	}
	x.queue.show()
	return n
}

// narrower says so if the interface carries less than it did. It does not if it cannot be asked: a
// call that sends tells why.
func (w *xdp) narrower(ifindex int32) error {
	c := w.conn
	mtu := c.mtu
	c.socket.Control(func(fd int) error {
		mtu = w.question.mtu(fd, ifindex, mtu)
		return nil
	})
	if mtu < c.mtu {
		return fmt.Errorf("frames are sent with MTU %d, but interface %s has %d now", c.mtu, c.name, mtu)
	}
	return nil
}

// interfaceQuestion is struct ifreq.
type interfaceQuestion struct {
	name  [unix.IFNAMSIZ]byte
	value int32
	_     [20]byte
}

// mtu returns the MTU of an interface, or else what is given.
func (q *interfaceQuestion) mtu(fd int, ifindex int32, otherwise int) int {
	q.value = ifindex
	for _, what := range [...]uintptr{unix.SIOCGIFNAME, unix.SIOCGIFMTU} {
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), what, uintptr(unsafe.Pointer(q))); e != 0 {
			return otherwise
		}
	}
	return int(q.value)
}
