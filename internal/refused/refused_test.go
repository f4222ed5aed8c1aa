package refused

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestBind: what a user may change is said, and the error stays what it was.
func TestBind(t *testing.T) {
	for _, c := range []struct {
		call  string
		errno syscall.Errno
		every bool
		says  string
	}{
		{"bind", syscall.EADDRINUSE, false, "another socket has the port; choose one, or 0 for any"},
		{"bind", syscall.EADDRINUSE, true, "choose a port, or 0 for any, or name an address"},
		{"bind", syscall.EADDRNOTAVAIL, false, "no interface of this machine has the address; ip addr lists those there are"},
		{"bind", syscall.EACCES, false, "ports below net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE"},
		{"bind", syscall.ENOMEM, false, ""},
		{"connect", syscall.EADDRNOTAVAIL, false, ""}, // no port is left: that is another matter
		{"connect", syscall.EACCES, false, ""},
	} {
		was := error(&net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError(c.call, c.errno)})
		err := Bind(was, c.every)
		if c.says == "" && err != was || !strings.HasPrefix(err.Error(), was.Error()) || !strings.HasSuffix(err.Error(), c.says) || !errors.Is(err, c.errno) {
			t.Errorf("%s, %v, every %v: %v", c.call, c.errno, c.every, err)
		}
	}
	if err := Bind(syscall.EADDRINUSE, false); err != syscall.EADDRINUSE {
		t.Errorf("not of bind: %v", err)
	}
}

// TestFiles checks that an error of no file descriptor says what limits them, once, and stays what it was, and that other errors stay (N16).
func TestFiles(t *testing.T) {
	for errno, says := range map[syscall.Errno]string{
		syscall.EMFILE: "; raise the limit with ulimit -n", syscall.ENFILE: "raise the sysctl fs.file-max", syscall.ENOMEM: "",
	} {
		was := error(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)})
		err := Files(was)
		if says == "" && err != was || !strings.HasPrefix(err.Error(), was.Error()) || !strings.HasSuffix(err.Error(), says) || !errors.Is(err, errno) || Files(err) != err {
			t.Errorf("%v: %v", errno, err)
		}
		if way := Way(was); says != "" != !strings.HasPrefix(way.Error(), "no way there") || !errors.Is(way, errno) {
			t.Errorf("%v: %v", errno, way)
		}
	}
}
