package wires

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport/udp"
)

// TestOpenFails: what is wrong is said, and what to do.
func TestOpenFails(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	holder := open(t, pair[0], "udp:10.77.0.1:7100", 1, 1, 8)
	for _, c := range []struct {
		url  string
		says string
		is   error
	}{
		{"udp:10.77.0.2", "no interface of this machine has the address", nil},
		{"udp:[fd77::2]", "no interface of this machine has the address", nil},
		{"udp:10.77.0.1:7100", "another socket has the port", syscall.EADDRINUSE},
		{"udp:[::ffff:10.77.0.1]:7100", "another socket has the port", syscall.EADDRINUSE},
	} {
		var e *dgrdma.Endpoint
		var err error
		pair[0].In(func() { e, err = dgrdma.Open(c.url, nil) })
		if err == nil {
			e.Close()
			t.Errorf("%s: no error", c.url)
		} else if !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v does not say %q", c.url, err, c.says)
		}
	}
	pair[0].SetUp(t, false)
	pair[0].In(func() {
		if e, err := dgrdma.Open("udp:10.77.0.1", nil); err == nil {
			e.Close()
			t.Error("opened on an interface that is down")
		} else if !strings.Contains(err.Error(), "ip link set "+netns.Device+" up") {
			t.Error(err)
		}
	})
	// The port is free again when its endpoint is closed.
	pair[0].SetUp(t, true)
	holder.Close()
	open(t, pair[0], "udp:10.77.0.1:7100", 1, 1, 8)
}

// eachUDP runs a test for every wire of datagrams.
func eachUDP(t *testing.T, f func(*testing.T, wire)) {
	eachWire(t, func(t *testing.T, w wire) {
		if w.datagrams {
			f(t, w)
		}
	})
}

// TestSendingIsForbidden: the firewall refuses what we send, for a while.
func TestSendingIsForbidden(t *testing.T) {
	eachUDP(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size = 16, 32 << 10
		a, b, toB, _ := couple(t, pair, w, slots, size)
		f := a.flow(toB, 0, slots, size)
		stop := background(f)
		goesOn(t, f)
		wall := pair[0].Forbid(t)
		eventually(t, patience, "sending refused", func() bool { return a.Stats().Transport.SendDrops > 0 && wall.Dropped() > 0 })
		wall.Remove()
		goesOn(t, f)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		b.verify(f)
	})
}

// TestNobodyListens: the peer's machine says that the port is closed, many
// times. The endpoint serves its other peer all the same.
func TestNobodyListens(t *testing.T) {
	eachWireAtOnce(t, func(t *testing.T, w wire) {
		if !w.datagrams {
			return
		}
		pair := netns.NewPair(t, 1500)
		const slots, size = 8, 10_000
		a, b, toB, _ := couple(t, pair, w, slots, size, "giveup=2s")
		gone := open(t, pair[1], w.local(1), 3, 1, 8)
		toGone := a.dial(gone.URL())
		gone.Close()
		f := a.flow(toB, 0, slots, size)
		stop := background(f)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err := toGone.Write(ctx, &dgrdma.Transaction{Completion: dgrdma.Word(0, 1)})
		if !errors.Is(err, dgrdma.ErrPeerDown) {
			t.Errorf("nobody is there, and yet: %v", err)
		}
		goesOn(t, f)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		b.verify(f)
	})
}

// TestForeignDatagrams: what others send to the port is counted, and harms
// nothing.
func TestForeignDatagrams(t *testing.T) {
	eachUDP(t, func(t *testing.T, w wire) {
		for _, gro := range []string{"gro=on", "gro=off"} {
			t.Run(gro, func(t *testing.T) {
				pair := netns.NewPair(t, 9000)
				const slots, size = 16, 32 << 10
				// Who accepts any peer listens to all; a socket for one peer only does not.
				a := open(t, pair[0], with(w.local(0), "mtu=1500"), 1, 1, 8)
				b := open(t, pair[1], with(w.local(1), "mtu=1500", gro, "accept=any"), 2, slots, size)
				f := a.flow(a.dial(b.URL()), 0, slots, size)
				stop := background(f)
				goesOn(t, f) // neighbours have found each other
				const rounds = 50
				stranger := dialUDP(t, pair[0], reached(1, b.LocalAddr()).AddrPort())
				rng := rand.New(rand.NewPCG(1, 2))
				garbage := make([]byte, 9000)
				for range rounds {
					for _, n := range []int{0, 1, 2, 3, 11, 12, 36, 1400, 1472, 5000, 8900} {
						for i := range garbage[:n] {
							garbage[i] = byte(rng.Uint32())
						}
						if _, err := stranger.Write(garbage[:n]); err != nil {
							t.Fatal(err)
						}
					}
				}
				goesOn(t, f)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				b.verify(f)
				// Some may have been lost on the way, when the socket's buffer was full.
				s := b.Stats()
				if s.Transport.Foreign < rounds {
					t.Errorf("%+v", s)
				}
				if gro == "gro=off" && s.Transport.Truncated < rounds {
					t.Errorf("%d datagrams counted as too long; %+v", s.Transport.Truncated, s)
				}
				if b.happened(dgrdma.FrameRefused) < rounds {
					t.Errorf("%d frames refused", b.happened(dgrdma.FrameRefused))
				}
			})
		}
	})
}

