package rpc

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"
)

// TestReconnectFromTheSamePort checks that a connection that takes the place of a lost one comes from the same port, whether the server
// has reset or closed the lost one, or its direction only while it takes nothing, or said nothing: by that port Linux's NFS server knows a
// call that comes again (LX-30).
func TestReconnectFromTheSamePort(t *testing.T) {
	for name, lose := range map[string]func(nc net.Conn){
		"reset":  func(nc net.Conn) { nc.(*net.TCPConn).SetLinger(0); nc.Close() },
		"closed": func(nc net.Conn) { nc.Close() },
		"half":   func(nc net.Conn) { nc.(*net.TCPConn).CloseWrite() },
		"silent": func(nc net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			c, err := Dial(t.Context(), "tcp:"+l.Addr().String(), &ClientOptions{Resend: true, Timeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go c.Bind(testProgram, None).Call(t.Context(), procEcho, &data{b: make([]byte, 8<<20)}, nil, nil)
			var ports [2]int
			for i := range ports {
				nc, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				if _, err := nc.Read(make([]byte, 100)); err != nil { // the call
					t.Fatal(err)
				}
				ports[i] = nc.RemoteAddr().(*net.TCPAddr).Port
				lose(nc)
			}
			if ports[0] != ports[1] {
				t.Errorf("the connections came from the ports %d", ports)
			}
		})
	}
}

// TestPortIsTaken checks that a connection comes from another port when its own has another user by then.
func TestPortIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var d tcpDialer
	first, err := d.dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	first.(*net.TCPConn).SetLinger(0)
	first.Close()
	taken := d.port
	other, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", taken))
	if err != nil {
		t.Skip(err) // another process was faster
	}
	defer other.Close()
	second, err := d.dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if d.port == taken {
		t.Error("two have one port")
	}
}

// TestReservedPort checks that a process that may have a port below 1024 connects from one if that was asked for, again and again, and that
// others connect all the same.
func TestReservedPort(t *testing.T) {
	_, address := serve(t, &service{}, nil)
	for i := range 20 {
		asked := i%2 == 0
		c := dial(t, address, &ClientOptions{ReservedPort: asked})
		var who data
		if err := c.Bind(testProgram, None).Call(t.Context(), procWhoami, nil, &who, nil); err != nil {
			t.Fatal(err)
		}
		port := netip.MustParseAddrPort(string(who.b)).Port()
		if reserved := port >= firstReserved && port <= lastReserved; reserved != (asked && os.Geteuid() == 0) {
			t.Errorf("from port %d as user %d, asked %v", port, os.Geteuid(), asked)
		}
	}
}
