package foreign

import (
	"fmt"
	"strings"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
)

// AckPolicy says how frames of a peer are acknowledged.
type AckPolicy uint8

const (
	// AckRepeat acknowledges the longest run around what is new, so that one
	// lost acknowledgement costs nothing.
	AckRepeat AckPolicy = iota
	// AckOnce acknowledges each frame once, and again when it comes again.
	AckOnce
	// AckIfResent sends nothing until the peer proves, by a duplicate, that it
	// waits for acknowledgements.
	AckIfResent
	// AckNever sends none.
	AckNever
)

// Profile is what must be known of a kind of peer. The numbers in comments are
// rows of the quirk table that the value answers.
type Profile struct {
	Name string

	// What we send.
	Window           int           // frames waiting for acknowledgement (F4, D1-12)
	Span             int           // ids from the oldest of them on (D1-6)
	MaxFrame         int           // frame header and messages; 0: what the wire carries (D1-8, D1-9, D1-10)
	Chunk            int           // data lengths are a multiple of this, but for the last (F11)
	Final            int           // the last is rounded up to a multiple of this, with zeros; at most Chunk
	AddressMultiple  int           // data addresses are a multiple of this (F11)
	NoLength4        bool          // messages of exactly 4 bytes are dropped by the peer (L1)
	NoSentinel       bool          // a transaction without completion is not understood (F10, L6)
	NoHalfSentinel   bool          // one all-ones word alone means no completion too (D2-7)
	OpenTransactions int           // sent and not acknowledged; a power of two is not needed (F6, D1-12, L2)
	FirstFrame       frame.Seq     // 0: random, so that a peer that knew an earlier run of ours takes no frame for a copy (V1)
	FirstTransaction uint32        // 0: random, too: it may have counted one of those by half (D1-12, D2-13)
	SkipBit          uint32        // transaction ids never have this bit (L2)
	OwnDestination   bool          // the destination id is our own (D2-1)
	NoAcks           bool          // the peer never acknowledges (D2-2)
	Cumulative       bool          // everything before its ACKStart was received (F2)
	OneRun           bool          // it queues what it acknowledges, copies too, and one frame takes one run along (D1-19)
	Probe            bool          // after a timeout a new id makes the peer speak (F2, F3)
	FreshAlone       bool          // ids of acknowledgement-only frames are never reused (D2-3, L4)
	SlotTable        int           // size of a duplicate table that such frames do not refresh (D1)
	PeerBuffer       int           // bytes of its socket buffer, where nothing tells that it overflowed (V10)
	Drain            int           // of which so many are sent a second; 0: do not pace
	MinTimeout       time.Duration // before a frame is sent again (D1-19)
	PeerAckDelay     time.Duration // how long the peer holds acknowledgements back (DGRDMA-035)
	PeerAckEvery     int           // of how many frames it holds none back; 0: of any number it may

	// What we receive.
	Session          bool          // the peer has sessions
	History          int           // duplicate window, of a peer without sessions
	Behind           int           // ids before the newest one that may still be sent again; 0: all of the history (D1-6)
	CopyFor          time.Duration // a copy comes this long after the one before it at most, but for outages; 0: unknown (D1-18, V4)
	LiveHeaders      bool          // a frame that is sent again has the header that its request has by then (V3)
	KeepsIDs         bool          // a request that is posted again keeps its transaction id (L5)
	Ahead            int           // ids after the newest one that one frame alone can have; 0: any (D1-6)
	Acks             AckPolicy     // (F13, F14, D2-4)
	AckEvery         int           // frames after which one is due at once (D1-6)
	AckDelay         time.Duration // time after which one is due
	SplitAcks        bool          // no run crosses id 65535 (L3)
	FreshAcks        bool          // acknowledgements in a resent frame do not count (D1-5)
	NeverRetransmits bool          // what it lost will never come (F13)
	OverCounts       bool          // may announce one message too many (F16)
}

// MostBegun is how many transactions may be sent and not acknowledged. Arbitrary.
const MostBegun = settings.MostOpen / 2

// farAhead is Ahead where much may be lost at once, and for peers that never send
// again what is refused: they bridge a gap of a few MB, and one forged frame leaves
// the window at the ids that they go on with. Arbitrary, within that.
const farAhead = ack.MaxHistory / 4

// lastFirst is the highest first id for peers without sessions: after it
// comes a multiple of 256 before id 0, which is otherwise taken for a copy by a
// C++ driver that was just started (quirk D1-3).
const lastFirst = 65280

