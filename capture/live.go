package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	// liveRoom holds the longest packet that the kernel joins of UDP.
	liveRoom = 128 << 10
	// liveBuffer is room for some milliseconds of a fast link.
	liveBuffer = 32 << 20
)

// Live is a capture on an interface.
type Live struct {
	ctx   context.Context
	conn  *packet.Conn
	raw   syscall.RawConn
	name  string
	quiet func() error
	buf   []byte
	info  []byte
	stop  func() bool

	// What take leaves for Next.
	take     func(fd uintptr) bool
	n, infoN int
	from     unix.Sockaddr
	failed   error
	ended    error // what quiet said
}

// OpenLive captures everything except TCP on an interface, until the context is done. It
// needs CAP_NET_RAW. Before it waits it calls quiet, if that is not nil; an error of quiet
// ends the capture.
func OpenLive(ctx context.Context, name string, quiet func() error) (*Live, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("no interface %s; there are %s", name, interfaceNames())
	}
	if ifi.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("interface %s is down; bring it up with: ip link set %s up", name, name)
	}
	program, err := withoutTCP()
	if err != nil {
		return nil, err
	}
	conn, err := packet.Listen(ifi, packet.Raw, unix.ETH_P_ALL, &packet.Config{Filter: program})
	if err != nil {
		return nil, whyNotLive(name, err)
	}
	s := &Live{ctx: ctx, conn: conn, name: name, quiet: quiet, buf: make([]byte, liveRoom), info: make([]byte, 128)}
	s.take = s.receive
	if s.raw, err = conn.SyscallConn(); err == nil {
		err = s.prepare()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("capture on %s: %w", name, err)
	}
	s.stop = context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	return s, nil
}

// prepare asks for everything that passes, for its times, and for room.
func (s *Live) prepare() error {
	if err := s.conn.SetPromiscuous(true); err != nil {
		return err
	}
	var err error
	if wrong := s.raw.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1))
		// As much as is allowed will do.
		if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, liveBuffer) != nil {
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, liveBuffer)
		}
	}); wrong != nil {
		return wrong
	}
	return err
}

// withoutTCP makes a filter that drops TCP: it fills most wires, and over SSH each line that
// is printed would make more of it.
func withoutTCP() ([]bpf.RawInstruction, error) {
	const ipHeader = 1<<32 - 0x100000 // SKF_NET_OFF: whatever is in front of it
	return bpf.Assemble([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: 2},
		bpf.LoadAbsolute{Off: ipHeader + 9, Size: 1},
		bpf.Jump{Skip: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipFalse: 2},
		bpf.LoadAbsolute{Off: ipHeader + 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1},
		bpf.RetConstant{Val: liveRoom},
		bpf.RetConstant{Val: 0},
	})
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
		from, ok := s.from.(*unix.SockaddrLinklayer)
		if !ok || from.Hatype == unix.ARPHRD_LOOPBACK && from.Pkttype == unix.PACKET_OUTGOING {
			continue // it comes in as well
		}
		return Record{
			Time: s.time(), LinkType: linkTypeOf(from.Hatype), Data: s.buf[:min(s.n, len(s.buf))], Length: s.n,
		}, nil
	}
}

// receive takes a packet from the socket, or tells the runtime to wait for one.
func (s *Live) receive(fd uintptr) bool {
	for {
		s.n, s.infoN, _, s.from, s.failed = unix.Recvmsg(int(fd), s.buf, s.info, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
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

// time returns when the kernel saw the packet.
func (s *Live) time() time.Time {
	for info := s.info[:s.infoN]; len(info) > 0; {
		h, data, rest, err := unix.ParseOneSocketControlMessage(info)
		if err != nil {
			break
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS_NEW && len(data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:]))).UTC()
		}
		info = rest
	}
	return time.Now().UTC()
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

// Dropped returns how many packets the kernel had no room for.
func (s *Live) Dropped() int {
	stats, err := s.conn.Stats()
	if err != nil {
		return 0
	}
	return int(stats.Drops)
}

// Close ends the capture.
func (s *Live) Close() error {
	s.stop()
	return s.conn.Close()
}

// linkTypeOf translates the kernel's name for the kind of an interface into that
// of capture files.
func linkTypeOf(hardware uint16) int {
	switch hardware {
	case unix.ARPHRD_ETHER, unix.ARPHRD_LOOPBACK:
		return linkEthernet
	case unix.ARPHRD_NONE, unix.ARPHRD_RAWIP, unix.ARPHRD_PPP, unix.ARPHRD_TUNNEL, unix.ARPHRD_TUNNEL6, unix.ARPHRD_SIT:
		return linkRaw
	}
	return linkUnknown
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

func interfaceNames() string {
	all, err := net.Interfaces()
	if err != nil {
		return "none that the system tells: " + err.Error()
	}
	var names []string
	for _, ifi := range all {
		names = append(names, ifi.Name)
	}
	return strings.Join(names, ", ")
}
