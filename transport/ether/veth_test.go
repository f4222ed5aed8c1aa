package ether_test

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/mdlayher/ethernet"
	"github.com/mdlayher/packet"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	testnet "github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cable joins the interfaces d0 and d1 in a fresh network namespace. The test's
// goroutine, and no other, is in there; sockets stay where they were opened.
func cable(t testing.TB, mtu int) {
	testnet.Require(t)
	// Never unlocked: the thread ends with the test, and the namespace with the
	// last of its sockets.
	runtime.LockOSThread()
	ns, err := netns.New()
	check(t, err)
	ns.Close()
	check(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "d0", MTU: mtu}, PeerName: "d1", PeerMTU: uint32(mtu)}))
	up(t, "d0", "d1")
}

func link(t testing.TB, name string) netlink.Link {
	l, err := netlink.LinkByName(name)
	check(t, err)
	return l
}

// up waits: the kernel starts queues a moment after it was told to.
func up(t testing.TB, names ...string) {
	for _, name := range names {
		check(t, netlink.LinkSetUp(link(t, name)))
	}
	for _, name := range names {
		for i := 0; link(t, name).Attrs().OperState != netlink.OperUp; i++ {
			if i == 5000 {
				t.Fatalf("%s does not come up", name)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func down(t testing.TB, name string) { check(t, netlink.LinkSetDown(link(t, name))) }

func listen(t testing.TB, cfg ether.Config) *ether.Conn {
	c, err := ether.Listen(cfg)
	check(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// frame returns a frame for an endpoint id, of that many bytes.
func frame(id uint16, size int, fill byte) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = fill + byte(i*7)
	}
	b[0], b[1] = byte(id), byte(id>>8)
	return b
}

func send(t testing.TB, from *ether.Conn, to transport.Addr, frames ...[]byte) {
	t.Helper()
	var batch []transport.Outgoing
	for _, f := range frames {
		half, most := len(f)/2, len(f)*3/4 // the rest lies elsewhere, in two places
		batch = append(batch, transport.Outgoing{To: new(to), Buf: f[:half:half], Rest: bytes.Clone(f[half:most]), Tail: bytes.Clone(f[most:])})
	}
	n, err := from.Send(batch)
	check(t, err)
	if n != len(batch) {
		t.Fatalf("sent %d of %d", n, len(batch))
	}
}

// collect receives n frames, or fails after a while.
func collect(t testing.TB, c *ether.Conn, n int) (got []transport.Datagram) {
	t.Helper()
	in := make([]transport.Datagram, 16)
	for deadline := time.Now().Add(5 * time.Second); len(got) < n; {
		k, err := c.Recv(in, 0)
		check(t, err)
		for _, d := range in[:k] {
			d.Data = append([]byte(nil), d.Data...)
			got = append(got, d)
		}
		if k == 0 {
			if time.Now().After(deadline) {
				t.Fatalf("received %d frames, want %d; %+v", len(got), n, c.Stats())
			}
			time.Sleep(time.Millisecond)
		}
	}
	return got
}

// injector puts frames on an interface byte by byte.
type injector struct {
	conn *packet.Conn
	own  net.HardwareAddr
}

func inject(t testing.TB, name string) *injector {
	ifi, err := net.InterfaceByName(name)
	check(t, err)
	// Protocol 0 receives nothing.
	conn, err := packet.Listen(ifi, packet.Raw, 0, nil)
	check(t, err)
	t.Cleanup(func() { conn.Close() })
	return &injector{conn, ifi.HardwareAddr}
}

func (in *injector) send(t testing.TB, f *ethernet.Frame) {
	t.Helper()
	if f.Source == nil {
		f.Source = in.own
	}
	b, err := f.MarshalBinary()
	check(t, err)
	// MarshalBinary pads; a cable between virtual interfaces does not.
	if header := 14 + 4*tags(f); len(f.Payload) < 46 {
		b = b[:header+len(f.Payload)]
	}
	in.raw(t, f.Destination, b)
}

func (in *injector) raw(t testing.TB, to net.HardwareAddr, b []byte) {
	t.Helper()
	if _, err := in.conn.WriteTo(b, &packet.Addr{HardwareAddr: to}); err != nil {
		t.Fatal(fmt.Errorf("%d bytes: %w", len(b), err))
	}
}

func tags(f *ethernet.Frame) int {
	if f.VLAN != nil {
		return 1
	}
	return 0
}

func hardware(c *ether.Conn) net.HardwareAddr {
	mac := c.LocalAddr().MAC()
	return mac[:]
}
