package verbs_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestLostAmidSending: TCP tells but one call that it gave a connection up. Whichever that is, the peer has not closed it.
func TestLostAmidSending(t *testing.T) {
	fixture.NoGoroutineOfItsOwnLeft(t)
	h, _ := listen(t)
	at := strings.TrimPrefix(stopped(t), "tcp:")
	for range 4 {
		nc, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := nc.(*net.TCPConn).SyscallConn()
		if err == nil {
			raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 50) })
		}
		if err != nil {
			t.Fatal(err)
		}
		q, err := h.Connect(t.Context(), nc, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = q.Write(t.Context(), verbs.Key{STag: 1 << 8, Length: 1 << 30}, 0, make([]byte, 16<<20))
		if !errors.Is(err, unix.ETIMEDOUT) || errors.Is(err, verbs.ErrPeerClosed) {
			t.Error(err)
		}
	}
}
