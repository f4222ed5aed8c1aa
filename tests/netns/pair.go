package netns

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/namespace"
)

// Device is the name of the network device in every namespace of a [Pair].
const Device = namespace.Device

// Pair is two namespaces whose devices are joined.
type Pair [2]*Namespace

// IPv4 and IPv6 return the address of a side, 0 or 1.
func IPv4(side int) netip.Addr { return namespace.IPv4(side) }

// IPv6 returns the address of a side.
func IPv6(side int) netip.Addr { return namespace.IPv6(side) }

// Nobody returns one of the addresses that look like neighbours of a side's and
// belong to nobody.
func Nobody(like netip.Addr, n int) netip.Addr {
	b := like.AsSlice()
	b[len(b)-1] = byte(100 + n)
	ip, _ := netip.AddrFromSlice(b)
	return ip
}

func pairOf(n [2]*namespace.Namespace) Pair { return Pair{{n[0]}, {n[1]}} }

// NewPair joins two new namespaces by a cable, until the test ends.
func NewPair(t testing.TB, mtu int) Pair {
	t.Helper()
	p, err := OpenPair(mtu)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// OpenPair joins two new namespaces by a cable, until the pair is closed.
func OpenPair(mtu int) (p Pair, err error) {
	for side := range p {
		if p[side], err = Open(); err != nil {
			p.Close()
			return p, err
		}
	}
	err = namespace.Join(p[0].Namespace, p[1].Namespace, Device, Device, mtu, namespace.FirstNumber)
	for side := 0; side < len(p) && err == nil; side++ {
		err = p[side].AddSide(side)
	}
	if err != nil {
		p.Close()
	}
	return p, err
}

// Close lets go of both.
func (p Pair) Close() {
	for _, n := range p {
		if n != nil {
			n.Close()
		}
	}
}

// Rejoin makes the devices again, under the same name and with other numbers, and without addresses.
func (p Pair) Rejoin(t testing.TB, mtu int) {
	t.Helper()
	link, err := p[0].Links.LinkByName(Device)
	if err == nil {
		err = p[0].Links.LinkDel(link)
	}
	if err == nil {
		err = namespace.Join(p[0].Namespace, p[1].Namespace, Device, Device, mtu, link.Attrs().Index+namespace.FirstNumber)
	}
	if err != nil {
		t.Fatalf("make the devices again: %v", err)
	}
}

// Join joins the namespaces by another cable, to devices without addresses, and returns
// their name.
func (p Pair) Join(t testing.TB, mtu int) (device string) {
	t.Helper()
	device = "dgp1"
	if err := namespace.Join(p[0].Namespace, p[1].Namespace, device, device, mtu, namespace.FirstNumber+1); err != nil {
		t.Fatal(err)
	}
	return device
}

// Give gives a device another address, of a network of 256 IPv4 or 2^64 IPv6 addresses. One of
// IPv6 is used at once, without asking around for a second or two whether someone else has it.
func (n *Namespace) Give(t testing.TB, device string, ip netip.Addr) {
	t.Helper()
	if err := n.AddAddress(device, ip); err != nil {
		t.Fatal(err)
	}
}

// Take takes an address away from a device.
func (n *Namespace) Take(t testing.TB, device string, ip netip.Addr) {
	t.Helper()
	link, err := n.Links.LinkByName(device)
	if err == nil {
		err = n.Links.AddrDel(link, &netlink.Addr{IPNet: namespace.Network(ip, namespace.UsualBits(ip))})
	}
	if err != nil {
		t.Fatalf("take the address %v away from %s: %v", ip, device, err)
	}
}

// SetUp brings the device up or down. Down, it loses its IPv6 addresses;
// see KeepAddresses.
func (n *Namespace) SetUp(t testing.TB, up bool) {
	t.Helper()
	if err := n.BringUp(Device, up); err != nil {
		t.Fatalf("bring the device up (%v): %v", up, err)
	}
}

// KeepAddresses lets the device keep its IPv6 addresses when it goes down.
func (n *Namespace) KeepAddresses(t testing.TB) {
	t.Helper()
	var err error
	n.In(func() { err = os.WriteFile("/proc/sys/net/ipv6/conf/"+Device+"/keep_addr_on_down", []byte("1"), 0) })
	if err != nil {
		t.Fatal(err)
	}
}

// SetMTU changes the device's MTU.
func (n *Namespace) SetMTU(t testing.TB, mtu int) {
	t.Helper()
	link, err := n.Links.LinkByName(Device)
	if err == nil {
		err = n.Links.LinkSetMTU(link, mtu)
	}
	if err != nil {
		t.Fatalf("set the MTU to %d: %v", mtu, err)
	}
}

// SetRouteMTU has the routing table say that the way to the other side carries
// that much only.
func (n *Namespace) SetRouteMTU(t testing.TB, to netip.Addr, mtu int) {
	t.Helper()
	link, err := n.Links.LinkByName(Device)
	if err == nil {
		err = n.Links.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: namespace.Network(to, to.BitLen()), MTU: mtu})
	}
	if err != nil {
		t.Fatalf("give the route to %v the MTU %d: %v", to, mtu, err)
	}
}

// Route makes the way through that router, by that device, the default route.
func (n *Namespace) Route(t testing.TB, device string, router netip.Addr) {
	t.Helper()
	link, err := n.Links.LinkByName(device)
	if err == nil {
		everywhere := namespace.Network(netip.IPv4Unspecified(), 0)
		if router.Is6() {
			everywhere = namespace.Network(netip.IPv6Unspecified(), 0)
		}
		err = n.Links.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: everywhere, Gw: router.AsSlice()})
	}
	if err != nil {
		t.Fatalf("make %v the router: %v", router, err)
	}
}

// BlackHole has what is sent to an address lost, with an error for who sends.
func (n *Namespace) BlackHole(t testing.TB, to netip.Addr) {
	t.Helper()
	if err := n.Links.RouteReplace(&netlink.Route{Dst: namespace.Network(to, to.BitLen()), Type: unix.RTN_BLACKHOLE}); err != nil {
		t.Fatalf("make the way to %v a black hole: %v", to, err)
	}
}

// SetRate lets the device send no more than that many bytes per second, with a
// queue of that many bytes in front of it; what does not fit is lost.
func (n *Namespace) SetRate(t testing.TB, rate, queue int) {
	t.Helper()
	link, err := n.Links.LinkByName(Device)
	if err != nil {
		t.Fatal(err)
	}
	const burst = 1 << 14 // some frames; the kernel cuts what is longer
	err = n.Links.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       uint64(rate), Limit: uint32(queue), Buffer: uint32(float64(netlink.TickInUsec()) * 1e6 * burst / float64(rate)),
	})
	if err != nil {
		t.Fatalf("limit the device to %d bytes per second: %v", rate, err)
	}
}

// Rename gives the device another name and MAC address. It loses its IPv6 addresses, and
// what else knows it by [Device] does not find it any more.
func (n *Namespace) Rename(t testing.TB, name string, mac net.HardwareAddr) {
	t.Helper()
	link, err := n.Links.LinkByName(Device)
	if err == nil {
		err = errors.Join(n.Links.LinkSetDown(link), n.Links.LinkSetName(link, name), n.Links.LinkSetHardwareAddr(link, mac), n.Links.LinkSetUp(link))
	}
	if err != nil {
		t.Fatalf("call the device %s: %v", name, err)
	}
}
