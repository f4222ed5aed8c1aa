package dgrdma

import (
	"net/netip"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
)

// The types of the packages below that a program meets in fields and arguments here. Their own packages describe them whole.
type (
	// EndpointID names an endpoint within a cluster. 0 names none.
	EndpointID = frame.EndpointID
	// Seq is a frame id of DG/RDMA v1.07: a serial number of 16 bits (DGRDMA-013).
	Seq = frame.Seq
	// Frame is a parsed frame: a view of the datagram that has it.
	Frame = frame.Frame
	// Header is a frame header.
	Header = frame.Header
	// Message is a message header.
	Message = frame.Message
	// Cursor walks the messages of a parsed frame.
	Cursor = frame.Cursor
	// Handshake is a frame that begins a session between two endpoints of our own kind.
	Handshake = frame.Handshake
	// HandshakeKind is the kind of a Handshake.
	HandshakeKind = frame.HandshakeKind
	// Refusal is what a REFUSED says of its sender, and why there is no session.
	Refusal = frame.Refusal
	// ServiceList is the services that an endpoint has, as its handshake says them.
	ServiceList = frame.Services
	// ServiceEntry is one service of a ServiceList: its name and the addresses that it takes.
	ServiceEntry = frame.Service
	// ServiceName is the name of a service as frames have it: one to eight small letters, digits and hyphens, then zeros.
	ServiceName = frame.ServiceName

	// Addr is the address of a peer, or of this side, on a transport. It is comparable.
	Addr = transport.Addr
	// AddrKind says what an [Addr] is an address of.
	AddrKind = transport.Kind
	// Transport sends and receives datagrams that hold frames.
	Transport = transport.Conn
	// Datagram is one received frame and the address of its sender.
	Datagram = transport.Datagram
	// Outgoing is one frame to be sent.
	Outgoing = transport.Outgoing
	// Caps says what a transport can do.
	Caps = transport.Caps
	// TransportStats are a transport's own counters.
	TransportStats = transport.Stats

	// Profile is what must be known of a kind of peer. Its fields name the quirks of OpenCPI's drivers and cards that they answer.
	Profile = foreign.Profile
	// AckPolicy says how frames of a peer are acknowledged.
	AckPolicy = foreign.AckPolicy

	// Controller is a congestion controller: it bounds what a connection has in flight.
	Controller = ack.Controller
	// CongestionState is what a congestion controller says of what it does.
	CongestionState = ack.ControllerState
	// Instant is a time on the endpoint's own clock.
	Instant = ack.Instant

	// Keys holds the keys of an endpoint: one for each peer that has one of its own, and one for all others.
	Keys = seal.Ring
	// Key is the secret that two endpoints were given.
	Key = seal.Key
)

// The kinds of a [Handshake].
const (
	NoHandshake      = frame.NoHandshake
	HandshakeHello   = frame.HandshakeHello
	HandshakeWelcome = frame.HandshakeWelcome
	HandshakeConfirm = frame.HandshakeConfirm
	HandshakeReject  = frame.HandshakeReject
	HandshakeRefused = frame.HandshakeRefused
)

// What an [AckPolicy] can be.
const (
	AckRepeat   = foreign.AckRepeat   // the longest run around what is new, so that one lost acknowledgement costs nothing
	AckOnce     = foreign.AckOnce     // each frame once, and again when it comes again
	AckIfResent = foreign.AckIfResent // nothing until the peer proves, by a duplicate, that it waits for acknowledgements
	AckNever    = foreign.AckNever    // nothing
)

// The kinds of an [Addr].
const (
	KindNone  = transport.KindNone
	KindUDP   = transport.KindUDP
	KindEther = transport.KindEther
)

// Forever, which is -1, has [Transport].Recv wait until a datagram comes.
const Forever = transport.Forever

// ErrKey is the error of a text or a file that holds no key.
var ErrKey = seal.ErrKey

// UDPAddr returns the address of a UDP socket. An IPv4 address mapped into IPv6 is the same as the IPv4 address.
func UDPAddr(ap netip.AddrPort) Addr { return transport.UDPAddr(ap) }

// EtherAddr returns the address of an Ethernet interface.
func EtherAddr(mac [6]byte) Addr { return transport.EtherAddr(mac) }

// NewKey draws a key.
func NewKey() Key { return seal.NewKey() }

// ParseKey reads a key as its String method writes it: 32 bytes in base64.
func ParseKey(s string) (Key, error) { return seal.ParseKey(s) }

// ReadKeys reads the keys of an endpoint. A line has the key for all peers, or the id of a peer and the key for that one; empty
// lines, and lines that begin with #, say nothing. The file must be readable by its owner alone.
func ReadKeys(path string) (*Keys, error) { return seal.ReadKeys(path) }
