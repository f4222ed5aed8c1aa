package netns

import (
	"errors"
	"net/netip"
	"os"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/namespace"
)

// leastIPv6 is what a cable carries at least that has IPv6 (RFC 8200 section 5).
const leastIPv6 = 1280

// Routed is two namespaces, each with a cable to a router of its own, and a cable between the
// routers.
type Routed struct {
	Pair    Pair // the ends
	routers Pair
}

// cable returns the address of a side of one of the three networks.
func cable(n, side int, v6 bool) netip.Addr {
	if v6 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x78, 3: byte(n), 15: byte(1 + side)})
	}
	return netip.AddrFrom4([4]byte{10, 78, byte(n), byte(1 + side)})
}

// NewRouted makes that network, until the test ends. The routers pass on what the cable between
// them carries, and tell who sends longer packets.
func NewRouted(t testing.TB, mtu, between int) *Routed {
	t.Helper()
	r := &Routed{}
	for side := range r.Pair {
		r.Pair[side], r.routers[side] = New(t), New(t)
		router := r.routers[side]
		// A router asks for no neighbour while it still asks whether someone else has its own
		// link-local address, a second or two.
		for _, n := range []*Namespace{r.Pair[side], router} {
			n.In(func() {
				if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0); err != nil {
					t.Fatal(err)
				}
			})
		}
		if err := namespace.Join(r.Pair[side].Namespace, router.Namespace, Device, "end", mtu, namespace.FirstNumber+side); err != nil {
			t.Fatal(err)
		}
		router.In(func() {
			err := errors.Join(
				os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0),
				os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := namespace.Join(r.routers[0].Namespace, r.routers[1].Namespace, "far", "far", between, namespace.FirstNumber+2); err != nil {
		t.Fatal(err)
	}
	for side := range r.Pair {
		for _, v6 := range []bool{false, true} {
			if v6 && between < leastIPv6 {
				continue
			}
			end, router := r.Pair[side], r.routers[side]
			end.Give(t, Device, r.Addr(side, v6))
			router.Give(t, "end", cable(side, 1, v6))
			router.Give(t, "far", cable(2, side, v6))
			end.Route(t, Device, cable(side, 1, v6))
			router.Route(t, "far", cable(2, 1-side, v6))
		}
	}
	return r
}

// Addr returns the address of an end.
func (r *Routed) Addr(side int, v6 bool) netip.Addr { return cable(side, 0, v6) }

// Narrow changes what the cable between the routers carries.
func (r *Routed) Narrow(t testing.TB, mtu int) {
	t.Helper()
	for _, router := range r.routers {
		link, err := router.Links.LinkByName("far")
		if err == nil {
			err = router.Links.LinkSetMTU(link, mtu)
		}
		if err != nil {
			t.Fatalf("let the cable between the routers carry %d bytes: %v", mtu, err)
		}
	}
}

// LoseTooBig has what says that a packet was too big lost on its way to the namespace: ICMP of IPv4,
// and of IPv6 that of this type.
func (n *Namespace) LoseTooBig(t testing.TB) *Filter {
	t.Helper()
	const icmpAt, tooBig = 40, 2 // behind a header of IPv6 (RFC 4443 section 3.2)
	f := n.newFilter(t, nftables.TableFamilyNetdev, ingress())
	f.drop(protocol(unix.ETH_P_IP, 9, unix.IPPROTO_ICMP))
	f.drop(append(protocol(unix.ETH_P_IPV6, 6, unix.IPPROTO_ICMPV6), protocol(unix.ETH_P_IPV6, icmpAt, tooBig)...))
	f.flush()
	return f
}
