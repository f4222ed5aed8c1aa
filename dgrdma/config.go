package dgrdma

import (
	"cmp"
	"crypto/fips140"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/endpoint/congestion"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/transport"
)

// Config is how an endpoint behaves. It is read once, when the endpoint is made. The zero
// value of every field is a good default, but what ID and Memory mean then depends on the function
// that makes it: [Open] or [New].
type Config struct {
	// ID is this endpoint's id, unique in its cluster, 1 to 65535. With 0 [Open] takes
	// the one in the endpoint string, or else a random one; New fails.
	ID EndpointID
	// Memory is what peers write into. With nil [Open] makes a Region, as large as the
	// endpoint string says, or else of 64 KiB, into which peers may write. With nil New makes
	// none, so that every write is refused and the endpoint, unless it serves something, only
	// sends; new(Region) says so to both.
	Memory Memory
	// Service is the name of that memory as a service: peers of our kind are told, and
	// what is posted to a peer's memory is sent only to one whose memory has the same
	// name. Empty means [MemoryService].
	Service string
	// Profile is used for peers that bring none. nil means Native.
	Profile *Profile
	// Window replaces the profile's: frames waiting for
	// acknowledgement, 1 to 16383. 0 means the profile's.
	Window int
	// PeerBuffer replaces the profile's: the size of the socket buffers of peers that never
	// acknowledge, net.core.rmem_default of their system, 16384 to 1073741824 bytes. They are sent
	// more a second the larger it is. 0 means the profile's.
	PeerBuffer int
	// MTU bounds frames, header and messages: 58 to 65535 bytes. 0 means what the wire
	// carries.
	MTU int
	// Queue is how many transactions a connection holds that are not done, 1 to
	// 1048576. 0 means 16384.
	Queue int
	// GiveUp is how long a peer may show no progress before it counts as dead: 1ms or
	// more. 0 means 10s.
	GiveUp time.Duration
	// KeepAlive is after how long of silence a peer of our kind is asked whether it is still
	// there, one that never came included; one that does not answer for GiveUp is down. 0 means
	// never: one that was killed is down when something that was posted to it was not acknowledged.
	KeepAlive time.Duration
	// Coalesce is how long a transaction that does not fill a frame waits for
	// company, unless it is urgent or a large one fills frames as well. 0 sends at once.
	Coalesce time.Duration
	// OpenIncoming is how many incomplete transactions each peer may have, 1 to 65536.
	// 0 means 4096. What is begun beyond them is not acknowledged; a peer of our kind
	// whose flows are many begins 33 before it ends one, so with fewer it may be stuck.
	OpenIncoming int
	// OpenMemory is how many bytes may be kept for incomplete incoming
	// transactions: for each connected peer, and for all learned peers together, of
	// which each has 8 KiB more. What would need more is not acknowledged. Ids out of
	// order take up to 8 KiB of each peer: they count, but are never refused. 65536 bytes or more. 0 means 16 MiB.
	OpenMemory int
	// AcceptAny learns peers from the frames they send. Off, only connected
	// peers are heard.
	AcceptAny bool
	// MaxPeers bounds the peers, connected and learned: 1 to 65535, 0 means 4096, and that of
	// those whose kind has nothing to prove itself with no more than 256 are learned. For a
	// new one, a learned peer is evicted that is down, that never had a
	// session, or that was silent for six times GiveUp.
	MaxPeers int
	// PeersPerHost bounds the learned peers of one host, an IP or a MAC address, so
	// that none takes all places; for a new one, one of them is evicted in the same way. 1 to
	// 65535 and at most MaxPeers; 0 means a quarter of MaxPeers, or of those 256.
	PeersPerHost int
	// OnEvent is told what happens to peers, which may be something with every
	// message that a peer sends. It must not block; the package documentation says on whose goroutine
	// it runs, under Callbacks.
	OnEvent func(Event)
	// KeepOldLife makes a peer that restarted stay refused until Reset is
	// called. Off, it is taken back at once.
	KeepOldLife bool
	// Congestion is how much is sent to peers of our own kind when others use the path, too. Empty means CongestionAuto.
	Congestion Congestion
	// MaxRate is how many bytes of frames leave to each peer in a second at most, of whatever kind it is and whatever it acknowledges.
	// 10000 bytes or more; 0 means no bound.
	MaxRate int
	// NewController makes the congestion controller of a connection; the
	// argument is the frame size. nil, as well as one that returns nil, means what Congestion says, or, for
	// other kinds of peers, what suits their profile. It and its
	// controllers run under locks: they must not call the endpoint.
	NewController func(mtu int) Controller
	// BusyPoll makes the goroutine that receives look for frames without ever sleeping: a whole
	// core for a few microseconds less of latency. With Manual, that is a goroutine that waits.
	BusyPoll bool
	// NoHelp keeps goroutines that wait from doing the endpoint's work in that time, see
	// [Endpoint.Await]. To do it takes less processor time for each byte than a goroutine
	// of the endpoint's own takes in addition to them, 0.7 to 0.8 for a stream; that one may get
	// more done nevertheless, where there is a processor for it.
	NoHelp bool
	// Manual makes no goroutines: the endpoint does nothing but while the application
	// is in Progress or Post, or waits in one of the calls that drive it, which package
	// dgrdma lists under Concurrency. For programs that answer at once and have a thread
	// for it.
	Manual bool
	// Logger gets what a person may want to know, at most 100 lines a second. nil
	// logs nothing.
	Logger *slog.Logger
	// Trace gets every frame. nil costs nothing.
	Trace *Trace
	// FirstFrame is the first frame id, 1 to 65535, for profiles that do not insist on 1.
	// 0 means a random one.
	FirstFrame Seq
	// Keys are those under which all is sealed that is sent to peers and taken from them, which
	// are of our own kind, have the same keys, and are authenticated by that. nil means nothing is sealed,
	// and what is sealed is not taken.
	Keys *Keys
	// Checksum has the frames between peers of our kind that both want it end with a CRC32C, by which what
	// a switch or router changed is found, and treated as lost. It costs 4 bytes of each frame, and time.
	// Sealed connections, see Keys, need none and have none.
	Checksum bool
	// Entropy supplies random numbers. nil means the system's. It runs under locks: it
	// must not call the endpoint. The endpoint calls it on one goroutine at a time.
	// The first ids to peers of other kinds are made of them.
	Entropy func() uint32
}

