package netns

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Device is the name of the network device in every namespace of a [Pair].
const Device = "dgp0"

// Pair is two namespaces whose devices are joined.
type Pair [2]*Namespace

// IPv4 and IPv6 return the address of a side, 0 or 1.
func IPv4(side int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(1 + side)}) }

// IPv6 returns the address of a side.
func IPv6(side int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 15: byte(1 + side)})
}

// Nobody returns one of the addresses that look like neighbours of a side's and
// belong to nobody.
func Nobody(like netip.Addr, n int) netip.Addr {
	b := like.AsSlice()
	b[len(b)-1] = byte(100 + n)
	ip, _ := netip.AddrFromSlice(b)
	return ip
}

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
	err = join(p[0], p[1], Device, Device, mtu, firstNumber)
	for side := 0; side < len(p) && err == nil; side++ {
		err = p[side].address(side)
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
	link, err := p[0].nl.LinkByName(Device)
	if err == nil {
		err = p[0].nl.LinkDel(link)
	}
	if err == nil {
		err = join(p[0], p[1], Device, Device, mtu, link.Attrs().Index+firstNumber)
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
	if err := join(p[0], p[1], device, device, mtu, firstNumber+1); err != nil {
		t.Fatal(err)
	}
	return device
}

// firstNumber is that of a device. One whose number is that of its other end looks to the
// kernel like one without other end, whose carrier it attends to once per second only.
const firstNumber = 100

// join makes a pair of devices, each in its namespace, and brings them up. That of a gets the
// number.
func join(a, b *Namespace, nameA, nameB string, mtu, number int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = nameA, mtu
	attrs.Index = number
	veth := &netlink.Veth{
		LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(int(b.handle)), PeerMTU: uint32(mtu),
	}
	if err := a.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("make devices %s and %s: %w", nameA, nameB, err)
	}
	return errors.Join(a.setUp(nameA, true), b.setUp(nameB, true), a.awaitCarrier(nameA), b.awaitCarrier(nameB))
}

// awaitCarrier waits until what is sent through the device is not thrown away
// any more.
func (n *Namespace) awaitCarrier(device string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		link, err := n.nl.LinkByName(device)
		if err != nil {
			return err
		}
		if link.Attrs().OperState == netlink.OperUp {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("device %s is %v", device, link.Attrs().OperState)
		}
	}
}

// address gives the device its addresses.
func (n *Namespace) address(side int) error {
	return errors.Join(n.addAddress(Device, IPv4(side)), n.addAddress(Device, IPv6(side)))
}

// Give gives a device another address, of a network of 256 IPv4 or 2^64 IPv6 addresses. One of
// IPv6 is used at once, without asking around for a second or two whether someone else has it.
func (n *Namespace) Give(t testing.TB, device string, ip netip.Addr) {
	t.Helper()
	if err := n.addAddress(device, ip); err != nil {
		t.Fatal(err)
	}
}

// Take takes an address away from a device.
func (n *Namespace) Take(t testing.TB, device string, ip netip.Addr) {
	t.Helper()
	link, err := n.nl.LinkByName(device)
	if err == nil {
		err = n.nl.AddrDel(link, &netlink.Addr{IPNet: network(ip, usualBits(ip))})
	}
	if err != nil {
		t.Fatalf("take the address %v away from %s: %v", ip, device, err)
	}
}

func (n *Namespace) addAddress(device string, ip netip.Addr) error {
	link, err := n.nl.LinkByName(device)
	if err != nil {
		return err
	}
	a := &netlink.Addr{IPNet: network(ip, usualBits(ip))}
	if ip.Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	if err := n.nl.AddrAdd(link, a); err != nil {
		return fmt.Errorf("give %s the address %v: %w", device, ip, err)
	}
	if ip.Is4() {
		return nil
	}
	return n.awaitNeighbours(ip)
}

func usualBits(ip netip.Addr) int {
	if ip.Is4() {
		return 24
	}
	return 64
}

// awaitNeighbours waits until the kernel answers to who asks for the address. It
// joins the group where neighbours ask a little after the address can be used,
// and they would ask again only after a second.
func (n *Namespace) awaitNeighbours(ip netip.Addr) error {
	b := ip.As16()
	group := fmt.Sprintf("ff0200000000000000000001ff%x", b[13:])
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		var groups []byte
		var err error
		n.In(func() { groups, err = os.ReadFile("/proc/thread-self/net/igmp6") })
		if err != nil || bytes.Contains(groups, []byte(group)) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nobody answers for %v", ip)
		}
	}
}

func network(ip netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(bits, ip.BitLen())}
}

// SetUp brings the device up or down. Down, it loses its IPv6 addresses;
// see KeepAddresses.
func (n *Namespace) SetUp(t testing.TB, up bool) {
	t.Helper()
	if err := n.setUp(Device, up); err != nil {
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
	link, err := n.nl.LinkByName(Device)
	if err == nil {
		err = n.nl.LinkSetMTU(link, mtu)
	}
	if err != nil {
		t.Fatalf("set the MTU to %d: %v", mtu, err)
	}
}

// SetRouteMTU has the routing table say that the way to the other side carries
// that much only.
func (n *Namespace) SetRouteMTU(t testing.TB, to netip.Addr, mtu int) {
	t.Helper()
	link, err := n.nl.LinkByName(Device)
	if err == nil {
		err = n.nl.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: network(to, to.BitLen()), MTU: mtu})
	}
	if err != nil {
		t.Fatalf("give the route to %v the MTU %d: %v", to, mtu, err)
	}
}

// Route makes the way through that router, by that device, the default route.
func (n *Namespace) Route(t testing.TB, device string, router netip.Addr) {
	t.Helper()
	link, err := n.nl.LinkByName(device)
	if err == nil {
		everywhere := network(netip.IPv4Unspecified(), 0)
		if router.Is6() {
			everywhere = network(netip.IPv6Unspecified(), 0)
		}
		err = n.nl.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: everywhere, Gw: router.AsSlice()})
	}
	if err != nil {
		t.Fatalf("make %v the router: %v", router, err)
	}
}

// BlackHole has what is sent to an address lost, with an error for who sends.
func (n *Namespace) BlackHole(t testing.TB, to netip.Addr) {
	t.Helper()
	if err := n.nl.RouteReplace(&netlink.Route{Dst: network(to, to.BitLen()), Type: unix.RTN_BLACKHOLE}); err != nil {
		t.Fatalf("make the way to %v a black hole: %v", to, err)
	}
}

// SetRate lets the device send no more than that many bytes per second, with a
// queue of that many bytes in front of it; what does not fit is lost.
func (n *Namespace) SetRate(t testing.TB, rate, queue int) {
	t.Helper()
	link, err := n.nl.LinkByName(Device)
	if err != nil {
		t.Fatal(err)
	}
	const burst = 1 << 14 // some frames; the kernel cuts what is longer
	err = n.nl.QdiscReplace(&netlink.Tbf{
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
	link, err := n.nl.LinkByName(Device)
	if err == nil {
		err = errors.Join(n.nl.LinkSetDown(link), n.nl.LinkSetName(link, name), n.nl.LinkSetHardwareAddr(link, mac), n.nl.LinkSetUp(link))
	}
	if err != nil {
		t.Fatalf("call the device %s: %v", name, err)
	}
}
