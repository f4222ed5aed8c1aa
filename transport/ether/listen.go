package ether

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
	"github.com/dgrdma/dgrdma/transport/internal/rtnl"
)

// EtherType is OpenCPI's number for the data plane; the specification leaves it
// open.
const EtherType = 0xF042

// Config says which interface to open and how. It needs a name or an address;
// the zero values of the rest have the good defaults.
type Config struct {
	// Interface is the name of the interface.
	Interface string
	// MAC is the interface's address: to find it by, or to be checked.
	MAC *[6]byte
	// EtherType of the frames. 0: EtherType.
	EtherType uint16
	// ID is the endpoint id that received frames name as their destination.
	// 0: all ids.
	ID uint16
	// MTU is the room for frame header and messages. 0: that of the interface. Frames of
	// peers that use more of that are taken, too, with a ring more slowly.
	MTU int
	// Buffer is the wanted size of the socket's buffers in bytes, and of the ring. 0: as
	// much as is of use and allowed. Negative: the kernel's default stays.
	Buffer int
	// NoRing receives by system calls, into a buffer that takes memory only for frames
	// that wait, instead of through memory shared with the kernel.
	NoRing bool
	// NeedRing fails where the system refuses such memory, as sandboxes do. Without it
	// system calls are made there, too.
	NeedRing bool
	// NoXDP sends by system calls on the packet socket. Else frames leave by an AF_XDP socket, if
	// the system lets us have one, and nothing stands on the interface that frames would pass by then:
	// a queueing discipline that shapes traffic, or filters.
	NoXDP bool
	// NeedXDP fails where the system refuses an AF_XDP socket, and sends by it whatever stands on
	// the interface.
	NeedXDP bool
	// OnWay is told by which way frames leave: by AF_XDP, or why by system calls. Listen calls it, and
	// then Send if that changes. With NoXDP it is not called.
	OnWay func(iface string, why error)
}

// Listen opens an interface.
func Listen(cfg Config) (*Conn, error) {
	c, err := listen(cfg)
	if err != nil {
		what := cfg.Interface
		if what == "" && cfg.MAC != nil {
			what = net.HardwareAddr(cfg.MAC[:]).String()
		}
		return nil, fmt.Errorf("dgrdma: listen on Ethernet %s: %w", what, err)
	}
	return c, nil
}

func listen(cfg Config) (*Conn, error) {
	if cfg.Interface == "" && cfg.MAC == nil {
		return nil, errors.New("need the name or the address of an interface")
	}
	if cfg.EtherType == 0 {
		cfg.EtherType = EtherType
	}
	if cfg.EtherType < transport.LeastEtherType {
		return nil, fmt.Errorf("EtherType %#04x, need %#04x to 0xffff", cfg.EtherType, transport.LeastEtherType)
	}
	ifi, mac, err := findInterface(cfg.Interface, cfg.MAC)
	if err != nil {
		return nil, err
	}
	if ifi.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("interface %s is down; bring it up with: ip link set %s up", ifi.Name, ifi.Name)
	}
	carries := min(ifi.MTU, transport.MostMTU)
	mtu := cfg.MTU
	if mtu == 0 {
		mtu = carries
	}
	switch {
	case carries < transport.LeastMTU:
		return nil, fmt.Errorf("interface %s has MTU %d, need at least %d; raise it with: ip link set %s mtu 1500", ifi.Name, ifi.MTU, transport.LeastMTU, ifi.Name)
	case mtu < transport.LeastMTU || mtu > transport.MostMTU:
		return nil, fmt.Errorf("MTU %d, need %d to %d", mtu, transport.LeastMTU, carries)
	case mtu > carries:
		return nil, fmt.Errorf("MTU %d, but interface %s has %d; raise it with: ip link set %s mtu %d", mtu, ifi.Name, ifi.MTU, ifi.Name, mtu)
	}
	mine := &held{claim: claim{ifi.Name, mac, cfg.EtherType, cfg.ID}}
	if err := mine.take(); err != nil {
		return nil, err
	}
	fd, err := open(ifi, cfg.EtherType, cfg.ID)
	if err != nil {
		mine.release()
		return nil, err
	}
	c := &Conn{name: ifi.Name, mac: mac, mtu: mtu, etherType: cfg.EtherType, claim: mine, binding: binding{low: cfg.ID, high: cfg.ID}}
	c.ifindex.Store(int32(ifi.Index))
	if c.socket, err = mmsg.New(fd); err != nil {
		mine.release()
		return nil, err
	}
	// Of a Conn that nobody knows any more nothing is left.
	runtime.AddCleanup(c, (*held).release, mine)
	runtime.AddCleanup(c, func(s *mmsg.Socket) { s.Close() }, c.socket)
	c.socket.Control(func(fd int) error {
		// Saves a copy of each frame sent, where the kernel has it (4.20); the
		// filter would drop it anyway.
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
		c.buffers = mmsg.SetBuffers(fd, cfg.Buffer)
		return nil
	})
	if c.links, _ = rtnl.Open(); c.links != nil {
		runtime.AddCleanup(c, (*rtnl.Socket).Close, c.links)
	}
	if err := c.receiveBy(cfg, carries); err != nil {
		c.Close()
		return nil, err
	}
	if err := c.sendBy(cfg); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// receiveBy decides how frames are received.
func (c *Conn) receiveBy(cfg Config, carries int) (err error) {
	if !cfg.NoRing {
		c.ring, err = newRing(c.socket, cfg.Buffer, c.mtu, carries)
		switch {
		case err == nil:
			runtime.AddCleanup(c, (*ring).giveBack, c.ring)
			return nil
		case cfg.NeedRing:
			return err
		}
	}
	c.receiving.makeRoom(messages, carries)
	return nil
}

// sendBy decides how frames are sent.
func (c *Conn) sendBy(cfg Config) error {
	c.sending.calls.init(c)
	if !cfg.NoXDP {
		c.sending.xdp = newXDP(c, cfg)
	}
	within := busyFor
	if cfg.NeedXDP {
		within = busyLong
	}
	c.chooseWay(within)
	if err := c.WithoutXDP(); err != nil && cfg.NeedXDP {
		return err
	}
	if w := c.sending.xdp; w != nil {
		w.listening = false
		w.say()
	}
	return nil
}

// open returns a packet socket that is bound and filtered, and not watched by
// the runtime's poller.
func open(ifi *net.Interface, etherType, id uint16) (fd int, err error) {
	program, err := filter(ifi.Index, id, id)
	if err != nil {
		return 0, err
	}
	pc, err := packet.Listen(ifi, packet.Datagram, int(etherType), &packet.Config{Filter: program})
	if err != nil {
		return 0, explain(err)
	}
	// The duplicate is the same socket, still bound.
	defer pc.Close()
	raw, err := pc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(watched uintptr) {
		fd, failed = unix.FcntlInt(watched, unix.F_DUPFD_CLOEXEC, 0)
	})
	return fd, errors.Join(err, os.NewSyscallError("fcntl", failed))
}

// explain says what to do about the reasons why there is no packet socket.
func explain(err error) error {
	var listen *net.OpError
	if errors.As(err, &listen) {
		err = listen.Err // what was tried is said by Listen, and the address that this has is none
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		program, wrong := os.Executable()
		if wrong != nil {
			program = "PROGRAM"
		}
		return fmt.Errorf("%w: raw Ethernet needs the capability CAP_NET_RAW; grant it with: sudo setcap cap_net_raw+ep %s", err, program)
	case errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("%w: the system has no packet sockets (CONFIG_PACKET)", err)
	}
	return err
}
