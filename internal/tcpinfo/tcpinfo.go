// Package tcpinfo reads what Linux's TCP knows of a connection.
package tcpinfo

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Info is what TCP knows.
type Info struct {
	Received uint64 // octets of the peer
	Acked    uint64 // octets of this side that the peer's TCP has acknowledged
	Unacked  int    // octets of this side that it has not, also those that were not sent
	Lost     bool   // the peer has reset the connection, or TCP has given it up
}

// Of returns what is known now. Of a connection that this side has closed nothing is.
func Of(raw syscall.RawConn) (i Info) {
	const closed = 7 // TCP_CLOSE
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			i.Received, i.Acked = info.Bytes_received, info.Bytes_acked
		}
		i.Lost = err != nil || info.State == closed
		i.Unacked, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
	})
	return i
}
