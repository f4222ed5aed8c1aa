package udp

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
)

// patience is how long something may take that is not measured.
const patience = 10 * time.Second

// homes are two namespaces with two cables, and more than one address at each end.
type homes struct {
	netns.Pair
	ours []netip.Addr // of side 0, as side 1 has to write them
}

func newHomes(t *testing.T) *homes {
	t.Helper()
	netns.Require(t)
	h := &homes{Pair: netns.NewPair(t, 1500), ours: []netip.Addr{netns.IPv4(0), netns.IPv6(0)}}
	second := h.Join(t, 1500)
	for device, first := range map[string]string{netns.Device: "10.77.0.50 fd77::50 fe80::50", second: "10.78.0.1 fd78::1 fe80::7801"} {
		for _, s := range bytes.Fields([]byte(first)) {
			ip := netip.MustParseAddr(string(s))
			h.Pair[0].Give(t, device, ip)
			if ip.IsLinkLocalUnicast() {
				ip = ip.WithZone(device)
			}
			h.ours = append(h.ours, ip)
		}
	}
	for _, s := range []string{"10.78.0.2", "fd78::2", "fe80::7802"} {
		h.Pair[1].Give(t, second, netip.MustParseAddr(s))
	}
	h.Pair[1].Give(t, netns.Device, netip.MustParseAddr("fe80::51"))
	return h
}

// listen opens a socket at all addresses of side 0.
func (h *homes) listen(t *testing.T, at string, cfg Config) (c *Conn) {
	t.Helper()
	h.Pair[0].In(func() { c = listen(t, at, cfg) })
	return c
}

// dial returns a socket of side 1 that hears nobody but who is at that address.
func (h *homes) dial(t *testing.T, ip netip.Addr, c *Conn) (client *net.UDPConn) {
	t.Helper()
	var err error
	h.Pair[1].In(func() {
		ip = ip.WithZone(number(t, ip.Zone()))
		client, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, c.LocalAddr().AddrPort().Port())))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	client.SetDeadline(time.Now().Add(patience))
	return client
}

// number returns the number of the interface that a zone names, if any. Package net remembers that
// of other namespaces.
func number(t *testing.T, zone string) string {
	t.Helper()
	if zone == "" {
		return ""
	}
	ifi, err := net.InterfaceByName(zone)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(ifi.Index)
}

// heard receives one datagram.
func heard(t *testing.T, c *Conn) (from transport.Addr, data []byte) {
	t.Helper()
	frames, all := collect(t, c, 1, 1)
	return all[0], frames[0]
}