// begin returns the first id for a random number. Where the peer looks ids up by
// remainder, all runs of ours begin at the same one: a short run then overwrites
// what the one before left there, while scattered runs fill the table with ids that
// a longer run would meet.
func (p *Profile) begin(random ack.Wide) ack.Wide {
	if table := ack.Wide(p.SlotTable); table > 0 {
		return 1 + random%(lastFirst/table)*table
	}
	return 1 + random%lastFirst
}

// Native is the profile for peers of this implementation.
func Native() Profile {
	return Profile{
		Name: "native", Window: 1024, Span: ack.MaxWindow, Chunk: 8, Final: 1, AddressMultiple: 1,
		OpenTransactions: MostBegun, MinTimeout: 5 * time.Millisecond, PeerAckDelay: 2 * time.Millisecond, PeerAckEvery: 2,
		Session: true, Acks: AckRepeat, AckEvery: 2, AckDelay: 2 * time.Millisecond,
	}
}

// FPGA is the profile for OpenCPI's hardware engine.
func FPGA() Profile {
	return Profile{
		Name: "fpga", Window: 32, Span: 128, Chunk: 16, Final: 4, AddressMultiple: 16, NoSentinel: true,
		OpenTransactions: 32, FirstFrame: 1, FirstTransaction: 1, Cumulative: true, Probe: true, FreshAlone: true,
		MinTimeout: 5 * time.Millisecond, PeerAckDelay: 3 * time.Millisecond,
		History: ack.MaxHistory, Ahead: farAhead, Acks: AckNever, NeverRetransmits: true, OverCounts: true,
		CopyFor: heldBack, // only the network makes copies
	}
}

// etherWindow is how many frames of 1488 bytes fit the socket buffer that Linux gives
// who does not ask, with room for some that only acknowledge: each takes 2304 of its
// 212,992 bytes, 2048 around the data and 256 to describe it. Measured with veth: 93
// are kept. Drivers that take a page for each frame keep fewer.
const etherWindow = 90

// OpenCPI is the profile for OpenCPI's first C++ driver. Over UDP it takes
// datagrams of 512 bytes, two of them the prefix, over Ethernet 1488.
func OpenCPI(overUDP bool) Profile {
	p := Profile{
		Name: "opencpi", Window: etherWindow, Span: 255, MaxFrame: 1488, Chunk: 16, Final: 1, AddressMultiple: 1,
		OpenTransactions: 256, OneRun: true, SlotTable: 256,
		MinTimeout: 250 * time.Millisecond, PeerAckDelay: 90 * time.Millisecond,
		History: ack.MaxHistory, Ahead: 256, Behind: 256, LiveHeaders: true,
		CopyFor: 2 * time.Second, // ten times its own timeout: all that many are lost on no link that is of use
		Acks:    AckRepeat, AckEvery: 16, AckDelay: 2 * time.Millisecond, FreshAcks: true,
	}
	if overUDP {
		p.MaxFrame, p.Window = 510, 128
	}
	return p
}

const (
	// defaultBuffer is what Linux gives a socket for frames that its process has not read.
	defaultBuffer = 212_992
	// dg2Drain is what is sent to the second C++ driver in a second. Half of its socket's default
	// buffer has room for what leaves at once, and the other half for what leaves in 53 ms: a thread
	// of a busy machine waits some tens of milliseconds for its turn (V12). That time is arbitrary, and
	// the price is high: a driver that runs all the time takes 50 times as much.
	dg2Drain = 2_000_000
	// dg2Most is what leaves for it at most, however large its buffer is: at 159 MB/s 243 of 600
	// transactions arrived whole, so it took 64 MB/s of data. These are 43,000 full frames, or 100 MB
	// of buffer, and this is half of it (V10).
	dg2Most = 50_000_000
)

// OpenCPI2 is the profile for OpenCPI's second C++ driver, which neither sends
// acknowledgements nor, by default, waits for any: a transaction is done when
// the system took its last frame. The driver may stand still for 50 ms before what is sent at
// this pace overflows its socket's buffer, if that is as large as Linux makes it; Config.PeerBuffer
// is for others.
func OpenCPI2() Profile {
	return Profile{
		Name: "opencpi2", Window: 128, Span: 255, Chunk: 16, Final: 1, AddressMultiple: 1,
		OpenTransactions: 256, OwnDestination: true, NoAcks: true, NoHalfSentinel: true, FreshAlone: true,
		MinTimeout: 250 * time.Millisecond, PeerBuffer: defaultBuffer, Drain: dg2Drain,
		History: ack.MaxHistory, Ahead: farAhead, Acks: AckIfResent, AckEvery: 16, AckDelay: 2 * time.Millisecond, NeverRetransmits: true,
	}
}

