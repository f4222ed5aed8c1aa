package ether

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// socketBeside returns an AF_XDP socket in the network namespace of a packet socket. The thread may be in
// another one: endpoints send from goroutines, and a program can have opened the interface in a namespace that
// it has left since. There an interface of the same number is another one. now: the packet socket was opened
// just now, and where the kernel does not tell, the namespace is the same.
func socketBeside(packet int, now bool) (fd int, err error) {
	if fd, err = newXSKSocket(); err != nil {
		return 0, err
	}
	if same, known := sameNamespace(fd, packet); same || !known && now {
		return fd, nil
	}
	unix.Close(fd)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var ns int
		if ns, err = unix.IoctlRetInt(packet, unix.SIOCGSKNS); err != nil {
			err = os.NewSyscallError("ioctl", err)
			return
		}
		defer unix.Close(ns)
		if err = unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			err = os.NewSyscallError("setns", err)
			return
		}
		fd, err = newXSKSocket()
	}()
	<-done
	if err != nil {
		return 0, &namespaceError{err}
	}
	return fd, nil
}

func newXSKSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	return fd, os.NewSyscallError("socket", err)
}

// sameNamespace reports whether two sockets belong to the same network namespace, if the kernel tells: since 5.14.
func sameNamespace(a, b int) (same, known bool) {
	x, err := unix.GetsockoptUint64(a, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return false, false
	}
	y, err := unix.GetsockoptUint64(b, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return err == nil && x == y, err == nil
}

// namespaceError is why there is no socket in another namespace than the thread's.
type namespaceError struct{ err error }

func (e *namespaceError) Error() string {
	return "the interface was opened in another network namespace than that of who sends: " + e.err.Error()
}

func (e *namespaceError) Unwrap() error { return e.err }
