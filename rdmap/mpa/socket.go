package mpa

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of package unix for several pieces of memory make an array of pieces each time; these
// take one that is there. None of them waits: the sockets of package net do not block. One piece alone goes by the call for
// it, which has less to look at: it is 0.2 us of a ping.

// readv receives.
func readv(fd uintptr, v []unix.Iovec) (int, unix.Errno) {
	if len(v) == 1 {
		n, _, e := unix.Syscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(v[0].Base)), uintptr(v[0].Len), 0, 0, 0)
		return int(n), e
	}
	n, _, e := unix.Syscall(unix.SYS_READV, fd, uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	return int(n), e
}

// longCall is from how many octets on a call that sends is one of which Go's scheduler is not told. It takes them about 20 us, and from then
// on the scheduler takes the processor of a call away: it wakes a thread for that, which finds nothing to do, and sleeps, and its monitor
// does not rest. That was a sixth of the time of a sender of long writes. What is sent is in memory when the call begins: framer.gather
// has touched it. Of short calls the scheduler is told: others have the processor if the system gives this thread none. And of those that
// receive, as they may wait for a page of a mapped file.
const longCall = 64 << 10

// sends makes a call that sends n octets: fd, what and how many of these, flags.
//
//go:uintptrescapes
func sends(n int, trap, fd, what, many, flags uintptr) (int, unix.Errno) {
	if n >= longCall {
		r, _, e := unix.RawSyscall6(trap, fd, what, many, flags, 0, 0)
		return int(r), e
	}
	r, _, e := unix.Syscall6(trap, fd, what, many, flags, 0, 0)
	return int(r), e
}

// writev sends pieces of n octets.
func writev(fd uintptr, v []unix.Iovec, n int) (int, unix.Errno) {
	if len(v) == 1 {
		return sends(n, unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(v[0].Base)), uintptr(v[0].Len), unix.MSG_NOSIGNAL)
	}
	return sends(n, unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)), 0)
}

// bytesOf returns the memory of a piece.
func bytesOf(v *unix.Iovec) []byte { return unsafe.Slice(v.Base, v.Len) }

// skip takes n octets from the front of a piece that has more.
func skip(v *unix.Iovec, n int) {
	v.Base = (*byte)(unsafe.Add(unsafe.Pointer(v.Base), n))
	v.SetLen(int(v.Len) - n)
}

// records is a call of sendmmsg, each message a record that ends where a segment of TCP does.
type records struct {
	headers [maxRecords]struct {
		unix.Msghdr
		sent uint32
	}
	vecs [maxRecords]unix.Iovec
	n    int
}

const maxRecords = 64

func (r *records) add(p []byte) {
	v := &r.vecs[r.n]
	v.Base = &p[0]
	v.SetLen(len(p))
	r.headers[r.n].Iov = v
	r.headers[r.n].SetIovlen(1)
	r.n++
}

// send returns how many octets of all the socket took.
func (r *records) send(fd uintptr) (int, unix.Errno) {
	octets := 0
	for i := range r.vecs[:r.n] {
		octets += int(r.vecs[i].Len)
	}
	n, e := sends(octets, unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&r.headers[0])), uintptr(r.n), unix.MSG_EOR|unix.MSG_NOSIGNAL)
	if e != 0 {
		return 0, e
	}
	sum := 0
	for i := range n {
		sum += int(r.headers[i].sent)
	}
	return sum, 0
}

// clear lets go of all memory.
func (r *records) clear() {
	clear(r.vecs[:r.n])
	r.n = 0
}

// peek says whether something has arrived that nobody has read.
func peek(fd uintptr) bool {
	var b [1]byte
	n, _, e := unix.Syscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b[0])), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return e == 0 && n > 0
}
