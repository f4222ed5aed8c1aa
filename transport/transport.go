// Package transport is what the protocol engine needs of a datagram network:
// batches of datagrams in, batches out, and comparable addresses. The wires are
// in the packages below it; each of them implements [Conn].
//
//	in := make([]transport.Datagram, conn.Caps().Batch)
//	for {
//		n, err := conn.Recv(in)
//		if err != nil {
//			return err
//		}
//		for _, d := range in[:n] {
//			f, err := frame.Parse(d.Data) // here d.Data is good, and no longer
//		}
//	}
//
// # Buffers
//
// What Recv returns are views that belong to the transport and die at the next
// Recv. What Send is given belongs to the caller again when Send returns.
//
// # Concurrency
//
// One goroutine at a time calls Recv, one at a time (possibly another) calls
// Send. Close may be called by anyone, at any time, any number of times.
//
// # Errors
//
// Recv and Send return only errors that end the transport; after Close they
// are net.ErrClosed to errors.Is. A datagram that the system refuses for a
// passing reason is loss, which the engine repairs: it is counted in [Stats].
//
// # Limits
//
// A frame is at most Caps.MTU bytes; a batch may have any length.
package transport

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"time"
)

// Conn sends and receives datagrams that hold frames.
type Conn interface {
	// Recv blocks until at least one datagram is there, fills dst from the
	// start and returns how many it filled, at least 1. Datagrams that did not
	// fit their buffer are counted and dropped, never returned cut.
	Recv(dst []Datagram) (n int, err error)
	// Send transmits the batch in order and returns how many datagrams the
	// system took or refused for a passing reason. n < len(batch) only with
	// an error.
	Send(batch []Outgoing) (n int, err error)
	Caps() Caps
	LocalAddr() Addr
	Close() error
}

// Datagram is one received frame and where it came from.
type Datagram struct {
	From Addr
	Data []byte // begins at the frame header
}

// Outgoing is one frame to be sent. Buf begins with Caps.Headroom bytes that
// the transport may fill with its own header; the frame header follows. What To
// points to never changes: frames to one peer share it, and a transport that
// sees the same pointer again need not look.
type Outgoing struct {
	To  *Addr
	Buf []byte
}

// Caps says what a transport can do.
type Caps struct {
	MTU      int  // room for frame header and messages
	Headroom int  // bytes the transport wants in front of each frame
	Batch    int  // datagrams it moves at once; a hint for the size of batches
	Blocks   bool // Recv keeps its thread while it waits: better not share it
}

// Stats are a transport's own counters, all since it was opened. A transport
// that keeps them implements [Counter].
type Stats struct {
	SendDrops   uint64 // refused by the system for a passing reason
	KernelDrops uint64 // dropped by the system because we received too slowly
	Truncated   uint64 // longer than the frame size agreed on
	Foreign     uint64 // not frames of ours: wrong type, too short for a prefix
}

// Counter is implemented by transports with counters.
type Counter interface {
	Stats() Stats
}

// Poller is implemented by transports that can be asked without waiting, or
// waiting no longer than some time.
type Poller interface {
	// Poll is Recv that returns 0 when nothing is there, and nothing came within
	// that time, or only what is not for us. It takes Recv's place: the two must not be called at the same time.
	Poll(dst []Datagram, wait time.Duration) (n int, err error)
}

// Router is implemented by transports on which the way to some peers is
// narrower than Caps.MTU.
type Router interface {
	// MTUTo returns the room for frame header and messages to that peer.
	MTUTo(Addr) int
}

// Focuser is implemented by transports that are faster while they have but one
// peer.
type Focuser interface {
	// Focus says that only this peer will be sent to and listened to; the zero
	// Addr, that it may be anyone. It may be called at any time.
	Focus(Addr)
}

// Selector is implemented by transports that pass on only frames for certain
// endpoint ids.
type Selector interface {
	// Select has frames for that id passed on, too, and perhaps others.
	Select(id uint16) error
}

// Kind says what an [Addr] is an address of.
type Kind uint8

const (
	KindNone  Kind = iota
	KindUDP        // IP address and port
	KindEther      // MAC address
	KindSim        // a number, for networks in memory
)

// Addr is the address of a datagram's sender or receiver: a comparable value,
// so that it can be checked against the configured one without allocation.
type Addr struct {
	kind Kind
	mac  [6]byte
	num  uint32
	ip   netip.AddrPort
}

// UDPAddr returns the address of a UDP socket. An IPv4 address mapped into
// IPv6 is the same as the IPv4 address.
func UDPAddr(ap netip.AddrPort) Addr {
	return Addr{kind: KindUDP, ip: netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}
}

// EtherAddr returns the address of an Ethernet interface.
func EtherAddr(mac [6]byte) Addr { return Addr{kind: KindEther, mac: mac} }

// SimAddr returns an address in a simulated network.
func SimAddr(n uint32) Addr { return Addr{kind: KindSim, num: n} }

// Kind returns what a is an address of.
func (a Addr) Kind() Kind { return a.kind }

// AddrPort returns the IP address and port of a KindUDP address.
func (a Addr) AddrPort() netip.AddrPort { return a.ip }

// MAC returns the hardware address of a KindEther address.
func (a Addr) MAC() [6]byte { return a.mac }

// Num returns the number of a KindSim address.
func (a Addr) Num() uint32 { return a.num }

// Host returns the address of the machine or interface: a without its port.
func (a Addr) Host() Addr {
	if a.kind == KindUDP {
		a.ip = netip.AddrPortFrom(a.ip.Addr(), 0)
	}
	return a
}

// Append appends a binary form of a, which no other address has.
func (a Addr) Append(b []byte) []byte {
	b = append(b, byte(a.kind))
	b = append(b, a.mac[:]...)
	b = binary.LittleEndian.AppendUint32(b, a.num)
	b, _ = a.ip.AppendBinary(b) // never fails
	return b
}

// IsZero reports whether a is no address.
func (a Addr) IsZero() bool { return a.kind == KindNone }

func (a Addr) String() string {
	switch a.kind {
	case KindUDP:
		return a.ip.String()
	case KindEther:
		b := make([]byte, 0, 17)
		for i, x := range a.mac {
			if i > 0 {
				b = append(b, ':')
			}
			b = hex.AppendEncode(b, []byte{x})
		}
		return string(b)
	case KindSim:
		return "sim:" + strconv.FormatUint(uint64(a.num), 10)
	}
	return "none"
}
