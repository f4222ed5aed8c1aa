package udp

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

// receiving is what Recv keeps. It belongs to who calls it.
type receiving struct {
	in       *mmsg.Receiver
	zones    zones
	capacity int

	// What the last system call brought and was not returned yet.
	n, next int    // datagrams of in
	rest    []byte // of the one before next
	segment int
	by      *focus // whose socket brought it; nil: the first one
	from    transport.Addr
	raw     mmsg.Name // from, as the kernel has it
	told    told      // of the one before next
	asked   home      // Local of from, as the kernel has it
}

func (r *receiving) init(c *Conn) {
	control := unix.CmsgSpace(ecnControl)
	if c.every {
		control += unix.CmsgSpace(unix.SizeofInet4Pktinfo) + unix.CmsgSpace(unix.SizeofInet6Pktinfo)
	}
	if c.gro {
		mtu := c.mtu
		if c.every && !c.fixed {
			mtu = usualMTU
		}
		// Few, so that they stay in the cache: each may bring 45 full frames.
		r.in = mmsg.NewReceiver(8, transport.MostMTU, control+unix.CmsgSpace(4))
		r.capacity = 8 * max(1, min(64, transport.MostMTU/mtu))
		return
	}
	r.in = mmsg.NewReceiver(64, max(c.mtu, 2048), control)
	r.capacity = 64
}

// Recv implements [transport.Conn].
func (c *Conn) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	r := &c.receiving
	n := c.unpack(dst)
	for n == 0 {
		r.in.Done(r.n)
		r.n, r.next = 0, 0
		got, err := c.take(wait)
		if err == unix.ENETDOWN {
			continue // it may come up again
		}
		if err != nil || got == 0 {
			return 0, err
		}
		r.n = got
		if n = c.unpack(dst); wait >= 0 {
			break // if it was no frame: who waits has other things to look at, too
		}
	}
	return n, nil
}

// take receives from the socket that Focus says.
func (c *Conn) take(wait time.Duration) (int, error) {
	r := &c.receiving
	if c.focused.Load() != r.by {
		if n, err := c.turn(); n > 0 || err != nil {
			return n, err
		}
	}
	return r.in.Receive(c.hearsFrom(r.by), wait)
}

// unpack fills dst with what was received, and returns how much that is.
func (c *Conn) unpack(dst []transport.Datagram) (n int) {
	r := &c.receiving
	for n < len(dst) {
		if len(r.rest) == 0 {
			if r.next == r.n {
				return n
			}
			i := r.next
			r.next++
			if r.in.Truncated(i) {
				c.truncated.Add(1)
				continue
			}
			r.told.read(r.in.Control(i))
			second := r.by != nil && r.by.second
			name := r.in.Name(i)
			if !second && (c.every && !r.told.ours || portless(name)) {
				c.foreign.Add(1)
				continue
			}
			r.rest = r.in.Data(i)
			r.segment = len(r.rest)
			if r.told.segment > 0 {
				r.segment = r.told.segment
			}
			if second {
				r.from = r.by.peer // nobody else's comes there
			} else if *name != r.raw || r.told.asked != r.asked || r.from.IsZero() {
				r.raw, r.asked = *name, r.told.asked
				if r.from = r.zones.read(name, c.v6); !r.from.Single() {
					r.from, r.rest = transport.Addr{}, nil
					c.foreign.Add(1)
					continue
				}
				if c.every {
					r.from = r.from.WithLocal(r.zones.address(&r.asked))
				}
			}
			if len(r.rest) == 0 {
				c.foreign.Add(1)
			}
			continue
		}
		b := r.rest[:min(r.segment, len(r.rest))]
		r.rest = r.rest[len(b):]
		if len(b) < prefix {
			c.foreign.Add(1)
			continue
		}
		d := &dst[n]
		d.From, d.Data, d.ECN = r.from, b[prefix:len(b):len(b)], r.told.ecn // in place: a literal would be built elsewhere, and moved
		n++
	}
	return n
}