// Congestion names a congestion control.
type Congestion string

// How much is sent when others use a path, too.
const (
	CongestionAuto     Congestion = "auto"     // BBR, but adaptive on paths with round trips below a millisecond
	CongestionBBR      Congestion = "bbr"      // leaves others their share
	CongestionAdaptive Congestion = "adaptive" // takes what it can get: for paths that nobody else uses
	CongestionFixed    Congestion = "fixed"    // only the window of frames is a bound
)

// Peer is the other side of a connection to be made.
type Peer struct {
	ID      EndpointID // 1 to 65535
	Addr    Addr
	Size    uint64   // bytes of the peer's memory; 0: unknown, up to 4 GiB
	Profile *Profile // nil: the endpoint's default
	// As is our id towards this peer. 0 means the endpoint's. Connections between
	// the same two endpoints under several ids have each a window, an order of ids
	// and an end of their own; the peer takes each id for another peer.
	As EndpointID
}

// callerPolling reports whether goroutines that wait do the endpoint's work in that time.
func (c *Config) callerPolling() bool { return !c.BusyPoll && !c.Manual && !c.NoHelp }

// unproven returns how many peers may be learned; 0: as many as there may be.
func (c *Config) unproven() int {
	if c == nil || c.MaxPeers != 0 || c.Profile == nil || c.Profile.Session {
		return 0
	}
	return admission.MostUnproven
}

