package udp

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
)

// TestHostIsLookedUpOnce: when the socket's buffer is crowded, a host is looked up once
// in a while, however many ports it, or somebody in its name, has: each look is four
// questions to the kernel (attack A15, SECURITY.md).
func TestHostIsLookedUpOnce(t *testing.T) {
	c, err := Listen(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.sending.now = time.Now()
	var first *neighbour
	for port := range uint16(1000) {
		a := transport.UDPAddr(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 1+port))
		if !c.leaves(&a) {
			t.Fatalf("nothing leaves for %v", a)
		}
		for _, n := range c.sending.known {
			if first == nil {
				first = n
			}
			if n != first {
				t.Fatalf("port %d is looked up by itself", port)
			}
		}
	}
}

// TestNoLookAfterClose: the descriptor of a closed socket may be another file's by the
// time, which is not asked how full it is.
func TestNoLookAfterClose(t *testing.T) {
	c, err := Listen(Config{})
	if err != nil {
		t.Fatal(err)
	}
	var number int
	c.socket.Control(func(fd int) error { number = fd; return nil })
	c.Close()
	var pair [2]int
	for pair[0] != number && pair[1] != number {
		if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pair[0])
		defer unix.Close(pair[1])
	}
	for unix.Send(number, make([]byte, 1000), 0) == nil {
	}
	c.buffers.Send = 1000
	c.sending.given = 1000
	c.lookAtCrowd()
	if c.sending.crowded {
		t.Error("the buffer of another socket counts as that of one that is closed")
	}
}

// TestManyFramesInOneCall: a socket with one peer looks for no crowd, and gives the kernel
// as much in one call as there is room for, however much was sent before.
func TestManyFramesInOneCall(t *testing.T) {
	c, err := Listen(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	to := c.LocalAddr()
	c.Focus(to)
	batch := make([]transport.Outgoing, 100)
	for i := range batch {
		batch[i] = transport.Outgoing{To: &to, Buf: make([]byte, 100)}
	}
	for sent := 0; sent <= 2*c.buffers.Send; sent += len(batch) * messageOverhead {
		if n := c.gather(batch, 0, false); n != len(batch) {
			t.Fatalf("%d of %d frames in one call, after %d bytes", n, len(batch), sent)
		}
	}
}