// Legacy is the profile for OpenCPI's C++ driver before 2021.
func Legacy(overUDP bool) Profile {
	p := OpenCPI(overUDP)
	p.Name = "opencpi-legacy"
	p.Window = 64
	p.NoLength4, p.NoSentinel = true, true
	p.OpenTransactions, p.SkipBit = 1, 1<<9
	p.FirstTransaction = 1 // it counts all in one place whatever their id (L2): another one would gain nothing
	p.Acks, p.SplitAcks, p.FreshAlone, p.KeepsIDs = AckOnce, true, true, true
	p.OneRun = false
	return p
}

// ProfileByName returns a preset.
func ProfileByName(name string, overUDP bool) (Profile, error) {
	switch name {
	case "", "native":
		return Native(), nil
	case "fpga":
		return FPGA(), nil
	case "opencpi":
		return OpenCPI(overUDP), nil
	case "opencpi2":
		return OpenCPI2(), nil
	case "opencpi-legacy":
		return Legacy(overUDP), nil
	}
	return Profile{}, fmt.Errorf("dgrdma: no peer profile %q; there are %s", name, strings.Join(settings.Profile.Words, ", "))
}

// WithBuffer is the profile for a peer that never acknowledges, and has a buffer of that many
// bytes: it may stand still for as long as before.
func (p Profile) WithBuffer(bytes int) Profile {
	if p.Drain > 0 {
		most := max(p.Drain, dg2Most)
		p.Drain = int(min(int64(p.Drain)*int64(bytes)/int64(p.PeerBuffer), int64(most)))
		p.PeerBuffer = bytes
	}
	return p
}

// Standstill returns for how long a peer that never acknowledges may stand still before something that is
// sent in that time has no room in its buffer, and is lost. 0: it is not paced.
func (p *Profile) Standstill() time.Duration {
	if p.Drain <= 0 {
		return 0
	}
	return time.Duration(int64(p.PeerBuffer/2) * int64(time.Second) / int64(p.Drain))
}

// Destination returns the destination id of frames from the endpoint that is local to a peer.
func (p *Profile) Destination(local, peer frame.EndpointID) frame.EndpointID {
	if p.OwnDestination {
		return local
	}
	return peer
}

func powerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 }

// Check returns what is wrong with a profile.
func (p *Profile) Check() error {
	switch {
	case p.Window < 1 || p.Window > ack.MaxWindow:
		return fmt.Errorf("dgrdma: profile %s: window %d, need 1 to %d frames", p.Name, p.Window, ack.MaxWindow)
	case p.Span < p.Window || p.Span > ack.MaxWindow:
		return fmt.Errorf("dgrdma: profile %s: span %d, need %d (the window) to %d ids", p.Name, p.Span, p.Window, ack.MaxWindow)
	case !p.Session && (p.History > ack.MaxHistory || !powerOfTwo(p.History)):
		return fmt.Errorf("dgrdma: profile %s: history %d, need a power of two up to %d", p.Name, p.History, ack.MaxHistory)
	case !p.Session && (p.Ahead < 0 || p.Ahead > p.History/2):
		return fmt.Errorf("dgrdma: profile %s: %d ids ahead, need 0 to half of the history", p.Name, p.Ahead)
	case !powerOfTwo(p.Chunk) || !powerOfTwo(p.Final) || p.Final > p.Chunk: // else the padding of a message lies on the data of the next
		return fmt.Errorf("dgrdma: profile %s: chunk %d, final %d: need powers of two, final at most chunk", p.Name, p.Chunk, p.Final)
	case p.AddressMultiple < 1:
		return fmt.Errorf("dgrdma: profile %s: address multiple %d, need at least 1", p.Name, p.AddressMultiple)
	case p.Drain < 0 || p.Drain > 0 && p.PeerBuffer < 16384:
		return fmt.Errorf("dgrdma: profile %s: %d bytes a second out of a buffer of %d, need a buffer of 16384 or more", p.Name, p.Drain, p.PeerBuffer)
	case p.OpenTransactions < 1 || p.OpenTransactions > MostBegun:
		return fmt.Errorf("dgrdma: profile %s: %d open transactions, need 1 to %d", p.Name, p.OpenTransactions, MostBegun)
	}
	return nil
}
