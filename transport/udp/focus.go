package udp

import (
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

// focus is the one peer that is sent and listened to, and the socket that is connected to it.
type focus struct {
	peer   transport.Addr
	socket *mmsg.Socket
	second bool          // socket is not that of the Conn
	ecn    transport.ECN // with which all leaves by a second one; of who sends
}

// focusing is what Focus and the receiver agree on. Reading goes without mu where the
// field says so.
type focusing struct {
	mu      sync.Mutex
	current *focus // what Focus said last; Conn.focused has it for who sends
	heard   *focus // where the receiver listens: an earlier one until that is empty
	drops   dropped
}

// Focus implements [transport.Conn]. A connected socket looks for no route, and is told no address:
// without offload that is a sixth of what sending costs, and a tenth of a round trip. Only a socket at one IPv4 address is
// connected itself. One of IPv6 would hear no other peer when it is connected no more: the kernel
// keeps the address of the peer (__udp_disconnect leaves sk_v6_daddr alone, and the lookup asks
// it). One at all addresses would be at one of them. Beside those a second socket is opened, at the same port.
// Where that fails, as in another network namespace, everything stays as it is.
func (c *Conn) Focus(peer transport.Addr) {
	c.focusing.mu.Lock()
	defer c.focusing.mu.Unlock()
	if now := c.focusing.current; now == nil && peer.IsZero() || now != nil && now.peer == peer || c.socket.Closed() {
		return
	}
	c.endFocus()
	if !c.LocalAddr().Sends(peer) {
		return
	}
	f := &focus{peer: peer, socket: c.socket}
	if f.second = c.v6 || c.every; f.second {
		f.socket = c.openSecond(peer)
	} else if c.socket.Control(func(fd int) error { return unix.Connect(fd, sockaddr(peer.AddrPort(), false)) }) != nil {
		return
	}
	if f.socket != nil {
		c.setFocus(f)
	}
}

// setFocus has f sent to, and listened to once the receiver sees it. Guarded by focusing.mu.
func (c *Conn) setFocus(f *focus) {
	c.focusing.current = f
	c.focused.Store(f)
	if f.second {
		c.hearNobody()
		c.socket.Nudge() // where the receiver may wait
	}
}

// endFocus has everyone sent and listened to. Guarded by focusing.mu.
func (c *Conn) endFocus() {
	old := c.focusing.current
	if old == nil {
		return
	}
	c.focusing.current = nil
	c.focused.Store(nil)
	if !old.second {
		// What is being sent without an address fails from now on, as loss.
		c.socket.Control(func(fd int) error { dissolve(fd); return nil })
		return
	}
	c.hearEveryone()
	if old != c.focusing.heard {
		old.socket.Close()
		return
	}
	// What the peer sends now goes to the first socket; what came before is received first.
	old.socket.Control(func(fd int) error { c.divert(fd, old.peer); return nil })
	old.socket.Nudge()
}

// close closes the second sockets. The first one is closed before, so that no more come.
func (f *focusing) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range []*focus{f.current, f.heard} {
		if x != nil && x.second {
			x.socket.Close()
		}
	}
}

// turn has the receiver listen where Focus says, once what has come to the place before was received.
func (c *Conn) turn() (int, error) {
	r := &c.receiving
	if n, err := r.in.Receive(c.hearsFrom(r.by), 0); n > 0 || err != nil {
		return n, err
	}
	c.focusing.mu.Lock()
	defer c.focusing.mu.Unlock()
	if old := c.focusing.heard; old != nil && old.second {
		c.focusing.drops.closed(old.socket)
		old.socket.Close()
	}
	r.by = c.focusing.current
	c.focusing.heard, r.from = r.by, transport.Addr{}
	return 0, nil
}

// hearsFrom returns the socket by which f is heard, or everyone.
func (c *Conn) hearsFrom(f *focus) *mmsg.Socket {
	if f == nil {
		return c.socket
	}
	return f.socket
}

// hearNobody has the first socket drop what comes, since the receiver looks at the second only.
// Guarded by focusing.mu.
func (c *Conn) hearNobody() {
	c.socket.Control(func(fd int) error {
		c.focusing.drops.pause(fd)
		return dropAll(fd)
	})
}

// hearEveryone takes hearNobody back. Guarded by focusing.mu.
func (c *Conn) hearEveryone() {
	c.socket.Control(func(fd int) error {
		takeAll(fd)
		c.focusing.drops.resume(fd)
		return nil
	})
}

