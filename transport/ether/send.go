package ether

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

// Where struct sockaddr_ll has its fields.
const (
	offFamily     = 0 // in the machine's byte order
	offProtocol   = 2 // big-endian
	offIndex      = 4 // in the machine's byte order
	offPacketType = 10
	offLength     = 11
	offAddress    = 12
)

// sending is what Send keeps. It belongs to who calls it.
type sending struct {
	out  *mmsg.Batch
	last *transport.Addr // whose address is in raw
	raw  mmsg.Name
	from int32 // number of the interface in raw
}

func (s *sending) init() { s.out = mmsg.NewBatch(messages, 3*messages, 0) }

// Send implements [transport.Conn].
func (c *Conn) Send(batch []transport.Outgoing) (int, error) {
	s := &c.sending
	if c.away.Load() {
		if err := c.comeBack(); err != nil {
			return 0, err
		}
	}
	if from := c.ifindex.Load(); s.from != from {
		s.from, s.last = from, nil
	}
	for done := 0; done < len(batch); {
		s.out.Reset()
		n := done
		for ; n < len(batch) && s.out.Len() < messages; n++ {
			o := &batch[n]
			if o.To != s.last {
				if o.To.Kind() != transport.KindEther {
					break
				}
				s.last = o.To
				c.writeAddress(&s.raw, o.To.MAC())
			}
			*s.out.Begin(unix.SizeofSockaddrLinklayer) = s.raw
			s.out.Add(o.Buf)
			if len(o.Rest) > 0 {
				s.out.Add(o.Rest)
			}
			if len(o.Tail) > 0 {
				s.out.Add(o.Tail)
			}
		}
		if n == done {
			c.sendDrops.Add(1) // no Ethernet address: nobody is there
			done++
			continue
		}
		sent, err := c.transmit()
		if done += sent; err != nil {
			return done, err
		}
	}
	return len(batch), nil
}

func (c *Conn) writeAddress(name *mmsg.Name, mac [6]byte) {
	binary.NativeEndian.PutUint16(name[offFamily:], unix.AF_PACKET)
	binary.BigEndian.PutUint16(name[offProtocol:], c.etherType)
	binary.NativeEndian.PutUint32(name[offIndex:], uint32(c.sending.from))
	name[offLength] = byte(len(mac))
	copy(name[offAddress:], mac[:])
}

// transmit sends the gathered frames and returns how many were sent or given up.
func (c *Conn) transmit() (int, error) {
	s := &c.sending
	for i := 0; i < s.out.Len(); {
		n, err := s.out.Send(c.socket, i)
		if i += n; n > 0 {
			continue
		}
		switch err {
		case unix.EAGAIN:
			// Nothing leaves the socket's buffer: the rest has no room in it either.
			c.sendDrops.Add(uint64(s.out.Len() - i))
			return s.out.Len(), nil
		case unix.ENETDOWN, unix.ENXIO, unix.ENODEV:
			c.wentAway()
		case unix.EBADF, unix.ENOTSOCK, unix.ENOSYS, unix.EOPNOTSUPP:
			return i, fmt.Errorf("dgrdma: send over Ethernet from %v: %w", c.LocalAddr(), os.NewSyscallError("sendmmsg", err))
		}
		// ENOBUFS: the queue is full. EMSGSIZE: the interface's MTU has become
		// smaller. EFAULT: what is to be sent is in a mapped file that was cut.
		if _, passing := err.(unix.Errno); !passing {
			return i, err
		}
		c.sendDrops.Add(1)
		i++
	}
	return s.out.Len(), nil
}
