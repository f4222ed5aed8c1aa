package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
	"github.com/dgrdma/dgrdma/transport/internal/rtnl"
)

// Config says how to open a socket. Its zero value has the good defaults.
type Config struct {
	// Addr is the local address. A missing IP is 127.0.0.1. [::] stands for all addresses of
	// this machine, IPv6 and IPv4, or IPv4 alone where the system has no IPv6; 0.0.0.0 for all of
	// IPv4. Port 0 is any free one.
	Addr netip.AddrPort
	// MTU is the largest IP packet in bytes. 0: that of the interface with Addr, or of the
	// one by which a peer is reached.
	MTU int
	// Buffer is the wanted size of the socket's buffers in bytes. 0: as much as
	// is of use and allowed. Negative: the kernel's default stays.
	Buffer int
	// NoGSO and NoGRO switch offload off, for sending and for receiving.
	NoGSO, NoGRO bool
}

const (
	prefix    = 2 // bytes before the frame header
	udpHeader = 8 //
)

// Listen opens a socket.
func Listen(cfg Config) (*Conn, error) {
	want := cfg.Addr
	if !want.Addr().IsValid() {
		want = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), want.Port())
	}
	want = netip.AddrPortFrom(want.Addr().Unmap(), want.Port())
	if err := transport.Usable(want.Addr()); err != nil {
		return nil, fmt.Errorf("dgrdma: listen on UDP %v: %w", want, err)
	}
	ifMTU, err := interfaceMTU(want.Addr())
	if err != nil {
		return nil, fmt.Errorf("dgrdma: listen on UDP %v: %w", want, err)
	}
	c := &Conn{every: want.Addr().IsUnspecified(), mtu: ifMTU}
	if cfg.MTU != 0 {
		if c.mtu = cfg.MTU; c.mtu < transport.LeastMTU || c.mtu > transport.MostMTU {
			return nil, fmt.Errorf("dgrdma: listen on UDP %v: MTU %d, need %d to %d", want, cfg.MTU, transport.LeastMTU, transport.MostMTU)
		}
		c.fixed = true
	}
	c.mtu = min(c.mtu, transport.MostMTU)
	fd, want, err := openAt(want, open)
	if err != nil {
		return nil, fmt.Errorf("dgrdma: listen on UDP %v: %w", want, os.NewSyscallError("socket", err))
	}
	c.v6 = want.Addr().Is6()
	if c.socket, err = mmsg.New(fd); err != nil {
		return nil, fmt.Errorf("dgrdma: listen on UDP %v: %w", want, err)
	}
	if err := c.socket.Control(func(fd int) error { return c.setUp(fd, want, cfg) }); err != nil {
		c.socket.Close()
		return nil, fmt.Errorf("dgrdma: listen on UDP %v: %w", want, err)
	}
	c.routes, _ = rtnl.Open() // without, the interface's MTU is all that is known
	c.makeRoom()
	return c, nil
}

// openAt opens a socket for an address. All addresses are those of IPv4 where the system has no
// others.
func openAt(want netip.AddrPort, open func(v6 bool) (int, error)) (int, netip.AddrPort, error) {
	fd, err := open(want.Addr().Is6())
	if err == unix.EAFNOSUPPORT && want.Addr().IsUnspecified() {
		want = netip.AddrPortFrom(netip.IPv4Unspecified(), want.Port())
		fd, err = open(false)
	}
	return fd, want, err
}

func open(v6 bool) (int, error) {
	family := unix.AF_INET
	if v6 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	return fd, err
}

func (c *Conn) setUp(fd int, want netip.AddrPort, cfg Config) error {
	if err := setAddressing(fd, c.v6, c.every); err != nil {
		return err
	}
	c.wanted = cfg.Buffer
	c.buffers = mmsg.SetBuffers(fd, c.wanted)
	if err := bind(fd, want, freePort); err != nil {
		return refused.Bind(os.NewSyscallError("bind", err), c.every)
	}
	bound, err := boundTo(fd)
	if err != nil {
		return err
	}
	c.local = netip.AddrPortFrom(want.Addr(), bound.Port())
	// Both are only asked for; without them every frame is a datagram.
	if _, err := unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT); err == nil && !cfg.NoGSO {
		c.gso.Store(true)
	}
	c.ecn = tellECN(fd, c.v6, c.every)
	c.gro = !cfg.NoGRO && unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) == nil
	return nil
}

// setAddressing sets what a socket's addresses, and the frames that it sends, may be.
func setAddressing(fd int, v6, every bool) (err error) {
	// Never fragmented, and whatever the network reports of a path's MTU is not
	// believed: with IP_PMTUDISC_DO, one forged packet would stop a flow. With INTERFACE the kernel
	// does not even note it for others, such as TCP; but over IPv4 it lets routers fragment, and what is
	// put together from fragments at such rates may be of two packets (RFC 4963).
	set := func(level, option, value int) {
		err = errors.Join(err, os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, level, option, value)))
	}
	if v6 {
		only := 1
		if every {
			only = 0
			set(unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
		set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only)
		set(unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_INTERFACE)
	}
	if every {
		set(unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	}
	if every || !v6 {
		set(unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	}
	return err
}

// Buffers are the sizes of the socket's buffers, as the kernel counts them: with
// its own overhead, which is about as much as the data.
type Buffers = mmsg.Buffers

// portTries is how often a free port is chosen that another socket takes before ours does.
// Arbitrary: it is rare even once.
const portTries = 8

// bind binds a socket, with port 0 to one that choose says is free.
func bind(fd int, want netip.AddrPort, choose func(netip.AddrPort) uint16) error {
	if want.Port() != 0 {
		return unix.Bind(fd, sockaddr(want, want.Addr().Is6()))
	}
	// A socket that chose its port itself would lose it when it is not connected any more.
	err := error(unix.EADDRINUSE)
	for n := 0; n < portTries && err == unix.EADDRINUSE; n++ {
		err = unix.Bind(fd, sockaddr(netip.AddrPortFrom(want.Addr(), choose(want)), want.Addr().Is6()))
	}
	return err
}

// freePort returns a port that was free just now, or 0.
func freePort(want netip.AddrPort) uint16 {
	fd, err := open(want.Addr().Is6())
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	if unix.Bind(fd, sockaddr(want, want.Addr().Is6())) != nil {
		return 0
	}
	at, _ := boundTo(fd)
	return at.Port()
}

// Here reports why a socket cannot be at that address alone: no interface of this machine that is up
// has it.
func Here(ip netip.Addr) error {
	if err := transport.OneHost(ip); err != nil {
		return err
	}
	_, err := interfaceMTU(ip)
	return err
}

// interfaceMTU returns the MTU of the interface that has the address.
func interfaceMTU(ip netip.Addr) (int, error) {
	if ip.IsUnspecified() {
		return transport.MostMTU, nil // whatever interface it is
	}
	ifs, err := net.Interfaces()
	if err != nil {
		return 0, err
	}
	for _, ifi := range ifs {
		addrs, err := ifi.Addrs()
		if err != nil {
			return 0, err
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			// All of 127.0.0.0/8 is local.
			if err != nil || p.Addr() != ip.WithZone("") && !(ip.IsLoopback() && p.Contains(ip)) || ip.Zone() != "" && ip.Zone() != ifi.Name {
				continue
			}
			if ifi.Flags&net.FlagUp == 0 {
				return 0, fmt.Errorf("interface %s is down; bring it up with: ip link set %s up", ifi.Name, ifi.Name)
			}
			return ifi.MTU, nil
		}
	}
	return 0, errors.New(refused.Elsewhere)
}