// TestStrangerSendsToOne: datagrams of others to an endpoint that has one peer
// and wants no more.
func TestStrangerSendsToOne(t *testing.T) {
	eachUDP(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size = 16, 32 << 10
		a, b, toB, _ := couple(t, pair, w, slots, size)
		f := a.flow(toB, 0, slots, size)
		stop := background(f)
		stranger := dialUDP(t, pair[0], reached(1, b.LocalAddr()).AddrPort())
		for range 300 {
			if _, err := stranger.Write(make([]byte, 500)); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatal(err)
			}
		}
		goesOn(t, f)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		b.verify(f)
	})
}

func dialUDP(t *testing.T, ns *netns.Namespace, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	var err error
	ns.In(func() { c, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestMTUShrinks: packets become too large in the midst of a transfer, and the
// kernel refuses them, until the MTU is back.
func TestMTUShrinks(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 9000)
		const slots, size = 16, 64 << 10
		a, b, toB, _ := couple(t, pair, w, slots, size)
		f := a.flow(toB, 0, slots, size)
		stop := background(f)
		goesOn(t, f)
		pair[0].SetMTU(t, 2000)
		eventually(t, patience, "frames refused", func() bool { return a.Stats().Transport.SendDrops > 10 })
		pair[0].SetMTU(t, 9000)
		goesOn(t, f)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		b.verify(f)
	})
}

// TestOffloadIsRefused: the kernel, which took runs of frames so far, refuses
// them in the midst of a transfer.
func TestOffloadIsRefused(t *testing.T) {
	eachUDP(t, func(t *testing.T, w wire) {
		pair := netns.NewPair(t, 1500)
		const slots, size = 16, 64 << 10
		b := open(t, pair[1], with(w.local(1), "accept=any"), 2, slots, size)
		tc := w.listen(t, pair[0], 0).(*udp.Conn)
		a := &end{t: t, ns: pair[0]}
		var err error
		if a.Endpoint, err = dgrdma.New(tc, &dgrdma.Config{ID: 1, OnEvent: a.note}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		f := a.flow(a.dial(b.URL()), 0, slots, size)
		stop := background(f)
		goesOn(t, f)
		if gso, _ := tc.Offload(); !gso {
			t.Fatal("no segmentation offload from the start")
		}
		sendChecksums(t, reached(0, tc.LocalAddr()).AddrPort(), false)
		eventually(t, patience, "offload ended", func() bool { gso, _ := tc.Offload(); return !gso })
		sendChecksums(t, reached(0, tc.LocalAddr()).AddrPort(), true)
		goesOn(t, f)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		b.verify(f)
	})
}

// sendChecksums switches the checksums off that the sockets with that address
// send, without which the kernel does not cut runs of frames into datagrams. There are two
// where one is connected to the only peer.
func sendChecksums(t *testing.T, local netip.AddrPort, on bool) {
	t.Helper()
	off := 1
	if on {
		off = 0
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, entry := range fds {
		fd, _ := strconv.Atoi(entry.Name())
		name, err := unix.Getsockname(fd)
		if err != nil {
			continue
		}
		switch sa := name.(type) {
		case *unix.SockaddrInet4:
			if netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)) != local {
				continue
			}
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, off)
		case *unix.SockaddrInet6:
			if ip := netip.AddrFrom16(sa.Addr); uint16(sa.Port) != local.Port() || ip != local.Addr() && !ip.IsUnspecified() {
				continue
			}
			// Which one counts depends on the peer's address.
			err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_NO_CHECK6_TX, off), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, off))
		default:
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found = true
	}
	if !found {
		t.Fatalf("no socket of this process has the address %v", local)
	}
}
