package mpa

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of package unix for several pieces of memory make an array of pieces each time; these
// take one that is there. None of them waits: the sockets of package net do not block. One piece alone goes by the call for
// it, which has less to look at: it is 0.2 us of a ping.
//
// Go's scheduler is not told of calls that send. A batch takes them some 100 us, and a call that takes longer than 20 loses its processor
// to another thread, which is woken for that, finds nothing to do, and sleeps; and the runtime's monitor does not rest. That was a tenth of the time of both ends of a
// stream of writes. What is sent is in memory when the call begins: framer.gather has touched it. Calls that receive may have to wait for a page of
// a mapped file, and so the scheduler is told of them.

func readv(fd uintptr, v []unix.Iovec) (int, unix.Errno) {
	if len(v) == 1 {
		n, _, e := unix.Syscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(v[0].Base)), uintptr(v[0].Len), 0, 0, 0)
		return int(n), e
	}
	n, _, e := unix.Syscall(unix.SYS_READV, fd, uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	return int(n), e
}

func writev(fd uintptr, v []unix.Iovec) (int, unix.Errno) {
	if len(v) == 1 {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(v[0].Base)), uintptr(v[0].Len), unix.MSG_NOSIGNAL, 0, 0)
		return int(n), e
	}
	n, _, e := unix.RawSyscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	return int(n), e
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
	n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&r.headers[0])), uintptr(r.n), unix.MSG_EOR|unix.MSG_NOSIGNAL, 0, 0)
	if e != 0 {
		return 0, e
	}
	sum := 0
	for i := range int(n) {
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
