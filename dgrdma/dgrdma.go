package dgrdma

import (
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/url"
)

// The engine's types under their users' name.
type (
	Conn           = endpoint.Conn
	Config         = endpoint.Config
	Peer           = endpoint.Peer
	Profile        = endpoint.Profile
	Transaction    = endpoint.Transaction
	CompletionWord = endpoint.CompletionWord
	Segment        = endpoint.Segment
	Memory         = endpoint.Memory
	Region         = endpoint.Region
	Event          = endpoint.Event
	Waiter         = endpoint.Waiter
	PeerName       = endpoint.PeerName
	Trace          = endpoint.Trace
	Stats          = endpoint.Stats
	ConnStats      = endpoint.ConnStats
	Counters       = endpoint.Counters
	Times          = endpoint.Times
	Histogram      = endpoint.Histogram
	PeerError      = endpoint.PeerError
	Reason         = endpoint.Reason
	EndpointID     = frame.EndpointID
)

// What OnEvent is told.
const (
	PeerUp          = endpoint.PeerUp
	PeerRestarted   = endpoint.PeerRestarted
	PeerDown        = endpoint.PeerDown
	FrameRefused    = endpoint.FrameRefused
	TransactionLost = endpoint.TransactionLost
	FramesMissed    = endpoint.FramesMissed
)

// When goroutines that wait do the endpoint's work meanwhile.
const (
	HelpIfFew  = endpoint.HelpIfFew
	HelpAlways = endpoint.HelpAlways
	HelpNever  = endpoint.HelpNever
)

// Word returns the completion word that writes value at addr of the peer's memory.
func Word(addr, value uint32) CompletionWord { return endpoint.Word(addr, value) }

// The errors to test for with errors.Is.
var (
	ErrClosed        = endpoint.ErrClosed
	ErrQueueFull     = endpoint.ErrQueueFull
	ErrTooLarge      = endpoint.ErrTooLarge
	ErrBounds        = endpoint.ErrBounds
	ErrAlignment     = endpoint.ErrAlignment
	ErrNoCompletion  = endpoint.ErrNoCompletion
	ErrInUse         = endpoint.ErrInUse
	ErrPeerDown      = endpoint.ErrPeerDown
	ErrPeerRestarted = endpoint.ErrPeerRestarted
	ErrStaleCard     = endpoint.ErrStaleCard
	ErrReset         = endpoint.ErrReset
	ErrPeerExists    = endpoint.ErrPeerExists
	ErrTooManyPeers  = endpoint.ErrTooManyPeers
	ErrCallback      = endpoint.ErrCallback
	ErrNil           = endpoint.ErrNil
)

// The bounds of a [Histogram].
const HistogramBounds = endpoint.HistogramBounds

// HistogramBound returns the longest time that a histogram counts at a place.
func HistogramBound(i int) time.Duration { return endpoint.HistogramBound(i) }

// NewRegion makes zeroed memory for peers to write into, up to 4 GiB.
func NewRegion(size int) (*Region, error) { return endpoint.NewRegion(size) }

// RegionOver makes a Region of existing memory, which must begin at a multiple
// of 8.
func RegionOver(mem []byte) (*Region, error) { return endpoint.RegionOver(mem) }

// Swallow makes an error of Memory.Admit drop one message instead of refusing
// its whole frame.
func Swallow(err error) error { return endpoint.Swallow(err) }

// Profiles by the names that endpoint strings use: native, fpga, opencpi,
// opencpi2, opencpi-legacy. Over UDP some send smaller frames.
func ProfileByName(name string, overUDP bool) (Profile, error) {
	return endpoint.ProfileByName(name, overUDP)
}

// ParsePeer reads a complete endpoint string into what Connect takes. The
// option profile names the kind of peer.
func ParsePeer(peerURL string) (Peer, error) {
	u, err := url.Parse(peerURL)
	if err != nil {
		return Peer{}, err
	}
	if !u.Complete() {
		return Peer{}, fmt.Errorf("dgrdma: endpoint string %q has no size, id and count of endpoints: "+
			"a peer's string ends in ;<size>.<id>.<max>", peerURL)
	}
	p := Peer{ID: EndpointID(u.ID), Size: u.Size}
	switch {
	case u.Scheme == url.UDP && u.Addr.IsValid() && u.Addr.Port() != 0:
		p.Addr = transport.UDPAddr(u.Addr)
	case u.Scheme == url.Ether && u.MAC.IsValid():
		p.Addr = transport.EtherAddr(u.MAC.As6())
	default:
		return Peer{}, fmt.Errorf("dgrdma: endpoint string %q has no address to send to", peerURL)
	}
	if name, ok := u.Options.Get("profile"); ok {
		prof, err := ProfileByName(name, u.Scheme == url.UDP)
		if err != nil {
			return Peer{}, err
		}
		p.Profile = &prof
	}
	return p, nil
}
