package round

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/netns"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
	"github.com/dgrdma/dgrdma/transport/simnet"
	"github.com/dgrdma/dgrdma/transport/udp"
)

// ground is where the nodes of a round are, and what is between them.
type ground interface {
	// attach opens the wire of a node.
	attach(node int, n *Node) (transport.Conn, error)
	// addr is where it is.
	addr(node int) transport.Addr
	// weather changes what the network does.
	weather(a *Action)
	// flap has the interface of a side down or up.
	flap(side int, up bool)
	// calm makes the network perfect.
	calm()
	// inject sends a frame to a node, from a stranger, or with the address of a peer if the
	// ground can.
	inject(to int, as int, frame []byte)
	// faults returns what happened to frames.
	faults() map[string]uint64
	// close ends it.
	close()
}

// overhead is what IPv6, UDP and the prefix take of a packet.
const overhead = 40 + 8 + 2

// strangerAt is the number of a stranger on simnet, beside those of nodes, and of guests.
const strangerAt = firstGuest

func idOf(node int) dgrdma.EndpointID { return dgrdma.EndpointID(10 + node) }

// url is the endpoint string of a node.
func url(g ground, node int) string {
	a := g.addr(node)
	if ap := a.AddrPort(); ap.IsValid() {
		ip := ap.Addr().String()
		if ap.Addr().Is6() {
			ip = "[" + ip + "]"
		}
		return fmt.Sprintf("ocpi-udp-rdma:%s;%d;4294967296.%d.65535", ip, ap.Port(), idOf(node))
	}
	return fmt.Sprintf("ocpi-ether-rdma:%v;4294967296.%d.65535", a, idOf(node))
}

// simulated is a network in memory.
type simulated struct {
	plan *Plan
	net  *simnet.Network
	mu   sync.Mutex
	now  map[[2]int]simnet.Link
}

func newSimulated(p *Plan) *simulated {
	s := &simulated{plan: p, net: simnet.New(p.Seed), now: make(map[[2]int]simnet.Link)}
	for way, l := range p.Between {
		s.set(way, l)
	}
	return s
}

func (s *simulated) set(way [2]int, l simnet.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[way] = l
	s.net.Link(s.addr(way[0]), s.addr(way[1]), l)
}

func (s *simulated) attach(node int, n *Node) (transport.Conn, error) {
	return s.net.Attach(s.addr(node), simnet.Config{MTU: s.plan.MTU, RecvQueue: n.Buffer, Poison: true}), nil
}

func (s *simulated) addr(node int) transport.Addr { return simnet.Addr(uint32(1 + node)) }

func (s *simulated) weather(a *Action) { s.set([2]int{a.From, a.To}, a.Link) }

func (s *simulated) flap(side int, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for way, l := range s.now {
		if way[0]%2 == side || way[1]%2 == side {
			l.Down = !up
			s.net.Link(s.addr(way[0]), s.addr(way[1]), l)
		}
	}
}

func (s *simulated) calm() {
	for way, l := range s.plan.Between {
		latency := 20*time.Microsecond + time.Duration(17*way[0]+101*way[1])
		if !s.plan.Kind.Faults(way[0]).Reorder {
			latency = l.Latency + l.Jitter // nothing under way is overtaken
		}
		s.set(way, simnet.Link{Latency: latency})
	}
}

func (s *simulated) inject(to, as int, frame []byte) {
	from := simnet.Addr(strangerAt)
	if as >= 0 {
		from = s.addr(as)
	}
	s.net.Inject(from, s.addr(to), frame)
}

func (s *simulated) faults() map[string]uint64 {
	x := s.net.TotalStats()
	return map[string]uint64{
		"lost": x.Lost + x.TailDropped + x.Down + x.Unattached, "corrupted": x.Corrupted, "duplicated": x.Duplicated, "reordered": x.Reordered,
		"held back": x.Held, "overrun": x.Overrun,
	}
}

func (s *simulated) close() { s.net.Close() }

