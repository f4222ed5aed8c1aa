package udp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
)

// run returns frames for one peer that leave as one where the kernel can, the last one shorter.
func run(to transport.Addr, n, size int) (batch []transport.Outgoing) {
	for i := range n {
		o := outgoing(to, 3*i, size)
		if i == n-1 {
			o = outgoing(to, 3*i, size/2)
		}
		if i > 0 {
			o.To = batch[0].To
		}
		batch = append(batch, o)
	}
	return batch
}

// TestPortZero: to the port 0, which no datagram reaches, nothing is sent, and offload stays for
// the others.
func TestPortZero(t *testing.T) {
	for _, p := range places() {
		c, other := listen(t, p.at, Config{}), listen(t, p.at, Config{})
		before, _ := c.Offload()
		nowhere := transport.UDPAddr(netip.AddrPortFrom(p.ip, 0))
		batch := append(run(nowhere, 2, 100), run(p.seen(t, other, c), 3, 100)...)
		if n, err := c.Send(batch); n != len(batch) || err != nil || c.Stats().SendDrops != 2 {
			t.Errorf("%v: sent %d, %v, %+v", p, n, err, c.Stats())
		}
		collect(t, other, 3, 3)
		if after, _ := c.Offload(); after != before {
			t.Errorf("%v: offload was %v and is %v", p, before, after)
		}
	}
}

// TestFromPortZero: what claims to come from there is nobody's.
func TestFromPortZero(t *testing.T) {
	netns.Require(t)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, at := range []string{"127.0.0.1", "::", "0.0.0.0"} {
		c := listen(t, at, Config{})
		const n = 3
		for range n {
			b := make([]byte, udpHeader+100) // from port 0, without a checksum
			binary.BigEndian.PutUint16(b[2:], c.LocalAddr().AddrPort().Port())
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
			if err := unix.Sendto(fd, b, 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
				t.Fatal(err)
			}
		}
		in := make([]transport.Datagram, c.Caps().Batch)
		for deadline := time.Now().Add(patience); c.Stats().Foreign < n; {
			if got, err := c.Recv(in, 100*time.Millisecond); got != 0 || err != nil || time.Now().After(deadline) {
				t.Fatalf("at %s: %d datagrams, %v, %+v", at, got, err, c.Stats())
			}
		}
	}
}

// TestBlackHole: what the kernel refuses for the sake of one way, as it refuses runs where a device has
// no checksum offload, is loss, and offload stays for the others.
func TestBlackHole(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	for _, at := range []string{"::", "0.0.0.0"} {
		for _, ip := range []func(int) netip.Addr{netns.IPv4, netns.IPv6} {
			if ip(0).Is6() && at != "::" {
				continue
			}
			t.Run(fmt.Sprintf("%s at %v", at, ip(0)), func(t *testing.T) {
				var c, other *Conn
				pair[0].In(func() { c = listen(t, at, Config{}) })
				pair[1].In(func() { other = listen(t, at, Config{}) })
				before, _ := c.Offload()
				port := other.LocalAddr().AddrPort().Port()
				there, err := c.Towards(transport.UDPAddr(netip.AddrPortFrom(ip(1), port)))
				if err != nil {
					t.Fatal(err)
				}
				lost := netns.Nobody(ip(1), 1)
				pair[0].BlackHole(t, lost)
				batch := run(transport.UDPAddr(netip.AddrPortFrom(lost, port)), 5, 1000)
				batch = append(batch, run(there, 5, 1000)...)
				if n, err := c.Send(batch); n != len(batch) || err != nil || c.Stats().SendDrops != 5 {
					t.Errorf("sent %d, %v, %+v", n, err, c.Stats())
				}
				collect(t, other, 5, 5)
				if after, _ := c.Offload(); after != before {
					t.Errorf("offload was %v and is %v", before, after)
				}
			})
		}
	}
}

// TestDeviceTooNarrow: of a run whose frames are too long for the device by now what is not too
// long arrives, and offload stays.
func TestDeviceTooNarrow(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	var c, other *Conn
	pair[0].In(func() { c = listen(t, "::", Config{}) })
	pair[1].In(func() { other = listen(t, "::", Config{}) })
	before, _ := c.Offload()
	there, err := c.Towards(transport.UDPAddr(netip.AddrPortFrom(netns.IPv4(1), other.LocalAddr().AddrPort().Port())))
	if err != nil {
		t.Fatal(err)
	}
	pair[0].SetMTU(t, 1000)
	const n, size = 5, 1200 // the last one half as long
	if sent, err := c.Send(run(there, n, size)); sent != n || err != nil || c.Stats().SendDrops != n-1 {
		t.Errorf("sent %d, %v, %+v", sent, err, c.Stats())
	}
	if frames, _ := collect(t, other, 1, 1); len(frames[0]) != size/2 {
		t.Errorf("a frame of %d bytes arrived", len(frames[0]))
	}
	if after, _ := c.Offload(); after != before {
		t.Errorf("offload was %v and is %v", before, after)
	}
}

// TestRunsAreRefused: where the kernel takes frames, and no runs of them, all of them arrive, and they
// leave one by one from then on.
func TestRunsAreRefused(t *testing.T) {
	c, other := listen(t, "127.0.0.1", Config{}), listen(t, "127.0.0.1", Config{})
	if before, _ := c.Offload(); !before {
		t.Skip("this kernel has no UDP_SEGMENT")
	}
	if err := c.socket.Control(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1) }); err != nil {
		t.Fatal(err)
	}
	const n = 20
	if sent, err := c.Send(run(other.LocalAddr(), n, 1000)); sent != n || err != nil || c.Stats().SendDrops != 0 {
		t.Errorf("sent %d, %v, %+v", sent, err, c.Stats())
	}
	collect(t, other, n, n)
	if after, _ := c.Offload(); after {
		t.Error("the next run is refused, too")
	}
}
