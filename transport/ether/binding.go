package ether

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport/internal/rtnl"
)

// binding says which interface the socket belongs to. The kernel knows interfaces
// by numbers: one that was deleted and made again has the same name, perhaps the
// same address, and another number, and the socket must be bound to it anew.
type binding struct {
	ifindex atomic.Int32
	returns atomic.Uint32 // how often the interface came back
	away    atomic.Bool   // the interface is down or gone, as far as we know
	links   *rtnl.Socket  // nil where the system does not let us ask

	mu        sync.Mutex
	low, high uint16    // ids that pass the filter
	looked    time.Time // when the interface was looked for last
}

// lookAgain is how often an interface is looked for that is away.
const lookAgain = 100 * time.Millisecond

// Select implements [transport.Conn].
func (c *Conn) Select(id uint16) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.low == 0 || c.low <= id && id <= c.high {
		return nil
	}
	low, high := min(c.low, id), max(c.high, id)
	program, err := filter(int(c.ifindex.Load()), low, high)
	if err != nil {
		return err
	}
	if err := c.socket.Control(func(fd int) error { return attach(fd, program) }); err != nil {
		return fmt.Errorf("set the filter of interface %s: %w", c.name, err)
	}
	c.low, c.high = low, high
	return nil
}

// attach replaces a socket's filter.
func attach(fd int, program []bpf.RawInstruction) error {
	raw := make([]unix.SockFilter, len(program))
	for i, in := range program {
		raw[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(raw)), Filter: &raw[0]})
	return os.NewSyscallError("setsockopt", err)
}

// wentAway notes what the kernel said when something was sent. It says so once to
// whoever comes first; who waits for frames must look for the interface, too.
func (c *Conn) wentAway() {
	if !c.away.Swap(true) {
		c.socket.Nudge()
	}
}

// boundTo returns the number of the interface to which the socket belongs: -1 if that was
// deleted, even if the number is used again.
func (c *Conn) boundTo() (index int) {
	c.socket.Control(func(fd int) error {
		name, err := unix.Getsockname(fd)
		if ll, ok := name.(*unix.SockaddrLinklayer); ok && err == nil {
			index = ll.Ifindex
		}
		return err
	})
	return index
}

// comeBack looks whether the interface is there again, and binds the socket to it.
func (c *Conn) comeBack() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.away.Load() || c.links == nil || now.Sub(c.looked) < lookAgain {
		return nil
	}
	c.looked = now
	if index := c.boundTo(); index >= 0 {
		// It is the same interface, whatever its name is now: it was down.
		if link, err := c.links.LinkByIndex(index); err == nil && link.Up {
			c.back()
		}
		return nil
	}
	link, err := c.links.LinkByName(c.name)
	if err != nil || !link.Up {
		return nil // not yet
	}
	if mac := c.mac; len(link.Address) != len(mac) || [6]byte(link.Address) != mac {
		return fmt.Errorf("dgrdma: interface %s was deleted and made again with the address %v instead of %v, by which peers know it: open it again",
			c.name, net.HardwareAddr(link.Address), net.HardwareAddr(mac[:]))
	}
	program, err := filter(link.Index, c.low, c.high)
	if err == nil {
		err = c.socket.Control(func(fd int) error {
			if err := attach(fd, program); err != nil {
				return err
			}
			return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{
				Protocol: binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, c.etherType)), Ifindex: link.Index,
			}))
		})
	}
	if err != nil {
		return nil // it went again
	}
	c.ifindex.Store(int32(link.Index))
	c.back()
	return nil
}

// back notes that the interface is there again.
func (c *Conn) back() {
	c.returns.Add(1)
	c.away.Store(false)
}
