package wires

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/udp"
)

// TestForgedPathMTU (attack A3, SECURITY.md): a packet that anyone can send says
// that the way from our port to the peer's carries next to nothing. The flow goes
// on with frames as long as before, and so do connections that are made later.
func TestForgedPathMTU(t *testing.T) {
	eachUDP(t, func(t *testing.T, w wire) {
		for _, accept := range []string{"accept=connected", "accept=any"} { // a socket for one peer, or for all
			t.Run(accept, func(t *testing.T) {
				pair := netns.NewPair(t, 9000)
				const slots, size = 16, 64 << 10
				a, b, toB, _ := couple(t, pair, w, slots, size, accept)
				f := a.flow(toB, 0, slots, size)
				stop := background(f)
				goesOn(t, f)
				full := toB.Stats().FrameSize
				attacker := newForger(t, pair[1])
				forge := func() { attacker.tooBig(t, reached(0, a.LocalAddr()), reached(1, b.LocalAddr())) }
				forge()
				goesOn(t, f)
				for range 200 {
					forge()
				}
				goesOn(t, f)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				b.verify(f)
				// Each of the 201 may cost a message of some frames, and no more.
				if drops := a.Stats().Transport.SendDrops; drops > 201 {
					t.Errorf("%d frames refused: the report is believed", drops)
				}
				later := open(t, pair[0], w.local(0), 3, 1, 8)
				toB = later.dial(open(t, pair[1], with(w.local(1), "accept=any"), 4, slots, size).URL())
				if got := toB.Stats().FrameSize; got != full {
					t.Errorf("frames of a connection made afterwards have %d bytes, not %d", got, full)
				}
				if err := later.flow(toB, 0, slots, size).send(20); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}

// TestForgedPathMTUOfOthers checks that such a packet changes nothing for other programs that send to the peer: over IPv6 the kernel notes
// nothing (F12), neither for TCP nor for UDP. Over IPv4 it does, as for any socket whose packets must not be fragmented, but what
// this module says of the way does not follow it.
func TestForgedPathMTUOfOthers(t *testing.T) {
	eachUDP(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 9000)
		a, b, _, _ := couple(t, pair, w, 16, 10_000)
		here, there := reached(0, a.LocalAddr()), reached(1, b.LocalAddr())
		ip := there.AddrPort().Addr()
		attacker := newForger(t, pair[1])
		for range 20 {
			attacker.tooBig(t, here, there)
		}
		pair[0].In(func() {
			if _, mtu, err := udp.WayTo(netip.Addr{}, ip); err != nil || mtu != 9000 {
				t.Errorf("the way is said to carry %d, %v", mtu, err)
			}
		})
		if ip.Is4() {
			return
		}
		for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
			var fd, server int
			var err error
			pair[1].In(func() {
				if server, err = unix.Socket(unix.AF_INET6, kind|unix.SOCK_CLOEXEC, 0); err == nil {
					err = unix.Bind(server, &unix.SockaddrInet6{Port: 4711})
				}
				if err == nil && kind == unix.SOCK_STREAM {
					err = unix.Listen(server, 1)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(server)
			pair[0].In(func() {
				if fd, err = unix.Socket(unix.AF_INET6, kind|unix.SOCK_CLOEXEC, 0); err == nil {
					err = unix.Connect(fd, &unix.SockaddrInet6{Port: 4711, Addr: ip.As16()})
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			if mtu, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU); err != nil || mtu != 9000 {
				t.Errorf("a socket of kind %d is told that the way carries %d, %v", kind, mtu, err)
			}
		}
	})
}

// TestConfiguredPathMTU: what the routing table says about a way is believed, of
// connections that are made afterwards.
func TestConfiguredPathMTU(t *testing.T) {
	t.Parallel()
	eachUDP(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 9000)
		a, b, toB, toA := couple(t, pair, w, 16, 10_000)
		if wide := toB.Stats().FrameSize; wide < 8900 {
			t.Fatalf("frames of %d bytes where the devices carry 9000", wide)
		}
		newForger(t, pair[1]).tooBig(t, reached(0, a.LocalAddr()), reached(1, b.LocalAddr()))
		pair[0].SetRouteMTU(t, reached(1, b.LocalAddr()).AddrPort().Addr(), 2000)
		if err := toB.Close(); err != nil {
			t.Fatal(err)
		}
		toB = a.dial(b.URL())
		if got := toB.Stats().FrameSize; got <= 1900 || got >= 2000 {
			t.Errorf("frames of %d bytes where the route carries 2000", got)
		}
		if err := errors.Join(a.flow(toB, 0, 16, 10_000).send(20), toA.Err()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNarrowPath: a link on the way carries less than the interfaces at its ends, and nobody looks for
// that, on Ethernet, or where it is said what is carried. The error says what to do, and that helps.
func TestNarrowPath(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 9000)
		const slots, size = 16, 64 << 10
		options, says := "", ""
		if w.datagrams {
			says = "mtu=9000"
			options = "gso=off" // runs of frames are never too long for a virtual cable
		}
		b := open(t, pair[1], with(w.local(1), "accept=any"), 2, slots, size)
		next := open(t, pair[1], with(w.local(1), "accept=any"), 4, slots, size)
		pair[1].SetMTU(t, 2000) // longer frames vanish on the cable
		a := open(t, pair[0], with(w.local(0), "giveup=3s", says, options), 1, 1, 8)
		err := a.flow(a.dial(b.URL()), 0, slots, size).send(4)
		if !errors.Is(err, dgrdma.ErrPeerDown) || !strings.Contains(err.Error(), "option mtu") {
			t.Fatalf("error %v", err)
		}
		a = open(t, pair[0], with(w.local(0), "mtu=1500", options), 3, 1, 8)
		f := a.flow(a.dial(next.URL()), 0, slots, size)
		if err := f.send(40); err != nil {
			t.Fatal(err)
		}
		next.verify(f)
	})
}

// forger sends ICMP packets that nobody has reason to send.
type forger struct{ v4, v6 int }

func newForger(t *testing.T, ns *netns.Namespace) *forger {
	t.Helper()
	var f forger
	ns.In(func() {
		for _, s := range []struct {
			fd               *int
			family, protocol int
		}{{&f.v4, unix.AF_INET, unix.IPPROTO_ICMP}, {&f.v6, unix.AF_INET6, unix.IPPROTO_ICMPV6}} {
			fd, err := unix.Socket(s.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, s.protocol)
			if err != nil {
				t.Fatal(os.NewSyscallError("socket", err))
			}
			t.Cleanup(func() { unix.Close(fd) })
			*s.fd = fd
		}
	})
	return &f
}

// tooBig tells victim that a datagram of its to another address was too long for
// some link, which carries the least that the kernel believes. It quotes the
// ports and nothing else of the datagram.
func (f *forger) tooBig(t *testing.T, victim, other transport.Addr) {
	t.Helper()
	from, to := victim.AddrPort(), other.AddrPort()
	if from.Addr().Is4() {
		const least = 552
		packet := []byte{3, 4, 0, 0, 0, 0, least >> 8, least & 0xff} // destination unreachable, fragmentation needed
		packet = append(packet, 0x45, 0, 1500>>8, 1500&0xff, 0, 0, 0x40, 0, 64, unix.IPPROTO_UDP, 0, 0)
		packet = append(append(packet, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
		binary.BigEndian.PutUint16(packet[8+10:], checksum(packet[8:28]))
		packet = appendPorts(packet, from, to)
		binary.BigEndian.PutUint16(packet[2:], checksum(packet))
		f.send(t, f.v4, packet, &unix.SockaddrInet4{Addr: from.Addr().As4()})
		return
	}
	packet := []byte{2, 0, 0, 0, 0, 0, 1280 >> 8, 1280 & 0xff} // packet too big; the kernel adds the checksum
	packet = append(packet, 0x60, 0, 0, 0, (1500-40)>>8, (1500-40)&0xff, unix.IPPROTO_UDP, 64)
	packet = append(append(packet, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
	f.send(t, f.v6, appendPorts(packet, from, to), &unix.SockaddrInet6{Addr: from.Addr().As16()})
}

func (f *forger) send(t *testing.T, fd int, packet []byte, to unix.Sockaddr) {
	t.Helper()
	if err := unix.Sendto(fd, packet, 0, to); err != nil {
		t.Fatal(os.NewSyscallError("sendto", err))
	}
	time.Sleep(50 * time.Microsecond) // so that many do not arrive as one
}

// appendPorts appends a UDP header.
func appendPorts(b []byte, from, to netip.AddrPort) []byte {
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	return append(b, 1480>>8, 1480&0xff, 0, 0)
}

// checksum is that of the Internet protocols.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
