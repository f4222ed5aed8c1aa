package rtnl_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport/internal/rtnl"
)

func open(t *testing.T, ns *netns.Namespace) (s *rtnl.Socket) {
	t.Helper()
	var err error
	ns.In(func() { s, err = rtnl.Open() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func way(t *testing.T, s *rtnl.Socket, from, to netip.Addr) rtnl.Way {
	t.Helper()
	w, err := s.WayTo(from, to)
	if err != nil {
		t.Fatalf("%v to %v: %v", from, to, err)
	}
	return w
}

func TestWay(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	s := open(t, pair[0])
	for _, side := range []func(int) netip.Addr{netns.IPv4, netns.IPv6} {
		us, peer := side(0), side(1)
		if w := way(t, s, us, peer); w.MTU != 1500 || w.Next != peer || w.Interface == 0 {
			t.Errorf("to a neighbour: %+v", w)
		}
		pair[0].SetRouteMTU(t, peer, 1400)
		if w := way(t, s, us, peer); w.MTU != 1400 {
			t.Errorf("with a narrower route: %+v", w)
		}
		if w := way(t, s, us, us); w.MTU < 65535 || s.Neighbour(w) != rtnl.Found {
			t.Errorf("to itself: %+v, %v", w, s.Neighbour(w))
		}
		far := netip.MustParsePrefix("198.51.100.0/24")
		if peer.Is6() {
			far = netip.MustParsePrefix("2001:db8::/64")
		}
		pair[0].In(func() {
			link, err := netlink.LinkByName(netns.Device)
			if err != nil {
				t.Fatal(err)
			}
			dst := &net.IPNet{IP: far.Addr().AsSlice(), Mask: net.CIDRMask(far.Bits(), peer.BitLen())}
			if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Gw: peer.AsSlice()}); err != nil {
				t.Fatal(err)
			}
		})
		if w := way(t, s, us, far.Addr().Next()); w.MTU != 1500 || w.Next != peer {
			t.Errorf("through a router: %+v", w)
		}
		for to, want := range map[netip.Addr]netip.Addr{peer: us, us: us, far.Addr().Next(): us} {
			if from, ifi, err := s.SourceTo(to); from != want || ifi == 0 || err != nil {
				t.Errorf("to %v the kernel sends from %v by %d: %v", to, from, ifi, err)
			}
		}
		for ip, want := range map[netip.Addr]bool{us: true, peer: false, far.Addr().Next(): false, netip.MustParseAddr("203.0.113.1"): false} {
			if is, err := s.IsLocal(ip); is != want || err != nil {
				t.Errorf("%v is one of ours: %v, %v", ip, is, err)
			}
		}
		if w := way(t, s, netip.Addr{}, peer); w.MTU != 1400 {
			t.Errorf("from no address: %+v", w)
		}
		if _, err := s.WayTo(us, peer.Next().Next().WithZone("none0")); peer.Is6() && err == nil {
			t.Error("a way through an interface that does not exist")
		}
	}
	if w, err := s.WayTo(netns.IPv4(0), netip.MustParseAddr("203.0.113.1")); err == nil {
		t.Errorf("to nowhere: %+v", w)
	}
	for _, nobody := range []string{"203.0.113.1", "2001:db8:1::1", "10.77.0.255", "255.255.255.255", "224.0.0.1"} {
		if from, _, err := s.SourceTo(netip.MustParseAddr(nobody)); err == nil {
			t.Errorf("to %s the kernel sends from %v", nobody, from)
		}
	}
}

// TestNeighbour: what the kernel knows follows what is sent.
func TestNeighbour(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	s := open(t, pair[0])
	for _, side := range []func(int) netip.Addr{netns.IPv4, netns.IPv6} {
		us := side(0)
		for _, c := range []struct {
			to    netip.Addr
			after rtnl.Neighbour
		}{{side(1), rtnl.Found}, {netns.Nobody(us, 0), rtnl.Sought}} {
			w := way(t, s, us, c.to)
			if got := s.Neighbour(w); got != rtnl.Unknown {
				t.Errorf("%v before anything was sent: %v", c.to, got)
			}
			pair[0].In(func() {
				conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.to, 9)))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := conn.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
			})
			for i := 0; s.Neighbour(w) != c.after; i++ {
				if i == 500 {
					t.Fatalf("%v after something was sent: %v", c.to, s.Neighbour(w))
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
}

func TestClosed(t *testing.T) {
	s, err := rtnl.Open()
	if err != nil {
		t.Fatal(err)
	}
	home := netip.MustParseAddr("127.0.0.1")
	if w := way(t, s, home, home); w.MTU == 0 {
		t.Errorf("%+v", w)
	}
	s.Close()
	s.Close()
	if _, err := s.WayTo(home, home); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestLink: an interface is found by its name and by its number, as it is now.
func TestLink(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	s := open(t, pair[0])
	named, err := s.LinkByName(netns.Device)
	if err != nil || !named.Up || len(named.Address) != 6 {
		t.Fatalf("%+v, %v", named, err)
	}
	pair[0].In(func() {
		link, err := netlink.LinkByName(netns.Device)
		if err != nil || link.Attrs().Index != named.Index {
			t.Fatalf("%+v, %v", link, err)
		}
		if err := errors.Join(netlink.LinkSetDown(link), netlink.LinkSetName(link, "other")); err != nil {
			t.Fatal(err)
		}
	})
	if l, err := s.LinkByIndex(named.Index); err != nil || l.Up || l.Index != named.Index || !bytes.Equal(l.Address, named.Address) {
		t.Errorf("renamed: %+v, %v", l, err)
	}
	if l, err := s.LinkByName(netns.Device); !errors.Is(err, unix.ENODEV) {
		t.Errorf("by its old name: %+v, %v", l, err)
	}
	if l, err := s.LinkByIndex(named.Index + 1000); !errors.Is(err, unix.ENODEV) {
		t.Errorf("by a number that nobody has: %+v, %v", l, err)
	}
}
