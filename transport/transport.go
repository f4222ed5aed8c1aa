// Package transport is what the protocol engine needs of a datagram network:
// batches of datagrams in, batches out, and comparable addresses. The wires are
// in the packages below it; each of them implements [Conn].
//
//	in := make([]transport.Datagram, conn.Caps().Batch)
//	for {
//		n, err := conn.Recv(in, transport.Forever)
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
// Recv, or with the last reference to the [Conn]: their memory may be none of Go's,
// and a view does not keep it. Close leaves them alone, since it may come amid a batch:
// whoever received calls Recv once more behind it, which fails, and gives back memory
// that the transport may have kept for them. What Send is given belongs to the caller
// again when Send returns.
//
// # Concurrency
//
// One goroutine at a time calls Recv, one at a time (possibly another) calls
// Send. Close may be called by anyone, at any time, any number of times.
//
// # Errors
//
// Recv and Send return only errors that end the transport; after Close they
// are net.ErrClosed to errors.Is, also where they were waiting. A datagram that the system refuses for a
// passing reason is loss, which the engine repairs: it is counted in [Stats].
//
// # Limits
//
// A frame is at most Caps.MTU bytes; a batch may have any length.
//
// # Wrappers
//
// Nothing in [Conn] is optional, so that what wraps one loses none of its
// abilities: it embeds the Conn and overrides what it means to. A wire on which
// Focus and Select change nothing embeds [Indifferent].
package transport

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"time"
	"unique"
)

// Conn sends and receives datagrams that hold frames.
type Conn interface {
	// Recv waits until at least one datagram is there, fills dst from the start
	// and returns how many it filled. It waits no longer than that, with
	// [Forever] without end. It returns 0 only if wait is not Forever: nothing
	// came, or only what is not for us. Datagrams that did not fit their buffer
	// are counted and dropped, never returned cut. Without room in dst it does nothing,
	// and returns 0 at once.
	Recv(dst []Datagram, wait time.Duration) (n int, err error)
	// Send transmits the batch in order and returns how many datagrams the
	// system took or refused for a passing reason. n < len(batch) only with
	// an error. It does not wait until there is room: what is received waits as long where
	// the goroutine that receives sends, too.
	Send(batch []Outgoing) (n int, err error)
	// MTU returns the room for frame header and messages on the way to that
	// peer: Caps.MTU, or less.
	MTU(to Addr) int
	// MayNarrow reports whether something on the way to that peer may carry less than that,
	// which nobody here knows.
	MayNarrow(to Addr) bool
	// IsNear reports whether that peer is on this machine, or on a network that this machine is on too, with no router in between, as far as is known here.
	// Where nothing is known of a round trip, it is taken for a short one then.
	IsNear(to Addr) bool
	// Towards returns the address of a peer as Recv will have it in From when that answers: where
	// this machine is at several addresses, with the one of them that its frames will come to. If
	// peer has that already it only fails where this machine has it no more.
	Towards(peer Addr) (Addr, error)
	// Focus says that only this peer will be sent to and listened to, which some
	// wires are faster for; the zero Addr, that it may be anyone. It may be called
	// at any time.
	Focus(peer Addr)
	// Select has frames for that endpoint id passed on, too, and perhaps others.
	Select(id uint16) error
	// Stats may be called at any time.
	Stats() Stats
	Caps() Caps
	LocalAddr() Addr
	// Close ends Recv and Send. What Recv returned last stays good until one more Recv, if
	// the Conn is reachable, and as long the transport may keep the memory, and what
	// belongs to it.
	Close() error
}

// Forever has Recv wait until a datagram comes.
const Forever time.Duration = -1

// Indifferent is embedded by a [Conn] that is as fast for one peer as for many,
// passes on frames for every endpoint id, is at one address, carries frames as long to everyone, and has no routers.
type Indifferent struct{}

// Towards implements [Conn].
func (Indifferent) Towards(peer Addr) (Addr, error) { return peer, nil }

// MayNarrow implements [Conn].
func (Indifferent) MayNarrow(Addr) bool { return false }

// IsNear implements [Conn].
func (Indifferent) IsNear(Addr) bool { return true }

// Focus implements [Conn].
func (Indifferent) Focus(Addr) {}

// Select implements [Conn].
func (Indifferent) Select(uint16) error { return nil }

// Datagram is one received frame and where it came from.
type Datagram struct {
	From Addr
	Data []byte // begins at the frame header
	ECN  ECN    // with which it arrived; NotECT where Caps.ECN is false
}

// Outgoing is one frame to be sent. Buf begins with Caps.Headroom bytes that
// the transport may fill with its own header; the frame header follows. Rest is the
// frame's next part, and Tail its end, if those lie elsewhere, and not to be written to. What To
// points to never changes: frames to one peer share it, and a transport that
// sees the same pointer again need not look.
type Outgoing struct {
	To   *Addr
	Buf  []byte
	Rest []byte
	Tail []byte
	ECN  ECN // with which it leaves, where Caps.ECN: NotECT or ECT0
}

// Len returns the length of the frame, and of the room in front of it.
func (o *Outgoing) Len() int { return len(o.Buf) + len(o.Rest) + len(o.Tail) }

