package udp

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

// ecnControl is the longest control message of a mark.
const ecnControl = 4

// tellECN has the kernel tell with which marks datagrams arrive, and reports whether it does.
func tellECN(fd int, v6, every bool) bool {
	tells := true
	if v6 {
		tells = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1) == nil
	}
	if every || !v6 {
		tells = tells && unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVTOS, 1) == nil
	}
	return tells
}

// readECN returns the mark in a control message with a traffic class: a byte of IPv4, an int of IPv6.
func readECN(content []byte) transport.ECN {
	class := uint32(content[0])
	if len(content) >= 4 {
		class = binary.NativeEndian.Uint32(content)
	}
	return transport.ECN(class) & transport.CE
}

// markWith has the message at hand, which names its receiver, leave with a mark.
func (s *sending) markWith(m transport.ECN, v6 bool) {
	level, kind := int32(unix.IPPROTO_IP), int32(unix.IP_TOS)
	if v6 {
		level, kind = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	var class [ecnControl]byte
	binary.NativeEndian.PutUint32(class[:], uint32(m))
	s.out.AddControl(level, kind, class[:])
}

// setMark has all that leaves by a socket have a mark. A control message would have a connected socket look for a route each time.
func setMark(s *mmsg.Socket, m transport.ECN, v6 bool) {
	s.Control(func(fd int) error {
		if v6 {
			return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, int(m))
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, int(m))
	})
}
