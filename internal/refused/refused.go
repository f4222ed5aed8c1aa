// Package refused says what a user may do where the system refuses a socket its address, or finds no host or no way.
package refused

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Elsewhere says of an address that it is none of this machine's.
const Elsewhere = "no interface of this machine has the address; ip addr lists those there are"

// Bind explains an error of bind, and returns others as they are. every says that the socket was to be at all addresses.
func Bind(err error, every bool) error {
	var call *os.SyscallError
	if !errors.As(err, &call) || call.Syscall != "bind" {
		return err
	}
	switch {
	case errors.Is(call, syscall.EADDRINUSE) && every:
		return fmt.Errorf("%w: another socket has the port, at all addresses or at one; choose a port, or 0 for any, or name an address", err)
	case errors.Is(call, syscall.EADDRINUSE):
		return fmt.Errorf("%w: another socket has the port; choose one, or 0 for any", err)
	case errors.Is(call, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: %s", err, Elsewhere)
	case errors.Is(call, syscall.EACCES):
		return fmt.Errorf("%w: ports below net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE", err)
	}
	return err
}

// NoFiles reports whether an error is that this process, or the system, has no file descriptor left.
func NoFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Spare returns an error if this process cannot open n more file descriptors.
func Spare(n int) error {
	for range n {
		fd, err := syscall.Dup(0)
		if NoFiles(err) {
			return Files(err)
		}
		if err == nil {
			defer syscall.Close(fd)
		}
	}
	return nil
}

// filesError is an error that [Files] has explained.
type filesError struct{ error }

func (e *filesError) Unwrap() error { return e.error }

// Files says what a user may do where no file descriptor is left, and returns other errors as they are.
func Files(err error) error {
	switch explained := (*filesError)(nil); {
	case !NoFiles(err), errors.As(err, &explained):
		return err
	case errors.Is(err, syscall.ENFILE):
		return &filesError{fmt.Errorf("%w: no program gets another one; close some, or raise the sysctl fs.file-max", err)}
	}
	var most syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most) != nil {
		return &filesError{fmt.Errorf("%w: raise the limit with ulimit -n", err)}
	}
	return &filesError{fmt.Errorf("%w: this process may have %d; raise the limit with ulimit -n", err, most.Cur)}
}

// Name explains why a host has no address. Where the files that say so could not be opened, package net takes them for missing.
func Name(host string, err error) error {
	if none := Spare(1); none != nil {
		return fmt.Errorf("no address of host %s: %w", host, none)
	}
	return fmt.Errorf("no address of host %s: %w; is the name right? An IP address does in its place", host, err)
}

// Way explains why the system sends nothing to a peer.
func Way(err error) error {
	if NoFiles(err) {
		return Files(err)
	}
	return fmt.Errorf("no way there: %w", err)
}
