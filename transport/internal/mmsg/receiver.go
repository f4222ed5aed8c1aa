package mmsg

import (
	"net"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/patience"
)

// header is struct mmsghdr.
type header struct {
	unix.Msghdr
	n uint32
}

// Name has room for the socket addresses of IP and of packet sockets.
type Name [32]byte

// Receiver takes batches of datagrams. It belongs to one goroutine.
type Receiver struct {
	headers  []header
	iovecs   []unix.Iovec
	names    []Name
	buffers  []byte
	controls []byte
	stride   int
	control  int
	patience patience.Patience
	ask      int // of how many datagrams the next call has headers
	gathered int // datagrams since a call last found none
}

// mostErrors is how many pending errors one call takes.
const mostErrors = 16

// NewReceiver makes room for n datagrams of size bytes, each with that many bytes
// of control messages.
func NewReceiver(n, size, control int) *Receiver {
	// Buffers at a power of two would share the sets of the cache.
	stride := (size+63)&^63 + 64
	r := &Receiver{
		headers: make([]header, n), iovecs: make([]unix.Iovec, n), names: make([]Name, n),
		buffers: make([]byte, n*stride), controls: make([]byte, n*control), stride: stride, control: control,
		patience: patience.New(runtime.NumCPU()), ask: n,
	}
	for i := range r.headers {
		h := &r.headers[i]
		r.iovecs[i].Base = &r.buffers[i*stride]
		r.iovecs[i].SetLen(size)
		h.Iov = &r.iovecs[i]
		h.SetIovlen(1)
		h.Name = &r.names[i][0]
		if control > 0 {
			h.Control = &r.controls[i*control]
		}
		r.ready(h)
	}
	return r
}

// took notes what a call brought, for the next one. Behind the last datagram the kernel
// prepares one more header before it finds that there is none, which is 2 % of the way of
// a datagram that comes alone: while they do, calls ask for one.
func (r *Receiver) took(n int) {
	switch {
	case n > 0:
		r.gathered += n
		r.ask = len(r.headers)
	case r.gathered > 0:
		if r.gathered == 1 {
			r.ask = 1
		}
		r.gathered = 0
	}
}

func (r *Receiver) ready(h *header) {
	h.Namelen = uint32(len(Name{}))
	h.SetControllen(r.control)
}

// Receive takes what is there and returns how many datagrams that is: none only if
// none came within that time, or before Nudge or an error that a peer caused. unix.ENETDOWN says that the socket's
// interface went down or away. Other errors end the socket: what a peer caused is
// passed over.
func (r *Receiver) Receive(s *Socket, wait time.Duration) (int, error) {
	if !s.Hold() {
		return 0, net.ErrClosed
	}
	defer s.Release()
	r.patience.Begin()
	for errors := 0; ; {
		n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&r.headers[0])),
			uintptr(r.ask), unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			r.patience.Found()
			r.took(int(n))
			return int(n), nil
		case unix.EAGAIN:
			r.took(0)
			if wait == 0 {
				return 0, nil
			}
			if r.patience.Again() {
				continue
			}
			if some, err := s.wait(unix.POLLIN, wait); !some {
				return 0, err
			}
		case unix.ENETDOWN:
			return 0, e
		case unix.EBADF, unix.ENOTSOCK, unix.EFAULT, unix.EINVAL, unix.ENOSYS:
			return 0, os.NewSyscallError("recvmmsg", e)
		default:
			// EINTR, and the socket's pending error: ECONNREFUSED, EHOSTUNREACH and
			// the like. Strangers can cause many, and must not prolong the wait.
			if s.Closed() {
				return 0, net.ErrClosed
			}
			wait = min(wait, 0)
			if errors++; wait == 0 && errors > mostErrors {
				return 0, nil
			}
		}
	}
}

// Data returns datagram i. It is good until the next Receive.
func (r *Receiver) Data(i int) []byte {
	return r.buffers[i*r.stride:][:r.headers[i].n:r.headers[i].n]
}

// Truncated reports whether datagram i was longer than its buffer.
func (r *Receiver) Truncated(i int) bool { return r.headers[i].Flags&unix.MSG_TRUNC != 0 }

// Name returns the address that datagram i came from.
func (r *Receiver) Name(i int) *Name { return &r.names[i] }

// Control returns the control messages that came with datagram i, for NextControl.
func (r *Receiver) Control(i int) []byte {
	return r.controls[i*r.control:][:r.headers[i].Controllen:r.control]
}

// Done gives the first n headers back to the kernel, before the next Receive.
func (r *Receiver) Done(n int) {
	for i := range r.headers[:n] {
		r.ready(&r.headers[i])
	}
}
