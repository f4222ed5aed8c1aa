package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/verbs"
)

// startTCPServer starts a command that serves over TCP, as a process, and returns where.
func startTCPServer(t *testing.T, args ...string) (*process, string) {
	t.Helper()
	p := asProcess(t, args...).start()
	var at string
	eventually(t, "it serves", func() bool {
		_, rest, found := strings.Cut(p.err.String(), " on tcp:")
		at, _, _ = strings.Cut("tcp:"+rest, "\n")
		return found && strings.Contains(rest, "\n")
	})
	t.Cleanup(func() {
		p.Process.Signal(os.Interrupt)
		if p.code(); strings.Contains(p.err.String(), "SIGQUIT") {
			t.Errorf("%v: no end after an interrupt: %s", args, &p.err)
		}
	})
	return p, at
}

// stranger is a server of TCP that does not speak iWARP.
func stranger(t *testing.T, does func(net.Conn)) (at string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { nc.Close() })
			go does(nc)
		}
	}()
	return "tcp:" + l.Addr().String()
}

func sayingHTTP(nc net.Conn) {
	nc.Read(make([]byte, 100))
	io.WriteString(nc, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request")
	nc.Close()
}

// nobodyThere is where nobody listens: no server has that port, and the system gives it to none by itself.
const nobodyThere = "tcp:127.0.0.1:1"

// overcrowded is a port where nobody is answered: as many wait for the listener as it lets.
func overcrowded(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
	for range 3 {
		if nc, err := net.DialTimeout("tcp", address, 100*time.Millisecond); err == nil {
			t.Cleanup(func() { nc.Close() })
		}
	}
	return "tcp:" + address
}

// listening is a host and a listener of its, until the test ends.
func listening(t *testing.T) (*verbs.Host, *verbs.Listener) {
	t.Helper()
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	l, err := h.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	return h, l
}

// accepting is a server of iWARP that accepts with that private data, and then does something.
func accepting(t *testing.T, private []byte, does func(q *verbs.QueuePair)) (at string) {
	t.Helper()
	_, l := listening(t)
	go func() {
		for {
			r, err := l.Accept(t.Context())
			if err != nil {
				return
			}
			go func() {
				o := &verbs.Options{Private: private, Extensions: verbs.Atomics | verbs.Commit}
				for range 100 {
					o.Posted = append(o.Posted, verbs.Receive{Data: make([]byte, 64)})
				}
				if q, err := r.Accept(t.Context(), o); err == nil {
					does(q)
				}
			}()
		}
	}()
	return "tcp:" + l.Addr().String()
}

func TestTCPAddresses(t *testing.T) {
	for s, want := range map[string]tcpAddress{
		"tcp": {"", "7"}, "tcp:": {"", "7"}, "tcp:80": {"", "80"}, "tcp:10.0.0.1": {"10.0.0.1", "7"}, "tcp:10.0.0.1:0": {"10.0.0.1", "0"},
		"tcp:[::1]:80": {"::1", "80"}, "tcp:[::1]": {"::1", "7"}, "tcp:::1": {"::1", "7"}, "tcp:[fe80::1%eth0]:9": {"fe80::1%eth0", "9"},
		"tcp:camera.local:80": {"camera.local", "80"}, "tcp:camera": {"camera", "7"},
	} {
		if got, err := parseTCP("--serve", s, "7"); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "udp:10.0.0.1:80", "10.0.0.1:80", "tcp://10.0.0.1:80", "tcp:10.0.0.1:http", "tcp:10.0.0.1:65536", "tcp:10.0.0.1:-1", "tcp:[::1", "tcp:a:b:c", "ocpi-udp-rdma:10.0.0.1;7;64.3.16"} {
		var bad usageError
		if got, err := parseTCP("--serve", s, "7"); !errors.As(err, &bad) {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"tcp", "tcp:80", "tcp:10.0.0.1:0", "tcp:0.0.0.0:80", "tcp:[::]:80"} {
		var bad usageError
		if got, err := parseTCPPeer("--to", s, "7"); !errors.As(err, &bad) {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	if at, others := reachedAt(&net.TCPAddr{IP: net.IPv6zero, Port: 80}); strings.Contains(at.String(), "[::]") || !strings.HasSuffix(at.String(), ":80") || others == "" {
		t.Error(at, others)
	}
	if at, others := reachedAt(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 80, Zone: "eth0"}); at.String() != "tcp:[fe80::1%eth0]:80" || others != "" {
		t.Error(at, others)
	}
}

// TestReachedWithoutDefaultRoute: on a network that leads nowhere else, a server at all addresses names the one that others reach.
func TestReachedWithoutDefaultRoute(t *testing.T) {
	netns.Require(t)
	netns.NewPair(t, 1500)[0].In(func() {
		at, others := reachedAt(&net.TCPAddr{IP: net.IPv6zero, Port: 80})
		if at.String() != "tcp:10.77.0.1:80" || !strings.HasPrefix(others, "that is at every address of this machine: in place of 10.77.0.1 peers may write ") {
			t.Error(at, others)
		}
	})
}
