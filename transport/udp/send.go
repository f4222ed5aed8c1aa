package udp

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

const (
	// maxSegments is the kernel's UDP_MAX_SEGMENTS before Linux 6.9, and enough.
	maxSegments = 64
	// maxPayload of a datagram over IPv4; a message to be cut up has no more.
	maxPayload = transport.MostMTU - 20 - udpHeader
	messages   = 128
)

// sending is what Send keeps. It belongs to who calls it.
type sending struct {
	out   *mmsg.Batch
	by    *mmsg.Socket  // where what is in out leaves
	ecn   transport.ECN // with which all leaves by the first socket that has no other mark
	zones zones
	last  *transport.Addr // whose address is in raw
	raw   mmsg.Name
	from  []byte        // what tells the kernel from which address of ours; empty: it chooses
	room  home          // of from
	first [messages]int // of the frames of each message
	// refused is how many frames, from the next one on, were refused as a run: they leave one by one.
	refused int
	crowd
}

func (s *sending) init(c *Conn) {
	control := unix.CmsgSpace(2) + unix.CmsgSpace(ecnControl)
	if c.every {
		control += unix.CmsgSpace(len(s.room))
	}
	s.out = mmsg.NewBatch(messages, 4*messages, control)
}

// Send implements [transport.Conn].
func (c *Conn) Send(batch []transport.Outgoing) (int, error) {
	s := &c.sending
	s.refused = 0
	for done := 0; done < len(batch); {
		part, gso := batch, c.gso.Load()
		if s.refused > 0 {
			part, gso = batch[:done+s.refused], false
		}
		n, err := c.transmit(done, c.gather(part, done, gso))
		if done += n; err != nil {
			return done, err
		}
	}
	return len(batch), nil
}

// gather makes messages of frames from start on, as far as there is room, and
// returns where it stopped.
func (c *Conn) gather(batch []transport.Outgoing, start int, gso bool) int {
	s := &c.sending
	s.out.Reset()
	focused := c.focused.Load()
	if focused == nil {
		c.lookAtCrowd()
	}
	for i := start; i < len(batch); {
		o := &batch[i]
		if o.To != s.last {
			if !c.LocalAddr().Sends(*o.To) {
				// An address of the other family, or no IP address, or no port: to send it
				// is impossible, as if there were no route.
				if s.out.Len() > 0 {
					return i
				}
				c.sendDrops.Add(1)
				i++
				continue
			}
			s.zones.write(&s.raw, *o.To, c.v6)
			if s.last = o.To; c.every {
				s.from = s.zones.appendHome(s.room[:0], o.To.Local(), c.v6)
			}
		}
		if focused == nil && s.crowded && !c.leaves(o.To) {
			if s.out.Len() > 0 {
				return i
			}
			c.sendDrops.Add(1)
			i++
			continue
		}
		by, length, from := c.socket, lenInet4, s.from
		switch {
		case focused != nil && focused.peer == *o.To:
			by, length, from = focused.socket, 0, nil
		case c.v6:
			length = lenInet6
		}
		if !s.out.Fits(3) || s.out.Len() > 0 && by != s.by {
			return i
		}
		s.by = by
		all, named := &s.ecn, transport.NotECT // by a control message
		if length == 0 && focused.second {
			all = &focused.ecn
		}
		if length > 0 {
			named = o.ECN
		}
		if want := o.ECN &^ named; *all != want {
			if s.out.Len() > 0 {
				return i
			}
			*all = want
			setMark(by, want, o.To.AddrPort().Addr().Is6())
		}
		name := s.out.Begin(length)
		if name == nil {
			return i
		}
		*name = s.raw
		s.first[s.out.Len()-1] = i
		size := o.Len()
		total, segments := 0, 0
		for ; i < len(batch); i++ {
			p := &batch[i]
			length := p.Len()
			if segments > 0 && (!gso || segments == maxSegments || length > size || total+length > maxPayload || p.To != o.To || p.ECN != o.ECN) {
				break
			}
			p.Buf[0], p.Buf[1] = 0, 0
			if !s.out.Fits(3) {
				break
			}
			s.out.Add(p.Buf)
			if len(p.Rest) > 0 {
				s.out.Add(p.Rest)
			}
			if len(p.Tail) > 0 {
				s.out.Add(p.Tail)
			}
			segments++
			if total += length; length < size {
				i++ // only the last one may be shorter
				break
			}
		}
		if segments > 1 {
			s.out.AddUint16(unix.SOL_UDP, unix.UDP_SEGMENT, uint16(size))
		}
		if len(from) > 0 {
			c.leaveFrom(from)
		}
		if named != transport.NotECT {
			s.markWith(named, o.To.AddrPort().Addr().Is6())
		}
		if focused != nil {
			continue // there is no crowd
		}
		if s.given += total + messageOverhead; s.given > c.buffers.Send/lookEvery {
			return i
		}
	}
	return len(batch)
}

// transmit sends the gathered messages, of the frames from start to end, and
// returns how many frames were sent or given up.
func (c *Conn) transmit(start, end int) (int, error) {
	s := &c.sending
	again, refused := false, s.refused > 0
	s.refused = 0
	for i := 0; i < s.out.Len(); {
		n, err := s.out.Send(s.by, i)
		if n > 0 {
			if refused && i == 0 {
				// The first frame of the run leaves alone, as long as any: it is runs that the
				// device refuses, which has no checksum offload. One by one from now on.
				c.gso.Store(false)
			}
			i += n
			again = false
			continue
		}
		frames := s.framesOf(i, end)
		switch err {
		case unix.EIO, unix.EINVAL, unix.EMSGSIZE:
			if frames > 1 && again {
				// The reason may also lie with this peer: a route that became a black hole, a
				// device that became too narrow, an address of ours that is gone.
				s.refused = frames
				return s.first[i] - start, nil
			}
		case unix.EAGAIN:
			// Nothing leaves the socket's buffer: the rest has no room in it either.
			c.sendDrops.Add(uint64(end - s.first[i]))
			return end - start, nil
		case unix.EBADF, unix.ENOTSOCK, unix.ENOSYS, unix.EOPNOTSUPP:
			return s.first[i] - start, fmt.Errorf("dgrdma: send over UDP from %v: %w", c.local, os.NewSyscallError("sendmmsg", err))
		default:
			if _, passing := err.(unix.Errno); !passing {
				if s.by != c.socket && !c.socket.Closed() {
					err = nil // Focus ended meanwhile: from the first socket, then
				}
				return s.first[i] - start, err
			}
		}
		// A connected socket tells of an earlier datagram like this, or of one that
		// a stranger invented (a report of a narrower path is EMSGSIZE), and has not tried this one. EFAULT: what is to be sent is
		// in a mapped file that was cut.
		if again = !again; again {
			continue
		}
		c.sendDrops.Add(uint64(frames))
		i++
		if s.zones.doubt() {
			s.last = nil // whose address is written anew
		}
	}
	return end - start, nil
}

// framesOf returns how many frames message i has.
func (s *sending) framesOf(i, end int) int {
	if i+1 < s.out.Len() {
		return s.first[i+1] - s.first[i]
	}
	return end - s.first[i]
}
