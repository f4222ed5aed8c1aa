package namespace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// OpenPort opens a socket for all frames that a device receives.
func (n *Namespace) OpenPort(device string) (f *os.File, err error) {
	n.In(func() {
		var ifi *net.Interface
		if ifi, err = net.InterfaceByName(device); err != nil {
			return
		}
		var fd int
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
			err = os.NewSyscallError("socket", err)
			return
		}
		const enough = 64 << 20
		err = errors.Join(
			setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, enough),
			setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, enough),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: ifi.Index}))
		if err != nil {
			unix.Close(fd)
			return
		}
		f = os.NewFile(uintptr(fd), device)
	})
	if err != nil {
		err = fmt.Errorf("open port %s of the switch: %w", device, err)
	}
	return f, err
}

// setBuffer sets a buffer as large as it may be: root of a user namespace may not have more than others.
func setBuffer(fd, force, ask, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, ask, size)
}

func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