func (c *Config) withDefaults(caps transport.Caps) (Config, error) {
	var f Config
	if c != nil {
		f = *c
	}
	if f.ID == 0 {
		return f, fmt.Errorf("dgrdma: endpoint id is 0, and only dgrdma.Open finds one by itself: choose 1 to 65535, unique in the cluster")
	}
	if f.Service == "" {
		f.Service = MemoryService
	}
	if f.Profile == nil {
		p := Native()
		f.Profile = &p
	}
	if f.MTU == 0 {
		f.MTU = caps.MTU
	}
	f.MTU = min(f.MTU, caps.MTU, frame.MaxData)
	if f.Keys != nil {
		if fips140.Enforced() {
			return f, errors.New("dgrdma: to agree on a key takes X25519, BLAKE2s and ChaCha20-Poly1305, which GODEBUG=fips140=only forbids: take fips140=on, or no keys")
		}
		if f.MTU < seal.MostHandshake {
			return f, fmt.Errorf("dgrdma: frames of %d bytes, and to agree on a key takes %d", f.MTU, seal.MostHandshake)
		}
		f.MTU -= seal.Overhead
	}
	if f.MTU < settings.LeastFrame {
		return f, fmt.Errorf("dgrdma: frames of %d bytes, need at least %d for a header, a message and its data", f.MTU, settings.LeastFrame)
	}
	unproven := f.unproven()
	if err := settings.Complete(&f); err != nil {
		return f, err
	}
	switch {
	case f.PeersPerHost == 0:
		f.PeersPerHost = max(cmp.Or(unproven, f.MaxPeers)/4, 1)
	case f.PeersPerHost > f.MaxPeers:
		return f, fmt.Errorf("dgrdma: PeersPerHost in the configuration is %d, and MaxPeers, the peers of all hosts, %d: need at most that", f.PeersPerHost, f.MaxPeers)
	}
	if f.Entropy == nil {
		f.Entropy = systemEntropy
	} else {
		f.Entropy = oneAtATime(f.Entropy)
	}
	return f, f.Profile.Check()
}

// oneAtATime returns f for several goroutines: connections draw under their own locks, and a
// generator of package rand serves one caller.
func oneAtATime(f func() uint32) func() uint32 {
	var mu sync.Mutex
	return func() uint32 {
		mu.Lock()
		defer mu.Unlock()
		return f()
	}
}

func systemEntropy() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:])
}

// profileFor returns the profile of a peer with the overrides applied.
func (c *Config) profileFor(p Peer) (Profile, error) {
	prof := *c.Profile
	if p.Profile != nil {
		prof = *p.Profile
	}
	if c.Window != 0 {
		prof.Window = c.Window
		prof.Span = max(prof.Span, prof.Window)
	}
	if c.PeerBuffer != 0 {
		prof = prof.WithBuffer(c.PeerBuffer)
	}
	if prof.FirstFrame == 0 {
		prof.FirstFrame = c.FirstFrame
	}
	return prof, prof.Check()
}

// controller makes the congestion controller of a connection, on a path that is routed or not.
func (c *Config) controller(p *Profile, mtu int, routed bool) ack.Controller {
	ctl := c.unlimited(p, mtu, routed)
	if c.MaxRate > 0 {
		return congestion.NewLimited(ctl, c.MaxRate)
	}
	return ctl
}

func (c *Config) unlimited(p *Profile, mtu int, routed bool) ack.Controller {
	if c.NewController != nil {
		if ctl := c.NewController(mtu); ctl != nil {
			return ctl
		}
	}
	switch {
	case p.Drain != 0:
		return ack.NewPacer(p.PeerBuffer, p.Drain)
	case p.Span <= 255:
		return &ack.FixedWindow{}
	case !p.Session:
		return ack.NewAdaptive(mtu)
	}
	switch c.Congestion {
	case CongestionAdaptive:
		return ack.NewAdaptive(mtu)
	case CongestionFixed:
		return &ack.FixedWindow{}
	}
	seed := uint64(c.Entropy())<<32 | uint64(c.Entropy())
	if c.Congestion == CongestionBBR {
		return congestion.NewBBR(mtu, seed)
	}
	return congestion.NewByPath(mtu, seed, routed)
}