// Caps says what a transport can do.
type Caps struct {
	MTU      int  // room for frame header and messages
	Headroom int  // bytes the transport wants in front of each frame
	Batch    int  // datagrams it moves at once; a hint for the size of batches
	ECN      bool // datagrams leave with their marks, and come with them
	Blocks   bool // Recv keeps its thread while it waits: better not share it
}

// What wires have in common.
const (
	// LeastMTU is the least MTU that an endpoint takes, of IP or Ethernet: what no wire
	// is below, with room for the shortest frame that is of use.
	LeastMTU = 128
	MostMTU  = 1<<16 - 1
	// LeastEtherType is where numbers stop to be the length of an IEEE 802.3 frame.
	LeastEtherType = 0x0600
)

// Stats are a transport's own counters, all since it was opened.
type Stats struct {
	SendDrops   uint64 `count:"send_drops" help:"Datagrams that the system refused for a passing reason."`
	KernelDrops uint64 `count:"kernel_drops" help:"Datagrams that the system dropped because they were received too slowly."`
	Truncated   uint64 `count:"truncated" help:"Datagrams longer than the frame size agreed on."`
	Foreign     uint64 `count:"foreign" help:"Datagrams that are no frames of this protocol, come from the UDP port 0 or from no single machine's address, or were sent to a group or by broadcast."`
}

// Kind says what an [Addr] is an address of.
type Kind uint8

const (
	KindNone  Kind = iota
	KindUDP        // IP address and port
	KindEther      // MAC address
)

// Addr is the address of a datagram's sender or receiver: a comparable value,
// so that it can be checked against the configured one without allocation. Where this
// machine is at several addresses, it has the one that the other side asked, too: who asks two
// of them is two peers, as it would be to TCP.
type Addr struct {
	ip    netip.Addr // or a MAC address in the first bytes
	local unique.Handle[netip.Addr]
	port  uint16
	kind  Kind
}

// UDPAddr returns the address of a UDP socket. An IPv4 address mapped into
// IPv6 is the same as the IPv4 address.
func UDPAddr(ap netip.AddrPort) Addr {
	return Addr{kind: KindUDP, ip: ap.Addr().Unmap(), port: ap.Port()}
}

// EtherAddr returns the address of an Ethernet interface.
func EtherAddr(mac [6]byte) Addr {
	var b [16]byte
	copy(b[:], mac[:])
	return Addr{kind: KindEther, ip: netip.AddrFrom16(b)}
}

// Kind returns what a is an address of.
func (a Addr) Kind() Kind { return a.kind }

// AddrPort returns the IP address and port of a KindUDP address.
func (a Addr) AddrPort() netip.AddrPort {
	if a.kind != KindUDP {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.ip, a.port)
}

// MAC returns the hardware address of a KindEther address.
func (a Addr) MAC() (mac [6]byte) {
	if a.kind == KindEther {
		b := a.ip.As16()
		copy(mac[:], b[:])
	}
	return mac
}

// Local returns the address of this machine that the other side asks, and is answered from;
// none: the one that the transport is at.
func (a Addr) Local() netip.Addr {
	if a.local == (unique.Handle[netip.Addr]{}) {
		return netip.Addr{}
	}
	return a.local.Value()
}

// WithLocal returns a with another Local, which may be none.
func (a Addr) WithLocal(ip netip.Addr) Addr {
	a.local = unique.Handle[netip.Addr]{}
	if ip.IsValid() {
		a.local = unique.Make(ip)
	}
	return a
}

// Host returns the address of the machine or interface: a without its port, and whatever
// address of ours it asks.
func (a Addr) Host() Addr {
	a.port, a.local = 0, unique.Handle[netip.Addr]{}
	return a
}

// Sends reports whether one who is at a can send to that address: both are MAC addresses, or
// IP addresses of the same version; and who is at [::] is at IPv4 addresses, too. To the UDP port 0
// nobody can.
func (a Addr) Sends(to Addr) bool {
	return a.kind == to.kind && (a.ip.Is4() == to.ip.Is4() || a.kind == KindUDP && a.ip == netip.IPv6Unspecified()) &&
		(to.port != 0 || to.kind != KindUDP)
}

// Single reports whether a is the address of one machine or interface: an answer to any other would reach a group, every
// machine, or none.
func (a Addr) Single() bool {
	if a.kind == KindEther {
		mac := a.MAC()
		return mac[0]&1 == 0 && mac != [6]byte{}
	}
	return standsFor(a.ip) == ""
}

// Append appends a binary form of a, which no other address has.
func (a Addr) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, byte(a.kind)), a.port)
	for _, ip := range [...]netip.Addr{a.ip, a.Local()} {
		start := len(b)
		b, _ = ip.AppendBinary(append(b, 0, 0))                     // never fails
		binary.BigEndian.PutUint16(b[start:], uint16(len(b)-start)) // it varies
	}
	return b
}

// IsZero reports whether a is no address.
func (a Addr) IsZero() bool { return a.kind == KindNone }

// String returns the address without Local.
func (a Addr) String() string {
	switch a.kind {
	case KindUDP:
		return a.AddrPort().String()
	case KindEther:
		b := make([]byte, 0, 17)
		for i, x := range a.MAC() {
			if i > 0 {
				b = append(b, ':')
			}
			b = hex.AppendEncode(b, []byte{x})
		}
		return string(b)
	}
	return "none"
}
