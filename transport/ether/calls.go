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

// calls is the way by sendmmsg on the packet socket. It is there on every interface.
type calls struct {
	conn *Conn
	out  *mmsg.Batch
	last *transport.Addr // whose address is in raw
	raw  mmsg.Name
	from int32 // number of the interface in raw
}

func (w *calls) init(c *Conn) { w.conn, w.out = c, mmsg.NewBatch(messages, 3*messages, 0) }

// transmit implements [way].
func (w *calls) transmit(batch []transport.Outgoing) (int, error) {
	if from := w.conn.ifindex.Load(); w.from != from {
		w.from, w.last = from, nil
	}
	w.out.Reset()
	for i := range batch {
		if w.out.Len() == messages {
			break
		}
		o := &batch[i]
		if o.To != w.last {
			if o.To.Kind() != transport.KindEther {
				break
			}
			w.last = o.To
			w.writeAddress(o.To.MAC())
		}
		*w.out.Begin(unix.SizeofSockaddrLinklayer) = w.raw
		w.out.Add(o.Buf)
		if len(o.Rest) > 0 {
			w.out.Add(o.Rest)
		}
		if len(o.Tail) > 0 {
			w.out.Add(o.Tail)
		}
	}
	return w.flush()
}

func (w *calls) writeAddress(mac [6]byte) {
	binary.NativeEndian.PutUint16(w.raw[offFamily:], unix.AF_PACKET)
	binary.BigEndian.PutUint16(w.raw[offProtocol:], w.conn.etherType)
	binary.NativeEndian.PutUint32(w.raw[offIndex:], uint32(w.from))
	w.raw[offLength] = byte(len(mac))
	copy(w.raw[offAddress:], mac[:])
}

// flush sends the gathered frames and returns how many were sent or given up.
func (w *calls) flush() (int, error) {
	c := w.conn
	for i := 0; i < w.out.Len(); {
		n, err := w.out.Send(c.socket, i)
		if i += n; n > 0 {
			continue
		}
		switch err {
		case unix.EAGAIN:
			// Nothing leaves the socket's buffer: the rest has no room in it either.
			c.sendDrops.Add(uint64(w.out.Len() - i))
			return w.out.Len(), nil
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
	return w.out.Len(), nil
}