// namespaces are two machines with a switch between them.
type namespaces struct {
	t      testing.TB
	plan   *Plan
	net    *netns.Switch
	mac    [2]transport.Addr
	sender [2]func(to transport.Addr, frame []byte) // of strangers on a side
}

func newNamespaces(t testing.TB, p *Plan) *namespaces {
	g := &namespaces{t: t, plan: p, net: netns.NewSwitch(t, p.MTU, p.Seed, p.Switch)}
	for side, ns := range g.net.Pair {
		ns.KeepAddresses(t)
		var err error
		ns.In(func() { g.mac[side], g.sender[side], err = stranger(t, p.Wire) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// stranger opens a socket of nobody's in the present namespace, and returns the MAC address
// of its device.
func stranger(t testing.TB, w Wire) (transport.Addr, func(transport.Addr, []byte), error) {
	ifi, err := net.InterfaceByName(netns.Device)
	if err != nil {
		return transport.Addr{}, nil, err
	}
	mac := transport.EtherAddr([6]byte(ifi.HardwareAddr))
	if w == UDP {
		c, err := net.ListenUDP("udp", nil)
		if err != nil {
			return mac, nil, err
		}
		t.Cleanup(func() { c.Close() })
		return mac, func(to transport.Addr, frame []byte) {
			c.WriteToUDPAddrPort(append([]byte{0, 0}, frame...), to.AddrPort())
		}, nil
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return mac, nil, os.NewSyscallError("socket", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return mac, func(to transport.Addr, frame []byte) {
		dst := to.MAC()
		b := append(append(dst[:], 0x02, 0xff, 0, 0, 0, 9, byte(ether.EtherType>>8), byte(ether.EtherType&0xff)), frame...)
		unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index}) // refused is lost
	}, nil
}

func (g *namespaces) ip(side int) netip.Addr {
	if g.plan.IPv6 {
		return netns.IPv6(side)
	}
	return netns.IPv4(side)
}

func (g *namespaces) attach(node int, n *Node) (c transport.Conn, err error) {
	side := node % 2
	g.net.Pair[side].In(func() {
		if g.plan.Wire == Ether {
			c, err = ether.Listen(ether.Config{Interface: netns.Device, ID: uint16(idOf(node)), Buffer: n.Buffer, NoRing: n.NoRing, NoXDP: n.NoXDP})
			return
		}
		c, err = udp.Listen(udp.Config{Addr: g.addr(node).AddrPort(), Buffer: n.Buffer, NoGSO: n.NoOffload, NoGRO: n.NoOffload})
	})
	return c, err
}

func (g *namespaces) addr(node int) transport.Addr {
	if g.plan.Wire == Ether {
		return g.mac[node%2]
	}
	return transport.UDPAddr(netip.AddrPortFrom(g.ip(node%2), uint16(7100+node)))
}

func (g *namespaces) weather(a *Action) { g.net.SetFaults(a.From, a.Switch) }

func (g *namespaces) flap(side int, up bool) { g.net.Pair[side].SetUp(g.t, up) }

func (g *namespaces) calm() {
	for side := range g.net.Pair {
		f := netns.Faults{}
		if !g.plan.Kind.Faults(side).Reorder {
			f.Delay = g.plan.Switch[side].Delay // nothing under way is overtaken
		}
		g.net.SetFaults(side, f)
	}
}

func (g *namespaces) inject(to, as int, frame []byte) {
	if room := g.plan.MTU - overhead; len(frame) > room {
		frame = frame[:room]
	}
	g.sender[1-to%2](g.addr(to), frame)
}

func (g *namespaces) faults() map[string]uint64 {
	by := make(map[string]uint64)
	for side := range g.net.Pair {
		x := g.net.Passed(side)
		by["lost"] += x.Dropped
		by["corrupted"] += x.Corrupted
		by["duplicated"] += x.Duplicated
		by["reordered"] += x.Reordered
		by["overrun"] += x.Overflowed
	}
	return by
}

func (g *namespaces) close() {} // the test's end does