// TestAnswersFromTheAddressAsked: what a socket at all addresses sends to a peer leaves from the
// one that the peer asked, alone or in runs, of either version of IP, on either interface, from
// addresses of a link too; and who asks another one is another peer.
func TestAnswersFromTheAddressAsked(t *testing.T) {
	h := newHomes(t)
	for _, cfg := range []Config{{}, {NoGSO: true}, {NoGRO: true}, {NoGSO: true, NoGRO: true}} {
		for _, at := range []string{"::", "0.0.0.0"} {
			t.Run(fmt.Sprintf("%s gso=%v gro=%v", at, !cfg.NoGSO, !cfg.NoGRO), func(t *testing.T) {
				c := h.listen(t, at, cfg)
				known := map[transport.Addr]bool{}
				for _, ip := range h.ours {
					if ip.Is6() && at == "0.0.0.0" {
						continue
					}
					client := h.dial(t, ip, c)
					const n, size = 20, 1000
					for i := range n {
						if _, err := client.Write(outgoing(transport.Addr{}, i*3, size).Buf); err != nil {
							t.Fatal(err)
						}
					}
					asked, froms := collect(t, c, n, 7)
					var batch []transport.Outgoing
					for i, from := range froms {
						// The names of its interfaces are unknown outside of the namespace.
						if from.Local().WithZone("") != ip.WithZone("") || from.Local().Zone() == "" && ip.Zone() != "" || from.AddrPort() != froms[0].AddrPort() {
							t.Fatalf("%v: datagram %d comes from %v, which asked %v", ip, i, from, from.Local())
						}
						batch = append(batch, transport.Outgoing{To: &froms[0], Buf: append(make([]byte, prefix), asked[i]...)})
					}
					if known[froms[0]] {
						t.Errorf("%v: %v asked another address before", ip, froms[0])
					}
					known[froms[0]] = true
					if sent, err := c.Send(batch); sent != n || err != nil {
						t.Fatal(sent, err)
					}
					buf := make([]byte, 2*size)
					for i := range n {
						got, err := client.Read(buf)
						if err != nil {
							t.Fatalf("%v: answer %d: %v", ip, i, err)
						}
						if !bytes.Equal(buf[prefix:got], asked[i]) {
							t.Errorf("%v: answer %d is another one", ip, i)
						}
					}
				}
				if s := c.Stats(); s != (transport.Stats{}) {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

// TestRunsAskOneAddress: frames that came as one say which address they asked, too, and what two
// peers at one socket ask is kept apart.
func TestRunsAskOneAddress(t *testing.T) {
	h := newHomes(t)
	c := h.listen(t, "::", Config{})
	var clients [2]*Conn
	var to [2]transport.Addr
	for i := range clients {
		at := []string{"10.77.0.2", "::"}[i]
		h.Pair[1].In(func() {
			var err error
			clients[i] = listen(t, at, Config{})
			there := netip.AddrPortFrom([]netip.Addr{netns.IPv4(0), netip.MustParseAddr("fd78::1")}[i], c.LocalAddr().AddrPort().Port())
			if to[i], err = clients[i].Towards(transport.UDPAddr(there)); err != nil {
				t.Fatal(err)
			}
		})
	}
	const n = 200
	for range n / 20 {
		for i, client := range clients {
			var batch []transport.Outgoing
			for j := range 20 {
				batch = append(batch, outgoing(to[i], 3*j, 1000))
			}
			if sent, err := client.Send(batch); sent != len(batch) || err != nil {
				t.Fatal(sent, err)
			}
		}
	}
	_, froms := collect(t, c, 2*n, 64)
	count := map[transport.Addr]int{}
	for _, from := range froms {
		count[from]++
	}
	for i, client := range clients {
		from := netip.AddrPortFrom([]netip.Addr{netns.IPv4(1), netip.MustParseAddr("fd78::2")}[i], client.LocalAddr().AddrPort().Port())
		if got := count[transport.UDPAddr(from).WithLocal(to[i].AddrPort().Addr())]; got != n {
			t.Errorf("%d of %d frames from %v asked %v: %v", got, n, from, to[i], count)
		}
	}
}

// TestGroupsAreNotAsked: what is sent to all machines of a network, or to a group, is for
// nobody, so that no stranger has many machines answer in another one's name.
func TestGroupsAreNotAsked(t *testing.T) {
	h := newHomes(t)
	for _, at := range []string{"::", "0.0.0.0"} {
		c := h.listen(t, at, Config{})
		port := int(c.LocalAddr().AddrPort().Port())
		groups := []net.UDPAddr{{IP: net.IPv4(10, 77, 0, 255)}, {IP: net.IPv4bcast}}
		if at == "::" { // the kernel gives it nothing that was sent to a group of IPv4
			groups = append(groups, net.UDPAddr{IP: net.IPv6linklocalallnodes})
		} else {
			groups = append(groups, net.UDPAddr{IP: net.IPv4allsys})
		}
		for i := range groups {
			groups[i].Port = port
			var client net.PacketConn
			var err error
			h.Pair[1].In(func() {
				// By that interface also what goes everywhere.
				local := &net.UDPAddr{IP: netns.IPv4(1).AsSlice()}
				if groups[i].IP.To4() == nil {
					local, groups[i].Zone = nil, number(t, netns.Device)
				}
				client, err = net.ListenUDP("udp", local)
				if err == nil {
					_, err = client.WriteTo(make([]byte, 100), &groups[i])
				}
			})
			if err != nil {
				t.Fatalf("%v: %v", groups[i].IP, err)
			}
			client.Close()
		}
		for deadline := time.Now().Add(patience); c.Stats().Foreign < uint64(len(groups)); time.Sleep(time.Millisecond) {
			if n, err := c.Recv(make([]transport.Datagram, 4), 0); n != 0 || err != nil {
				t.Fatalf("%d datagrams to a group: %v", n, err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("at %s: %d of %d were refused", at, c.Stats().Foreign, len(groups))
			}
		}
	}
}

// TestAddressIsTakenAway: a peer whose address of ours is gone is not reached any more, and that
// is loss: others are, as fast as before; and so is that one when the address is back.
func TestAddressIsTakenAway(t *testing.T) {
	for _, device := range []string{"every", "one"} {
		for _, s := range []string{"10.77.0.50", "fd77::50"} {
			t.Run(device+" "+s, func(t *testing.T) {
				h := newHomes(t)
				ip := netip.MustParseAddr(s)
				at := s
				if device == "every" {
					at = "::"
				}
				c := h.listen(t, at, Config{})
				client := h.dial(t, ip, c)
				other := client
				if device == "every" {
					other = h.dial(t, netns.IPv4(0), c)
				}
				from := map[*net.UDPConn]transport.Addr{}
				for _, x := range []*net.UDPConn{client, other} {
					if _, err := x.Write(make([]byte, 10)); err != nil {
						t.Fatal(err)
					}
					from[x], _ = heard(t, c)
				}
				const n = 10
				send := func(to *net.UDPConn) {
					t.Helper()
					var batch []transport.Outgoing
					for i := range n {
						o := outgoing(from[to], 3*i, 500)
						o.To = new(from[to])
						if i > 0 {
							o.To = batch[0].To
						}
						batch = append(batch, o)
					}
					if sent, err := c.Send(batch); sent != n || err != nil {
						t.Fatal(sent, err)
					}
				}
				read := func(by *net.UDPConn) {
					t.Helper()
					for i := range n {
						if _, err := by.Read(make([]byte, 1000)); err != nil {
							t.Fatalf("datagram %d: %v", i, err)
						}
					}
				}
				before, _ := c.Offload()
				h.Pair[0].Take(t, netns.Device, ip)
				send(client)
				// The kernel asks nobody for the address that a socket of IPv6 is bound to.
				if s := c.Stats(); s.SendDrops != n && (device == "every" || ip.Is4()) {
					t.Errorf("%d of %d frames were refused", s.SendDrops, n)
				}
				if after, _ := c.Offload(); after != before {
					t.Errorf("offload was %v and is %v", before, after)
				}
				if other != client {
					send(other)
					read(other)
				}
				h.Pair[0].Give(t, netns.Device, ip)
				send(client)
				read(client)
			})
		}
	}
}

// TestTowardsFromWhatIsGone: the way to a peer that is sent to from an address is that, as long as this
// machine has it.
func TestTowardsFromWhatIsGone(t *testing.T) {
	h := newHomes(t)
	c := h.listen(t, "::", Config{})
	for _, ip := range h.ours {
		there := netns.IPv4(1)
		if ip.Is6() {
			there = netns.IPv6(1)
		}
		to := transport.UDPAddr(netip.AddrPortFrom(there, 7)).WithLocal(ip)
		if at, err := c.Towards(to); at != to || err != nil {
			t.Errorf("%v, from %v: %v", at, at.Local(), err)
		}
	}
	gone := h.ours[0]
	h.Pair[0].Take(t, netns.Device, gone)
	if _, err := c.Towards(transport.UDPAddr(netip.AddrPortFrom(netns.IPv4(1), 7)).WithLocal(gone)); err == nil {
		t.Errorf("%v is gone", gone)
	}
}

// TestNoWay: to dial where no way leads fails, and says so.
func TestNoWay(t *testing.T) {
	h := newHomes(t)
	h.Pair[0].In(func() {
		c := listen(t, "::", Config{})
		for _, s := range []string{"203.0.113.1:7", "[2001:db8::1]:7", "10.77.0.255:7"} {
			if to, err := c.Towards(transport.UDPAddr(netip.MustParseAddrPort(s))); err == nil {
				t.Errorf("%s is reached from %v", s, to.Local())
			}
		}
		four := listen(t, "0.0.0.0", Config{})
		six := transport.UDPAddr(netip.MustParseAddrPort("[fd77::2]:7"))
		if to, err := four.Towards(six); err != nil || to != six || four.LocalAddr().Sends(six) || !c.LocalAddr().Sends(six) {
			t.Errorf("%v, %v", to, err)
		}
	})
}

// TestTowardsItselfOnALink: the way to an IPv6 address of a link that is this machine's own leads by
// loopback, where the address is not: what is sent there leaves from the link's interface.
func TestTowardsItselfOnALink(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	ip := netip.MustParseAddr("fe80::50")
	pair[0].Give(t, netns.Device, ip)
	ip = ip.WithZone(netns.Device)
	var c *Conn
	var err error
	pair[0].In(func() { c, err = Listen(Config{Addr: netip.AddrPortFrom(netip.IPv6Unspecified(), 0)}) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pair[0].In(func() {
		to, err := c.Towards(transport.UDPAddr(netip.AddrPortFrom(ip, c.LocalAddr().AddrPort().Port())))
		if err != nil || to.Local() != ip {
			t.Fatalf("from %v: %v", to.Local(), err)
		}
		buf := make([]byte, prefix+12)
		if n, err := c.Send([]transport.Outgoing{{To: &to, Buf: buf}}); n != 1 || err != nil {
			t.Fatalf("sent %d: %v", n, err)
		}
		in := make([]transport.Datagram, c.Caps().Batch)
		if n, err := c.Recv(in, 10*time.Second); n != 1 || err != nil || in[0].From != to {
			t.Errorf("%d from %v at %v: %v", n, in[0].From, in[0].From.Local(), err)
		}
	})
}

// TestLinkMadeAgain: an interface is made again under the same name, with another number, as when a VLAN,
// a tunnel or a USB card comes back. Peers on its link are reached again.
func TestLinkMadeAgain(t *testing.T) {
	netns.Require(t)
	pair := netns.NewPair(t, 1500)
	home, there := netip.MustParseAddr("fe80::50"), netip.MustParseAddr("fe80::51")
	give := func() {
		pair[0].Give(t, netns.Device, home)
		pair[1].Give(t, netns.Device, there)
	}
	give()
	var c, other *Conn
	pair[0].In(func() { c = listen(t, "::", Config{}) })
	pair[1].In(func() { other = listen(t, "::", Config{}) })
	to := transport.UDPAddr(netip.AddrPortFrom(there.WithZone(netns.Device), other.LocalAddr().AddrPort().Port())).WithLocal(home.WithZone(netns.Device))
	in := make([]transport.Datagram, other.Caps().Batch)
	arrives := func() bool {
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			pair[0].In(func() {
				if _, err := c.Send([]transport.Outgoing{outgoing(to, 3, 100)}); err != nil {
					t.Fatal(err)
				}
			})
			if n, _ := other.Recv(in, 20*time.Millisecond); n > 0 {
				return true
			}
		}
		return false
	}
	if !arrives() {
		t.Fatal("nothing came at first")
	}
	pair.Rejoin(t, 1500)
	give()
	if !arrives() {
		t.Errorf("nothing comes once the interface was made again: %+v", c.Stats())
	}
}

// TestInterfaceIsLookedUpSeldom: as long as something cannot be sent, the interface is not looked
// up for each frame.
func TestInterfaceIsLookedUpSeldom(t *testing.T) {
	var z zones
	if z.doubt() {
		t.Error("nothing is remembered")
	}
	z.scope("lo")
	if began := z.since; z.doubt() && time.Since(began) < zonesStay {
		t.Error("at once")
	}
	z.since = time.Now().Add(-zonesStay)
	z.scope("nosuch0") // does not prolong it
	if !z.doubt() || z.doubt() {
		t.Error("an old number is believed, or doubted twice")
	}
	if z.scope("lo") != 1 {
		t.Error("the loopback interface is not the first")
	}
}
