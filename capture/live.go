package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

const (
	// liveRoom holds the longest packet that the kernel joins of UDP.
	liveRoom = 128 << 10
	// liveBuffer is room for some milliseconds of a fast link.
	liveBuffer = 32 << 20
)

// Any is the name for all interfaces.
const Any = "any"

// Live is a capture on an interface, or all.
type Live struct {
	ctx    context.Context
	conn   *packet.Conn
	raw    syscall.RawConn
	name   string
	passed passed
	quiet  func() error
	buf    []byte
	info   []byte
	tag    [tagSize]byte
	stop   func() bool

	// What take leaves for Next.
	take     func(fd uintptr) bool
	n, infoN int
	from     unix.Sockaddr
	failed   error
	ended    error // what quiet said
	dropped  int
}

// OpenLive captures what a filter takes on an interface, until the context is done. It needs
// CAP_NET_RAW. Before it waits it calls quiet, if that is not nil; an error of quiet ends the
// capture.
//
// On one interface it sees all that passes there, whoever it is for, and ends when that goes
// down. On [Any] it sees what the host sends and receives, once for each interface that it
// passes, also on those that come later.
func OpenLive(ctx context.Context, name string, filter Filter, quiet func() error) (*Live, error) {
	ifi, err := interfaceNamed(name)
	if err != nil {
		return nil, err
	}
	program, err := filter.compile()
	if err != nil {
		return nil, err
	}
	conn, err := packet.Listen(ifi, packet.Raw, unix.ETH_P_ALL, &packet.Config{Filter: program})
	if err != nil {
		return nil, whyNotLive(name, err)
	}
	s := &Live{ctx: ctx, conn: conn, name: name, quiet: quiet, buf: make([]byte, tagSize+liveRoom), info: make([]byte, 128)}
	s.take = s.receive
	if s.raw, err = conn.SyscallConn(); err == nil {
		err = s.prepare()
	}
	if err == nil {
		s.passed.ask = kernelNames(s.raw)
		err = s.begin(ifi)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("capture on %s: %w", name, err)
	}
	s.stop = context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	return s, nil
}

// prepare asks for everything that passes, for its times and tags, and for room.
func (s *Live) prepare() error {
	if s.name != Any {
		if err := s.conn.SetPromiscuous(true); err != nil {
			return err
		}
	}
	var err error
	if wrong := s.raw.Control(func(fd uintptr) {
		err = errors.Join(
			os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1)),
			os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_PACKET, unix.PACKET_AUXDATA, 1)),
		)
		// As much as is allowed will do.
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, liveBuffer) != nil {
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, liveBuffer)
		}
	}); wrong != nil {
		return wrong
	}
	return err
}

// Next implements [Source]. It ends when the context does.
func (s *Live) Next() (Record, error) {
	for {
		if err := s.raw.Read(s.take); err != nil {
			return Record{}, s.why(err)
		}
		if s.failed != nil {
			return Record{}, s.why(s.failed)
		}
		if from, ok := s.from.(*unix.SockaddrLinklayer); ok {
			return s.record(from), nil
		}
	}
}

// record is the packet that was received.
func (s *Live) record(from *unix.SockaddrLinklayer) Record {
	at, tag := s.told()
	if at.IsZero() {
		at = time.Now().UTC()
	}
	link := linkTypeOf(from.Hatype)
	data, length := s.buf[tagSize:tagSize+min(s.n, liveRoom)], s.n
	if tag != nil && link == linkEthernet && len(data) >= addresses {
		copy(s.buf, data[:addresses])
		copy(s.buf[addresses:], tag)
		data, length = s.buf[:tagSize+len(data)], length+tagSize
	}
	number, name := s.passed.at(from.Ifindex, link, at)
	return Record{Time: at, Interface: number, Name: name, LinkType: link, Data: data, Length: length}
}

// Interfaces returns those of the packets so far, and those that were there at the beginning.
// It is valid until the next call of Next.
func (s *Live) Interfaces() []Interface { return s.passed.list }

// receive takes a packet from the socket, or tells the runtime to wait for one.
func (s *Live) receive(fd uintptr) bool {
	for {
		s.n, s.infoN, _, s.from, s.failed = unix.Recvmsg(int(fd), s.buf[tagSize:], s.info, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		switch s.failed {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			if s.failed = nil; s.quiet != nil {
				s.ended = s.quiet()
				s.failed = s.ended
			}
			return s.failed != nil
		}
		return true
	}
}

// A tag of a VLAN, which the kernel takes out of a frame and tells beside it, is put back
// behind the two addresses.
const (
	addresses = 12
	tagSize   = 4
)

// told returns when the kernel saw the packet, and the tag that it took out of it, or nil.
func (s *Live) told() (at time.Time, tag []byte) {
	for info := s.info[:s.infoN]; len(info) > 0; {
		h, data, rest, err := unix.ParseOneSocketControlMessage(info)
		if err != nil {
			break
		}
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS_NEW && len(data) >= 16:
			at = time.Unix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:]))).UTC()
		case h.Level == unix.SOL_PACKET && h.Type == unix.PACKET_AUXDATA && len(data) >= 20:
			tag = s.tagIn(data)
		}
		info = rest
	}
	return at, tag
}

// tagIn reads a tpacket_auxdata.
func (s *Live) tagIn(aux []byte) []byte {
	o := binary.NativeEndian
	status, control, kind := o.Uint32(aux), o.Uint16(aux[16:]), o.Uint16(aux[18:])
	if status&unix.TP_STATUS_VLAN_VALID == 0 {
		return nil
	}
	if status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		kind = etherVLAN
	}
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(s.tag[:0], kind), control)
}

func (s *Live) why(err error) error {
	switch {
	case s.ctx.Err() != nil:
		return io.EOF
	case s.ended != nil:
		return s.ended
	case errors.Is(err, unix.ENETDOWN):
		return fmt.Errorf("interface %s went down", s.name)
	}
	return fmt.Errorf("capture on %s: %w", s.name, err)
}

// Dropped returns how many packets the kernel had no room for since the capture began.
func (s *Live) Dropped() int {
	if stats, err := s.conn.Stats(); err == nil { // since they were asked for before
		s.dropped += int(stats.Drops)
	}
	return s.dropped
}

// Close ends the capture.
func (s *Live) Close() error {
	s.stop()
	return s.conn.Close()
}

// whyNotLive says why there is no capture, and what to do about it.
func whyNotLive(name string, err error) error {
	if !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("capture on %s: %w", name, err)
	}
	program, wrong := os.Executable()
	if wrong != nil {
		program = os.Args[0]
	}
	return fmt.Errorf("capture on %s: it needs the capability CAP_NET_RAW; run it as root, or grant it with: sudo setcap cap_net_raw+ep %s", name, program)
}
