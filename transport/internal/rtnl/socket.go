package rtnl

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// offMessageFlags is where struct nlmsghdr has its flags.
const offMessageFlags = 6

// Socket asks questions, one at a time.
type Socket struct {
	mu     sync.Mutex
	fd     int // -1: closed
	number uint32
	out    []byte
	in     []byte
}

// Open opens a socket. It needs no privileges.
func Open() (*Socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	// Strict, else kernels look away from what they do not expect in a request.
	unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1)
	return &Socket{fd: fd, in: make([]byte, 16<<10)}, nil
}

// Close makes all questions fail.
func (s *Socket) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd >= 0 {
		unix.Close(s.fd)
	}
	s.fd = -1
}

// request begins a question with the fixed part of its kind. Guarded by mu, as all
// that follows.
func (s *Socket) request(kind uint16, fixed ...byte) {
	s.number++
	b := binary.NativeEndian.AppendUint32(s.out[:0], 0) // the length, see ask
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST)
	b = binary.NativeEndian.AppendUint32(b, s.number)
	b = binary.NativeEndian.AppendUint32(b, 0)
	s.out = append(b, fixed...)
}

// with adds an attribute, whose length is a multiple of four.
func (s *Socket) with(kind uint16, value []byte) {
	s.out = binary.NativeEndian.AppendUint16(s.out, uint16(unix.SizeofRtAttr+len(value)))
	s.out = binary.NativeEndian.AppendUint16(s.out, kind)
	s.out = append(s.out, value...)
}

// ask sends the question and returns the answer behind its header.
func (s *Socket) ask() ([]byte, error) {
	if err := s.send(); err != nil {
		return nil, err
	}
	for {
		b, err := s.receive()
		if err != nil {
			return nil, err
		}
		if len(b) < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint32(b) > uint32(len(b)) {
			return nil, fmt.Errorf("an answer of %d bytes", len(b))
		}
		if binary.NativeEndian.Uint32(b[8:]) != s.number {
			continue // to a question that was not waited for
		}
		b = b[:binary.NativeEndian.Uint32(b)]
		if binary.NativeEndian.Uint16(b[4:]) == unix.NLMSG_ERROR {
			return nil, errorOf(b[unix.SizeofNlMsghdr:])
		}
		return b[unix.SizeofNlMsghdr:], nil
	}
}

// errorOf returns what a message of the kind NLMSG_ERROR says.
func errorOf(content []byte) error {
	if len(content) < 4 {
		return fmt.Errorf("an answer of %d bytes", len(content))
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(content)))
}

// send sends the question.
func (s *Socket) send() error {
	binary.NativeEndian.PutUint32(s.out, uint32(len(s.out)))
	if s.fd < 0 {
		return os.ErrClosed
	}
	return os.NewSyscallError("sendto", unix.Sendto(s.fd, s.out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

// receive returns what came, which may be several messages.
func (s *Socket) receive() ([]byte, error) {
	for {
		n, _, err := unix.Recvfrom(s.fd, s.in, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		return s.in[:n], nil
	}
}

// askForAll sends the question for all there are, and calls f with each answer behind its header.
func (s *Socket) askForAll(f func(b []byte)) error {
	binary.NativeEndian.PutUint16(s.out[offMessageFlags:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := s.send(); err != nil {
		return err
	}
	for {
		b, err := s.receive()
		if err != nil {
			return err
		}
		for len(b) >= unix.SizeofNlMsghdr {
			length := int(binary.NativeEndian.Uint32(b))
			if length < unix.SizeofNlMsghdr || length > len(b) {
				return fmt.Errorf("an answer of %d bytes", len(b))
			}
			content := b[unix.SizeofNlMsghdr:length]
			if binary.NativeEndian.Uint32(b[8:]) == s.number {
				switch binary.NativeEndian.Uint16(b[4:]) {
				case unix.NLMSG_DONE:
					return nil
				case unix.NLMSG_ERROR:
					return errorOf(content)
				}
				f(content)
			}
			b = b[min((length+3)&^3, len(b)):]
		}
	}
}

// attribute returns the value of an attribute, or nil.
func attribute(b []byte, kind uint16) []byte {
	for len(b) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtAttr || length > len(b) {
			return nil
		}
		if binary.NativeEndian.Uint16(b[2:])&^unix.NLA_F_NESTED == kind {
			return b[unix.SizeofRtAttr:length]
		}
		b = b[min((length+3)&^3, len(b)):]
	}
	return nil
}

// number returns the value of an attribute of 32 bits, or 0.
func number(b []byte, kind uint16) int {
	if v := attribute(b, kind); len(v) == 4 {
		return int(binary.NativeEndian.Uint32(v))
	}
	return 0
}

func family(ip netip.Addr) byte {
	if ip.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
