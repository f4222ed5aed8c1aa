package ether

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

const (
	// messages is how many frames one system call moves.
	messages = 64
	// fewMessages are enough where most frames come otherwise. Arbitrary: room for 64 of
	// 64 KiB would take half as much memory as the ring.
	fewMessages = 8
)

// receiving is what Recv keeps. It belongs to who calls it.
type receiving struct {
	in      *mmsg.Receiver
	n, next int // frames of in, and which of them was not returned yet

	from transport.Addr
	raw  mmsg.Name // from, as the kernel has it
}

// makeRoom makes room for what the interface may bring: peers may use more of it
// than we do.
func (r *receiving) makeRoom(n, carries int) {
	r.in = mmsg.NewReceiver(n, carries, 0)
}

// fetch makes a call if all that the last one brought was returned.
func (r *receiving) fetch(s *mmsg.Socket, wait time.Duration) (err error) {
	if r.next == r.n {
		r.in.Done(r.n)
		r.next = 0
		r.n, err = r.in.Receive(s, wait)
	}
	return err
}

// Recv implements [transport.Conn].
func (c *Conn) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	for {
		patience := wait
		if c.away.Load() {
			if err := c.comeBack(); err != nil {
				return 0, err
			}
			if wait < 0 || wait > lookAgain {
				patience = lookAgain
			}
		}
		var n int
		var err error
		if c.ring != nil {
			n, err = c.receiveRing(dst, patience)
		} else {
			n, err = c.receiveCalls(dst, patience)
		}
		switch {
		case err == unix.ENETDOWN:
			c.away.Store(true)
		case err != nil || n > 0 || wait == patience && wait >= 0:
			return n, err
		case wait > 0:
			wait -= patience
		}
	}
}

// receiveCalls returns 0 also if what came were no frames: who waits has other
// things to look at.
func (c *Conn) receiveCalls(dst []transport.Datagram, wait time.Duration) (int, error) {
	r := &c.receiving
	if err := r.fetch(c.socket, wait); err != nil {
		return 0, err
	}
	n := 0
	for ; n < len(dst) && r.next < r.n; r.next++ {
		if c.accept(&dst[n], r.in.Data(r.next), r.in.Name(r.next), !r.in.Truncated(r.next)) {
			n++
		}
	}
	return n, nil
}

// accept puts a received frame into d, if it is one.
func (c *Conn) accept(d *transport.Datagram, data []byte, name *mmsg.Name, whole bool) bool {
	r := &c.receiving
	if !whole {
		c.truncated.Add(1)
		return false
	}
	if *name != r.raw || r.from.IsZero() {
		mac, ok := source(name)
		from := transport.EtherAddr(mac)
		// No interface sends from a group, and an answer would go there. The loopback interface has the address of
		// zeros itself.
		if !ok || !from.Single() && mac != c.mac {
			c.foreign.Add(1)
			return false
		}
		r.raw, r.from = *name, from
	}
	if len(data) == 0 {
		c.foreign.Add(1)
		return false
	}
	d.From, d.Data = r.from, data
	return true
}

// source returns whom a frame came from, if it was sent to us.
func source(name *mmsg.Name) (mac [6]byte, ok bool) {
	ok = name[offPacketType] == unix.PACKET_HOST && name[offLength] == byte(len(mac))
	copy(mac[:], name[offAddress:])
	return mac, ok
}
