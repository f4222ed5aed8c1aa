package ether_test

import (
	"bytes"
	"errors"
	"net"
	"testing"

	"github.com/mdlayher/ethernet"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// onlyMarker sends a last frame and fails if others came before it.
func onlyMarker(t *testing.T, from, at *ether.Conn, id uint16) {
	t.Helper()
	marker := frame(id, 77, 200)
	send(t, from, at.LocalAddr(), marker)
	if got := collect(t, at, 1)[0]; !bytes.Equal(got.Data, marker) {
		t.Errorf("received %.40x", got.Data)
	}
}

// TestSharedInterface: several endpoints, each of which gets its own frames only.
func TestSharedInterface(t *testing.T) {
	cable(t, 1500)
	a := listen(t, ether.Config{Interface: "d0"})
	one, two := listen(t, ether.Config{Interface: "d1", ID: 0x0201}), listen(t, ether.Config{Interface: "d1", ID: 0x0102})
	all := listen(t, ether.Config{Interface: "d1"})
	other := listen(t, ether.Config{Interface: "d1", ID: 0x0201, EtherType: 0x88B5})
	for i := range byte(50) {
		send(t, a, one.LocalAddr(), frame(0x0201, 60, i), frame(0x0102, 60, i), frame(3, 60, i))
	}
	for id, c := range map[uint16]*ether.Conn{0x0201: one, 0x0102: two} {
		for i, d := range collect(t, c, 50) {
			if !bytes.Equal(d.Data, frame(id, 60, byte(i))) {
				t.Fatalf("%#04x: received % x", id, d.Data[:4])
			}
		}
		onlyMarker(t, a, c, id)
	}
	collect(t, all, 152)
	foreign := listen(t, ether.Config{Interface: "d0", EtherType: 0x88B5})
	onlyMarker(t, foreign, other, 0x0201)
}

// TestOutgoingIgnored: what leaves an interface does not arrive there.
func TestOutgoingIgnored(t *testing.T) {
	cable(t, 1500)
	a, b := listen(t, ether.Config{Interface: "d0", ID: 1}), listen(t, ether.Config{Interface: "d1", ID: 1})
	neighbour := listen(t, ether.Config{Interface: "d0", ID: 2})
	for range 10 {
		send(t, a, b.LocalAddr(), frame(1, 60, 0))
		send(t, neighbour, b.LocalAddr(), frame(1, 60, 0))
	}
	collect(t, b, 20)
	onlyMarker(t, b, a, 1)
	if s := a.Stats(); s != (transport.Stats{}) {
		t.Errorf("%+v", s)
	}
}

// TestForeignFrames: what is not for us, or is no frame, is not delivered.
func TestForeignFrames(t *testing.T) {
	for _, id := range []uint16{0, 1} {
		t.Run("", func(t *testing.T) {
			cable(t, 1500)
			a, b := listen(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", ID: id})
			in, own := inject(t, "d0"), hardware(b)
			stranger := net.HardwareAddr{2, 0, 0, 0, 0, 99}
			group := net.HardwareAddr{1, 0, 0x5e, 0, 0, 1}
			data := frame(1, 60, 0)
			for _, f := range []ethernet.Frame{
				{Destination: own, EtherType: 0xF040, Payload: data},
				{Destination: own, EtherType: ethernet.EtherTypeIPv4, Payload: data},
				{Destination: own, EtherType: 0xF042},
				{Destination: stranger, EtherType: 0xF042, Payload: data},
				{Destination: ethernet.Broadcast, EtherType: 0xF042, Payload: data},
				{Destination: group, EtherType: 0xF042, Payload: data},
				{Destination: own, EtherType: 0xF042, Payload: data, VLAN: &ethernet.VLAN{ID: 5}},
			} {
				in.send(t, &f)
			}
			onlyMarker(t, a, b, 1)
			if s := b.Stats(); s.Foreign > 1 || s.Truncated != 0 || s.KernelDrops != 0 {
				t.Errorf("%+v", s)
			}
			if id != 0 {
				// Too short for an id.
				in.send(t, &ethernet.Frame{Destination: own, EtherType: 0xF042, Payload: data[:1]})
				onlyMarker(t, a, b, 1)
			}
			// Only a priority, no VLAN: ours.
			in.send(t, &ethernet.Frame{Destination: own, EtherType: 0xF042, Payload: data, VLAN: &ethernet.VLAN{Priority: 3}})
			if got := collect(t, b, 1)[0]; !bytes.Equal(got.Data, data) {
				t.Errorf("received %.40x", got.Data)
			}
			// Link padding stays.
			in.send(t, &ethernet.Frame{Destination: own, EtherType: 0xF042, Payload: append(frame(1, 10, 0), make([]byte, 36)...)})
			if got := collect(t, b, 1)[0]; len(got.Data) != 46 {
				t.Errorf("received %d bytes", len(got.Data))
			}
		})
	}
}

// TestStacked: the interface on top of another has its frames, and its parent,
// to whom the kernel shows them too, does not.
func TestStacked(t *testing.T) {
	for kind, over := range map[string]func(netlink.LinkAttrs) netlink.Link{
		"vlan": func(a netlink.LinkAttrs) netlink.Link { return &netlink.Vlan{LinkAttrs: a, VlanId: 5} },
		"macvlan": func(a netlink.LinkAttrs) netlink.Link {
			return &netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE}
		},
	} {
		t.Run(kind, func(t *testing.T) {
			cable(t, 1500)
			for _, name := range []string{"d0", "d1"} {
				err := netlink.LinkAdd(over(netlink.LinkAttrs{Name: name + ".5", ParentIndex: link(t, name).Attrs().Index}))
				if kind == "vlan" && errors.Is(err, unix.EOPNOTSUPP) {
					// CONFIG_VLAN_8021Q. To the filter a macvlan is the same: it comes
					// over another interface than ours; tags are TestTagged's.
					t.Log("this kernel has no VLAN interfaces")
					return
				}
				check(t, err)
				up(t, name+".5")
			}
			a, b := listen(t, ether.Config{Interface: "d0", ID: 1}), listen(t, ether.Config{Interface: "d1", ID: 1})
			a5, b5 := listen(t, ether.Config{Interface: "d0.5", ID: 1}), listen(t, ether.Config{Interface: "d1.5", ID: 1})
			for range 10 {
				send(t, a5, b5.LocalAddr(), frame(1, 1500, 0))
			}
			collect(t, b5, 10)
			onlyMarker(t, a, b, 1)
			onlyMarker(t, a5, b5, 1)
			if s := b.Stats(); s != (transport.Stats{}) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestTruncated: a frame that is longer than the interface carries is counted,
// not returned.
func TestTruncated(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		check(t, netlink.LinkSetMTU(link(t, "d0"), 9000))
		a, b := listen(t, ether.Config{Interface: "d0", NoXDP: true}), listen(t, ether.Config{Interface: "d1", NoRing: !ring})
		// An interface takes a VLAN's tag more than its MTU.
		send(t, a, b.LocalAddr(), frame(1, 1500, 0), frame(1, 1503, 0), frame(1, 1500, 1))
		for i, d := range collect(t, b, 2) {
			if !bytes.Equal(d.Data, frame(1, 1500, byte(i))) {
				t.Errorf("received %d bytes", len(d.Data))
			}
		}
		if s := b.Stats(); s.Truncated != 1 {
			t.Errorf("%+v", s)
		}
		// The other way round the kernel refuses.
		check(t, netlink.LinkSetMTU(link(t, "d0"), 1000))
		send(t, a, b.LocalAddr(), frame(1, 1500, 0), frame(1, 900, 0))
		collect(t, b, 1)
		if s := a.Stats(); s.SendDrops != 1 {
			t.Errorf("%+v", s)
		}
	})
}
