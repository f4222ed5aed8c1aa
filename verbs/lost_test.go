package verbs_test

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestLostAmidSending: TCP tells but one call that it gave a connection up. Whichever that is, the peer has not closed it, and is silent if it
// was to be given up at all.
func TestLostAmidSending(t *testing.T) {
	t.Parallel()
	fixture.NoGoroutineOfItsOwnLeft(t)
	h, _ := listen(t)
	at := strings.TrimPrefix(stopped(t), "tcp:")
	var all sync.WaitGroup
	for i := range 8 {
		o := &verbs.Options{}
		if i%2 == 1 {
			o.GiveUp = time.Hour
		}
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
		q, err := h.Connect(t.Context(), nc, o)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			err := q.Write(t.Context(), verbs.Key{STag: 1 << 8, Length: 1 << 30}, 0, make([]byte, 16<<20))
			if !errors.Is(err, unix.ETIMEDOUT) || errors.Is(err, verbs.ErrPeerClosed) || errors.Is(err, verbs.ErrSilent) != (o.GiveUp > 0) {
				t.Errorf("with %v: %v", o.GiveUp, err)
			}
			<-q.Done()
		})
	}
	all.Wait()
	if n := h.Stats().Silent; n != 4 {
		t.Errorf("%d silent peers are counted", n)
	}
}
