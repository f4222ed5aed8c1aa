package udp

import (
	"net/netip"
	"testing"
	"time"

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
