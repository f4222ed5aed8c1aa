package udp

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
)

// forge returns a packet of IP with a datagram of UDP to dst, and says that it comes from src.
func forge(src, dst netip.AddrPort, data []byte) []byte {
	u := binary.BigEndian.AppendUint16(nil, src.Port())
	u = binary.BigEndian.AppendUint16(u, dst.Port())
	u = binary.BigEndian.AppendUint16(u, uint16(udpHeader+len(data)))
	u = append(append(u, 0, 0), data...)
	ends := append(src.Addr().AsSlice(), dst.Addr().AsSlice()...)
	sum := uint32(len(u) + unix.IPPROTO_UDP)
	for _, b := range [][]byte{ends, u} {
		for i, x := range b {
			sum += uint32(x) << (8 * (1 - i&1))
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(u[6:], ^uint16(sum))
	if dst.Addr().Is4() {
		ip := make([]byte, 4, 20)
		ip[0] = 0x45
		ip = append(ip, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0) // the kernel fills in the rest
		binary.BigEndian.PutUint16(ip[2:], uint16(20+len(u)))
		return append(append(ip, ends...), u...)
	}
	ip := append([]byte{0x60, 0, 0, 0}, 0, 0, unix.IPPROTO_UDP, 64)
	binary.BigEndian.PutUint16(ip[4:], uint16(len(u)))
	return append(append(ip, ends...), u...)
}

// TestSourceOfMany checks that a datagram whose source is a group, every machine or none does not get as far as an answer (F4):
// it is dropped and counted, or the kernel drops it. What comes after it is taken.
func TestSourceOfMany(t *testing.T) {
	netns.Require(t)
	raw := func(family int) int {
		fd, err := unix.Socket(family, unix.SOCK_RAW, unix.IPPROTO_RAW) // whose packets bring their header
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	v4, v6 := raw(unix.AF_INET), raw(unix.AF_INET6)
	counted := map[string]uint64{}
	for _, at := range []string{"127.0.0.1", "0.0.0.0", "::1", "::"} {
		c := listen(t, at, Config{})
		port := c.LocalAddr().AddrPort().Port()
		for _, source := range []string{"0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.2", "::", "ff02::1", "::1"} {
			src := netip.AddrPortFrom(netip.MustParseAddr(source), 7100)
			dst := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
			if src.Addr().Is6() {
				dst = netip.AddrPortFrom(netip.IPv6Loopback(), port)
			}
			if ip := netip.MustParseAddr(at); ip != dst.Addr() && (!ip.IsUnspecified() || ip.Is4() && dst.Addr().Is6()) {
				continue
			}
			b := forge(src, dst, outgoing(c.LocalAddr(), 1, 50).Buf)
			var err error
			if dst.Addr().Is4() {
				err = unix.Sendto(v4, b, 0, &unix.SockaddrInet4{Addr: dst.Addr().As4()})
			} else {
				err = unix.Sendto(v6, b, 0, &unix.SockaddrInet6{Addr: dst.Addr().As16()})
			}
			if err != nil {
				t.Fatalf("from %s: %v", source, err)
			}
			before := c.Stats().Foreign
			in := make([]transport.Datagram, c.Caps().Batch)
			n, err := c.Recv(in, 100*time.Millisecond)
			if single := src.Addr().IsLoopback(); err != nil || (n == 1) != single || n == 1 && in[0].From.AddrPort() != src {
				t.Errorf("at %s, from %s: received %d, %v", at, source, n, err)
			}
			counted[source] += c.Stats().Foreign - before
		}
	}
	t.Logf("dropped here, and not by the kernel: %v", counted)
}