// divert has a second socket hear its peer no more, and nobody else: it is connected to its own address.
func (c *Conn) divert(fd int, peer transport.Addr) {
	at := netip.AddrPortFrom(c.from(&peer), c.local.Port())
	if unix.Connect(fd, sockaddr(at, at.Addr().Is6())) != nil {
		dropAll(fd) // the address is gone
	}
}

// openSecond opens a socket at the port of the first one that is connected to a peer, at the
// address that the peer asks; nil: it cannot.
func (c *Conn) openSecond(peer transport.Addr) *mmsg.Socket {
	at := netip.AddrPortFrom(c.from(&peer), c.local.Port())
	if at.Addr().IsUnspecified() || at.Addr().Is6() != peer.AddrPort().Addr().Is6() {
		return nil
	}
	fd, err := open(at.Addr().Is6())
	if err != nil {
		return nil
	}
	second, err := mmsg.New(fd)
	if err != nil {
		return nil
	}
	err = c.socket.Control(func(first int) error {
		return second.Control(func(fd int) error { return c.connectBeside(first, fd, at, peer) })
	})
	if err != nil {
		second.Close()
		return nil
	}
	return second
}

// connectBeside gives a new socket the port of the first, and connects it.
func (c *Conn) connectBeside(first, fd int, at netip.AddrPort, peer transport.Addr) error {
	if !sameNamespace(first, fd) {
		return unix.EXDEV
	}
	v6 := at.Addr().Is6()
	if err := setAddressing(fd, v6, false); err != nil {
		return err
	}
	mmsg.SetBuffers(fd, c.wanted)
	if c.ecn {
		tellECN(fd, v6, false)
	}
	if c.gro {
		unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1)
	}
	// What others send to that address would come to the new socket until it is connected.
	if err := dropAll(fd); err != nil {
		return err
	}
	// Sockets share a port only if all agree, and are of one user. Later ones may not.
	sharePort(first, 1)
	sharePort(fd, 1)
	err := c.withHeard(func() error { return unix.Bind(fd, sockaddr(at, v6)) })
	sharePort(first, 0)
	sharePort(fd, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, sockaddr(peer.AddrPort(), v6)); err != nil {
		return err
	}
	return takeAll(fd)
}

// withHeard calls bind while the second socket to which the receiver may still listen shares its port.
func (c *Conn) withHeard(bind func() error) error {
	h := c.focusing.heard
	if h == nil || !h.second {
		return bind()
	}
	return h.socket.Control(func(fd int) error {
		sharePort(fd, 1)
		defer sharePort(fd, 0)
		return bind()
	})
}

// sharePort says whether a socket lets others have its port that say so, too. Where that is unknown, bind fails.
func sharePort(fd, on int) { unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, on) }

// sameNamespace reports whether two sockets are known to be in the same network namespace.
func sameNamespace(a, b int) bool {
	x, err := unix.GetsockoptUint64(a, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return false
	}
	y, err := unix.GetsockoptUint64(b, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return err == nil && x == y
}

// dropAll has the kernel drop what comes to a socket.
func dropAll(fd int) error {
	program := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &program})
}

// takeAll takes dropAll back.
func takeAll(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0)
}

// dissolve makes a connected socket one that anyone may send to.
func dissolve(fd int) {
	unspecified := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	mmsg.Connect(fd, &unspecified)
}

// dropped counts what the kernel dropped since a Conn was opened, but for what dropAll did. Guarded by
// focusing.mu.
type dropped struct {
	before uint64 // by sockets that are closed
	paused bool   // dropAll holds for the first socket
	at     uint64 // what that had dropped then
	wanted uint64 // what it dropped because of dropAll
}

func (d *dropped) closed(s *mmsg.Socket) {
	s.Control(func(fd int) error {
		d.before += mmsg.Drops(fd)
		return nil
	})
}

func (d *dropped) pause(fd int) { d.paused, d.at = true, mmsg.Drops(fd) }

func (d *dropped) resume(fd int) {
	d.wanted += mmsg.Drops(fd) - d.at
	d.paused = false
}

// drops returns how many datagrams the kernel dropped because they were received too slowly.
func (c *Conn) drops() (n uint64) {
	c.focusing.mu.Lock()
	defer c.focusing.mu.Unlock()
	d := &c.focusing.drops
	n = d.before - d.wanted
	c.socket.Control(func(fd int) error {
		if d.paused {
			n += d.at
			return nil
		}
		n += mmsg.Drops(fd)
		return nil
	})
	if h := c.focusing.heard; h != nil && h.second {
		h.socket.Control(func(fd int) error {
			n += mmsg.Drops(fd)
			return nil
		})
	}
	return n
}
