package udp

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPortIsTakenMeanwhile: a port that was free when it was chosen, and is not when it is
// bound, is no error where any port will do; and nobody looks for one without end.
func TestPortIsTakenMeanwhile(t *testing.T) {
	loopback := netip.MustParseAddrPort("127.0.0.1:0")
	socket := func() int {
		fd, err := open(false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	port := func(fd int) uint16 {
		at, err := boundTo(fd)
		if err != nil {
			t.Fatal(err)
		}
		return at.Port()
	}
	other := socket()
	if err := bind(other, loopback, freePort); err != nil {
		t.Fatal(err)
	}
	tries := 0
	taken := func(netip.AddrPort) uint16 { tries++; return port(other) }
	mine := socket()
	err := bind(mine, loopback, func(want netip.AddrPort) uint16 {
		if tries < portTries-1 {
			return taken(want)
		}
		return freePort(want)
	})
	if err != nil || port(mine) == 0 || port(mine) == port(other) {
		t.Errorf("after %d tries: %v, port %d", tries, err, port(mine))
	}
	tries = 0
	if err := bind(socket(), loopback, taken); err != unix.EADDRINUSE || tries != portTries {
		t.Errorf("%d tries, then %v", tries, err)
	}
	if err := bind(socket(), netip.AddrPortFrom(loopback.Addr(), port(other)), nil); err != unix.EADDRINUSE {
		t.Errorf("a port that is asked for and taken: %v", err)
	}
}
