package tcpinfo

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestOf checks what is known of a connection: what came, what the peer has, what it has not, and that a reset loses it; and that nothing is known of one
// that is closed.
func TestOf(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	here, there := nc.(*net.TCPConn), other.(*net.TCPConn)
	defer here.Close()
	defer there.Close()
	raw, err := here.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	is := func(what string, is func(Info) bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			i := Of(raw)
			if is(i) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, i)
			}
		}
	}
	here.Write(make([]byte, 1000))
	there.Write(make([]byte, 70))
	io.ReadFull(here, make([]byte, 70))
	// A connection counts its first octet, which has no data, as acknowledged.
	is("both have all", func(i Info) bool {
		return i.Received == 70 && i.Acked >= 1000 && i.Acked <= 1001 && i.Unacked == 0 && !i.Lost
	})
	here.SetWriteBuffer(64 << 10)
	here.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	n, _ := here.Write(make([]byte, 32<<20)) // the peer has no room for that
	is("the peer has no room", func(i Info) bool { return i.Unacked > 0 && int(i.Acked)+i.Unacked >= n+1000 && !i.Lost })
	there.SetLinger(0)
	there.Close()
	is("a reset", func(i Info) bool { return i.Lost })
	here.Close()
	if i := Of(raw); i != (Info{}) {
		t.Errorf("closed: %+v", i)
	}
}
