package mmsg

import (
	"math"

	"golang.org/x/sys/unix"
)

// EnoughBuffer is what is asked for by default: several times what is in flight
// with the widest window that the congestion controller finds useful.
const EnoughBuffer = 32 << 20

// Buffers are the sizes of a socket's buffers, as the kernel counts them: with
// its own overhead, which is about as much as the data.
type Buffers struct {
	Receive, Send int
	Wanted        int // what would have been taken; 0: the kernel's default was
}

// SetBuffers makes a socket's buffers that large, as far as it is allowed. 0 is
// EnoughBuffer, and less than 0 leaves the kernel's default.
func SetBuffers(fd, want int) Buffers {
	b := Buffers{Wanted: want}
	if want == 0 {
		b.Wanted = EnoughBuffer
	}
	b.Wanted = min(max(b.Wanted, 0), math.MaxInt32/2) // the kernel has it in an int, doubled
	if b.Wanted > 0 {
		for _, o := range [][2]int{{unix.SO_RCVBUF, unix.SO_RCVBUFFORCE}, {unix.SO_SNDBUF, unix.SO_SNDBUFFORCE}} {
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[0], b.Wanted)
			if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, o[0]); err != nil || got < 2*b.Wanted {
				unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[1], b.Wanted) // only with CAP_NET_ADMIN
			}
		}
	}
	b.Receive, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	b.Send, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	return b
}
