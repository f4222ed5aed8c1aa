package mmsg

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Drops returns how many datagrams the kernel dropped because the socket's
// receive buffer was full.
func Drops(fd int) uint64 {
	var info [unix.SK_MEMINFO_VARS]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info[0])), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return 0
	}
	return uint64(info[unix.SK_MEMINFO_DROPS])
}
