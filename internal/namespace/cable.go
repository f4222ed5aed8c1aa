package namespace

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Device is the name of the network device in namespaces that are joined in pairs.
const Device = "dgp0"

// IPv4 and IPv6 return the address of a side, 0 or 1.
func IPv4(side int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(1 + side)}) }

// IPv6 returns the address of a side.
func IPv6(side int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 15: byte(1 + side)})
}

// FirstNumber is that of a device. One whose number is that of its other end looks to the
// kernel like one without other end, whose carrier it attends to once per second only.
const FirstNumber = 100

// Join makes a pair of devices, each in its namespace, and brings them up. That of a gets the
// number.
func Join(a, b *Namespace, nameA, nameB string, mtu, number int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = nameA, mtu
	attrs.Index = number
	veth := &netlink.Veth{
		LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(int(b.Handle)), PeerMTU: uint32(mtu),
	}
	if err := a.Links.LinkAdd(veth); err != nil {
		return fmt.Errorf("make devices %s and %s: %w", nameA, nameB, err)
	}
	return errors.Join(a.BringUp(nameA, true), b.BringUp(nameB, true), a.awaitCarrier(nameA), b.awaitCarrier(nameB))
}

// awaitCarrier waits until what is sent through the device is not thrown away
// any more.
func (n *Namespace) awaitCarrier(device string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		link, err := n.Links.LinkByName(device)
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

// AddSide gives the device the addresses of a side.
func (n *Namespace) AddSide(side int) error {
	return errors.Join(n.AddAddress(Device, IPv4(side)), n.AddAddress(Device, IPv6(side)))
}

// AddAddress gives a device an address, of a network as usual. It returns when it can be used.
func (n *Namespace) AddAddress(device string, ip netip.Addr) error {
	link, err := n.Links.LinkByName(device)
	if err != nil {
		return err
	}
	a := &netlink.Addr{IPNet: Network(ip, UsualBits(ip))}
	if ip.Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	if err := n.Links.AddrAdd(link, a); err != nil {
		return fmt.Errorf("give %s the address %v: %w", device, ip, err)
	}
	if ip.Is4() {
		return nil
	}
	return n.awaitNeighbours(ip)
}

// UsualBits returns how long the prefix of a network is: 256 IPv4 or 2^64 IPv6 addresses.
func UsualBits(ip netip.Addr) int {
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

// Network returns an address with the network that it is in.
func Network(ip netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(bits, ip.BitLen())}
}
