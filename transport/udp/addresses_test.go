package udp

import (
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestWithoutIPv6: where the system has no IPv6, or has it switched off, all addresses are those of
// IPv4.
func TestWithoutIPv6(t *testing.T) {
	every := netip.AddrPortFrom(netip.IPv6Unspecified(), 7)
	none := func(v6 bool) (int, error) {
		if v6 {
			return -1, unix.EAFNOSUPPORT
		}
		return open(v6)
	}
	fd, at, err := openAt(every, none)
	if err != nil || at != netip.MustParseAddrPort("0.0.0.0:7") {
		t.Fatal(at, err)
	}
	unix.Close(fd)
	if _, _, err := openAt(netip.MustParseAddrPort("[::1]:7"), none); err != unix.EAFNOSUPPORT {
		t.Errorf("an address of IPv6: %v", err)
	}
	h := newHomes(t)
	h.Pair[0].In(func() { err = os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0) })
	if err != nil {
		t.Fatal(err)
	}
	c := h.listen(t, "::", Config{})
	if _, err := h.dial(t, netns.IPv4(0), c).Write(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if from, _ := heard(t, c); from.Local() != netns.IPv4(0) {
		t.Errorf("%v asked %v", from, from.Local())
	}
}

// TestAddresses: the one on the way to the default route comes first, IPv4 before IPv6, loopback
// last, and nothing that peers could not use.
func TestAddresses(t *testing.T) {
	h := newHomes(t)
	list := func(at string) (list []string) {
		h.Pair[0].In(func() {
			for _, ip := range Addresses(netip.MustParseAddr(at)) {
				list = append(list, ip.String())
			}
		})
		return list
	}
	same := func(at string, first string, want ...string) {
		t.Helper()
		got := list(at)
		if got[0] != first {
			t.Errorf("%s: %s is the first of %v, not %s", at, got[0], got, first)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", at, got, want)
		}
	}
	four := []string{"10.77.0.1", "10.77.0.50", "10.78.0.1", "127.0.0.1"}
	all := append(slices.Clone(four), "fd77::1", "fd77::50", "fd78::1", "::1")
	same("::", "10.77.0.1", all...)
	same("0.0.0.0", "10.77.0.1", four...)
	same("10.77.0.50", "10.77.0.50", "10.77.0.50")
	h.Pair[0].Route(t, "dgp1", netip.MustParseAddr("10.78.0.2"))
	same("::", "10.78.0.1", all...)
	h.Pair[0].SetUp(t, false)
	same("0.0.0.0", "10.78.0.1", "10.78.0.1", "127.0.0.1")
	lonely := netns.New(t)
	lonely.In(func() {
		if got := Addresses(netip.IPv6Unspecified())[0]; got.String() != "127.0.0.1" {
			t.Errorf("without another address: %v", got)
		}
	})
}
