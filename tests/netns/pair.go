package netns

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

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

// NewPair joins two new namespaces by a cable, until the test ends.
func NewPair(t testing.TB, mtu int) Pair {
	t.Helper()
	p := Pair{New(t), New(t)}
	if err := join(p[0], p[1], Device, Device, mtu); err != nil {
		t.Fatal(err)
	}
	for side, n := range p {
		if err := n.address(side); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// join makes a pair of devices, each in its namespace, and brings them up.
func join(a, b *Namespace, nameA, nameB string, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = nameA, mtu
	veth := &netlink.Veth{
		LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(int(b.handle)), PeerMTU: uint32(mtu),
	}
	if err := a.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("make devices %s and %s: %w", nameA, nameB, err)
	}
	if err := a.setUp(nameA, true); err != nil {
		return err
	}
	return b.setUp(nameB, true)
}

// address gives the device its addresses. That of IPv6 is used at once, without
// asking around for a second or two whether someone else has it.
func (n *Namespace) address(side int) error {
	link, err := n.nl.LinkByName(Device)
	if err != nil {
		return err
	}
	for _, a := range []netlink.Addr{
		{IPNet: network(IPv4(side), 24)},
		{IPNet: network(IPv6(side), 64), Flags: unix.IFA_F_NODAD},
	} {
		if err := n.nl.AddrAdd(link, &a); err != nil {
			return fmt.Errorf("give %s the address %v: %w", Device, a.IPNet, err)
		}
	}
	return nil
}

func network(ip netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(bits, ip.BitLen())}
}

// SetUp brings the device up or down. Down, it loses its IPv6 addresses.
func (n *Namespace) SetUp(t testing.TB, up bool) {
	t.Helper()
	if err := n.setUp(Device, up); err != nil {
		t.Fatalf("bring the device up (%v): %v", up, err)
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

// SetRate lets the device send no more than that many bytes per second, with a
// queue of that many bytes in front of it; what does not fit is lost.
func (n *Namespace) SetRate(t testing.TB, rate, queue int) {
	t.Helper()
	link, err := n.nl.LinkByName(Device)
	if err != nil {
		t.Fatal(err)
	}
	const burst = 1 << 17
	err = n.nl.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       uint64(rate), Limit: uint32(queue), Buffer: uint32(float64(netlink.TickInUsec()) * 1e6 * burst / float64(rate)),
	})
	if err != nil {
		t.Fatalf("limit the device to %d bytes per second: %v", rate, err)
	}
}
