package mmsg

import (
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket is a non-blocking socket outside the runtime's poller. The descriptor
// is closed when Close was called and nobody uses it any more.
type Socket struct {
	fd     int
	wake   int          // an eventfd that becomes readable with Nudge and Close
	users  atomic.Int64 // calls under way, and closing
	memory []byte       // of Map
	atEnd  func()       // of AtEnd
}

// closing is added to users by Close.
const closing = 1 << 32

// New takes over a descriptor, also if it fails.
func New(fd int) (*Socket, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("eventfd2", err)
	}
	return &Socket{fd: fd, wake: wake}, nil
}

// Hold keeps the descriptor and its memory until Release. Not ok: it is closed.
func (s *Socket) Hold() bool {
	if s.users.Add(1) < closing {
		return true
	}
	s.Release()
	return false
}

// Release ends what Hold began.
func (s *Socket) Release() {
	if s.users.Add(-1) == closing {
		s.end()
	}
}

// end closes the descriptors. The one who finds nobody else does it, once:
// it moves users beyond every count.
func (s *Socket) end() {
	if s.users.CompareAndSwap(closing, 2*closing) {
		if s.memory != nil {
			unix.Munmap(s.memory)
		}
		unix.Close(s.fd)
		unix.Close(s.wake)
		if s.atEnd != nil {
			s.atEnd()
		}
	}
}

// Map returns memory that is shared with the kernel, as long as the descriptor
// is open. It comes before the Socket has other users.
func (s *Socket) Map(length int) ([]byte, error) {
	m, err := unix.Mmap(s.fd, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	s.memory = m
	return m, nil
}

// AtEnd has f called when the descriptor was closed. It comes before the Socket has other users.
func (s *Socket) AtEnd(f func()) { s.atEnd = f }

// Close makes calls that wait return, and all others fail.
func (s *Socket) Close() error {
	for {
		n := s.users.Load()
		if n >= closing {
			return net.ErrClosed
		}
		if s.users.CompareAndSwap(n, n+closing+1) { // and we are a user ourselves
			break
		}
	}
	s.signal()
	s.Release()
	return nil
}

// signal makes the eventfd readable. Only within Hold.
func (s *Socket) signal() {
	one := [8]byte{1} // any number but 0, in either byte order
	unix.Write(s.wake, one[:])
}

// Nudge makes one who waits return, with nothing.
func (s *Socket) Nudge() {
	if s.Hold() {
		s.signal()
		s.Release()
	}
}

// Closed reports whether Close was called.
func (s *Socket) Closed() bool { return s.users.Load() >= closing }

// Control calls f with the descriptor.
func (s *Socket) Control(f func(fd int) error) error {
	if !s.Hold() {
		return net.ErrClosed
	}
	defer s.Release()
	return f(s.fd)
}

// Forever is how long to wait if no time is too long.
const Forever time.Duration = -1

// WaitInput blocks until there is something to receive, or an error to be told,
// and no longer than that time, or until Nudge; so it may return for nothing. Of
// the errors it returns those that Receive does. Only within Hold.
func (s *Socket) WaitInput(atMost time.Duration) error {
	some, err := s.wait(unix.POLLIN, atMost)
	if some {
		return s.Pending()
	}
	return err
}

// Pending returns unix.ENETDOWN if that is the socket's pending error. Only within Hold.
func (s *Socket) Pending() error {
	if e, _ := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR); e == int(unix.ENETDOWN) {
		return unix.ENETDOWN
	}
	return nil
}

// wait blocks until the socket has one of these events, or is closed, or nudged, or
// the time is over. An interrupted wait begins anew.
func (s *Socket) wait(events int16, atMost time.Duration) (some bool, err error) {
	var limit *unix.Timespec
	if atMost >= 0 {
		t := unix.NsecToTimespec(int64(atMost))
		limit = &t
	}
	for {
		fds := [2]unix.PollFd{{Fd: int32(s.fd), Events: events}, {Fd: int32(s.wake), Events: unix.POLLIN}}
		watched := fds[:]
		if events == unix.POLLOUT {
			watched = fds[:1] // never for long, and a nudge is for who waits for input
		}
		n, err := unix.Ppoll(watched, limit, nil)
		switch {
		case s.Closed():
			return false, net.ErrClosed
		case err != nil && err != unix.EINTR:
			return false, os.NewSyscallError("ppoll", err)
		case fds[0].Revents != 0:
			return true, nil
		case fds[1].Revents != 0:
			var number [8]byte
			unix.Read(s.wake, number[:])
			if s.Closed() {
				s.signal() // it was Close that spoke, just now, and not only to us
				return false, net.ErrClosed
			}
			return false, nil
		case err == nil && n == 0:
			return false, nil
		}
	}
}

// Connect is connect for addresses that package unix has no type for.
func Connect(fd int, to *unix.RawSockaddr) error {
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(to)), unsafe.Sizeof(*to))
	if e != 0 {
		return os.NewSyscallError("connect", e)
	}
	return nil
}
