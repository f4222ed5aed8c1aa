package bench

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Where things are in the memory of each side. Both compute it from the plan,
// which the client sends before it writes anything else.
//
//	0     word that is written with a control record: its kind
//	4     word with which a client makes itself known
//	64    the control record
//	4096  completion words, one for each slot
//	...   slots: room for one transaction's data each
const (
	controlWord   = 0
	joinWord      = 4
	controlData   = 64
	completionsAt = 4096
	slotAlignment = 64
	dataAlignment = 4096

	// LeastMemory is what a server has at least.
	LeastMemory = 2 * completionsAt
)

// Kinds of control records.
const (
	kindBegin  = 1 + iota // client: the plan of a run
	kindReady             // server: begin
	kindEnd               // client: all of mine is acknowledged, and took so long; tell what you saw
	kindReport            // server: that
	kindBye               // client: I have it
	kindBusy              // server: another client has a run
)

// Plan is what a run does. It travels as it is here.
type Plan struct {
	Size     uint32 // bytes per transaction
	Depth    uint32 // slots of each peer
	Peers    uint32
	Active   uint32 // transactions outstanding, in turn from all slots
	FirstID  uint32 // peers have consecutive ids
	Verify   Verify
	BothWays uint32 // 1: the server writes too
	MoreRuns uint32 // 1: another begin will follow this run's bye

	// What follows older servers do not read. Older clients leave it 0, as records are
	// cleared when they were read.

	Rate    uint64  // bytes per second that each side writes at most; 0: no limit
	Carrier Carrier // of these bytes; control records are always of what the two ends are of

	Trial      uint32         // 1: it finds out how fast a controller is, and counts for nothing else
	Controller controllerName // of the carrier's connection
}

// Ready is what a server that begins a run tells of itself. Older ones leave it 0. It
// travels as it is here.
type Ready struct {
	Knows uint32 // knowsRate and so on
	Port  uint32 // where it awaits another carrier: of TCP, or of UDP

	Refused uint32 // 1: it cannot await that

	Uncontrolled uint32 // 1: it cannot set Plan.Controller, and awaits that carrier with the machine's default
}

// finish is what a client tells that ends a run. Older ones tell nothing. It travels as it is here.
type finish struct {
	Nanoseconds uint64 // as in Counts; 0: not told
}

// took returns how long a run took, which by the server's own clock was that long: this one has the client's preparations, and the
// ways of the records about the run, in it, and a client that tells of more is wrong.
func (f finish) took(here time.Duration) time.Duration {
	if f.Nanoseconds == 0 || f.Nanoseconds > uint64(here) {
		return here
	}
	return time.Duration(f.Nanoseconds)
}

// busy is what a server tells of the client that has a run. Older ones leave it 0. It travels as
// it is here.
type busy struct {
	For, Silent uint64 // ns since it came, and since it was heard last
	Patience    uint64 // ns that it may be silent if others wait
	Client      [80]byte
}

const (
	knowsRate       = 1 << iota // it writes no faster than Plan.Rate
	knowsCarrier                // it takes Plan.Carrier
	knowsController             // it takes Plan.Controller

	knowsAll = knowsRate | knowsCarrier | knowsController
)

// Counts is what one side counted during a run. It travels as it is here.
type Counts struct {
	Bytes         uint64 // written by this side and acknowledged
	Transactions  uint64
	Nanoseconds   uint64 // from its first post to its last acknowledgement
	FramesSent    uint64 // without those that only acknowledge
	FramesHeard   uint64
	Retransmits   uint64
	Duplicates    uint64
	KernelDrops   uint64
	CPU           uint64 // ns of the whole process
	Arrived       uint64 // transactions completed here, or bytes of another carrier
	PeerMemory    uint64 // bytes per connected peer that is idle; 0: not measured, as of few peers
	Wrong         uint64 // data or completions that were not as they should be
	WrongSlot     uint64 // the first of them
	WrongRound    uint64
	WrongOffset   uint64
	WrongExpected uint64
	WrongGot      uint64

	// What follows older servers do not tell.

	Arriving    uint64 // ns from the first byte of another carrier to the last, if only this side knows that
	Waits       uint64 // how often a thread of the process gave up its processor to wait
	Machine     uint64 // the same for whoever runs on this machine
	Process     uint64 // the same for whoever is in this process
	Processors  uint64 // of this machine
	MachineCPU  uint64 // ns of processor time that anyone took on this machine
	MachineTime uint64 // ns that its processors had
}

func encode(v any) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

func decode(b []byte, v any) {
	if _, err := binary.Decode(b, binary.LittleEndian, v); err != nil {
		panic("BUG: " + err.Error())
	}
}

func (p Plan) slots() int { return int(p.Peers) * int(p.Depth) }

func roundUp(n, multiple uint64) uint64 { return (n + multiple - 1) / multiple * multiple }

func (p Plan) stride() uint64 { return roundUp(uint64(p.Size), slotAlignment) }

func (p Plan) dataAt() uint64 {
	return roundUp(completionsAt+4*uint64(p.slots()), dataAlignment)
}

// needs returns how much memory the plan takes at the side that is written to.
func (p Plan) needs() uint64 { return p.dataAt() + uint64(p.slots())*p.stride() }

func (p Plan) slotAt(slot int) uint32       { return uint32(p.dataAt() + uint64(slot)*p.stride()) }
func (p Plan) completionAt(slot int) uint32 { return uint32(completionsAt + 4*slot) }

// ServerMemory returns how much memory the server's side needs.
func (p Plan) ServerMemory() uint64 { return p.needs() }

// ClientMemory returns how much memory the client's side needs.
func (p Plan) ClientMemory() uint64 {
	if p.BothWays != 0 {
		return p.needs()
	}
	return completionsAt
}

// Check reports why a plan cannot be run, or does not fit into the server's memory.
func (p Plan) Check(memory uint64) error {
	if p.Size == 0 || p.Depth == 0 || p.Peers == 0 || p.slots() > mostSlots || p.Active == 0 || int(p.Active) > p.slots() {
		return fmt.Errorf("no run has peers %d, depth %d, size %d, of all %d outstanding: none is 0, and peers times depth at most %d",
			p.Peers, p.Depth, p.Size, p.Active, mostSlots)
	}
	if n := p.needs(); n > memory {
		return fmt.Errorf("peers %d, depth %d and size %d need %d bytes of memory at the server, which has %d: choose less of one of them, or give the server more",
			p.Peers, p.Depth, p.Size, n, memory)
	}
	return p.Carrier.check(p)
}

const (
	// mostSlots bounds what a client makes a server keep in addition to the memory that is written to: 128 MiB. The usual memory of
	// 128 MiB has room for two million messages of one byte. A server that writes to the client as well took 1 GB for those.
	mostSlots = 1 << 18
	// perSlot is what a slot takes at most, what is posted of it included.
	perSlot = 512
)

const (
	// Outstanding is how many bytes are outstanding where nobody chooses a depth: as many as keep the wire busy, and not more, so that the
	// memory written to stays in the processor's cache.
	Outstanding     = 4 << 20
	mostOutstanding = 4096
)

// PieceAt returns how large pieces are, if nobody says it, that are posted at a rate in bytes per second; 0: no limit. One piece
// is little against the rate, so that it is kept in short times too: it takes pieceTime at most, unless the rate is a few bytes.
func PieceAt(rate uint64) uint32 {
	const most, least, pieceTime = 1 << 20, 64, 10 * time.Millisecond
	size := uint32(most)
	for rate > 0 && size > least && float64(size) > float64(rate)*pieceTime.Seconds() {
		size /= 2
	}
	return size
}

// WithDepth gives each peer as many slots as are asked for; all are outstanding.
// With 0 it chooses how much is outstanding, however many peers share that, and
// as many slots as it takes and as fit into the serving memory.
func (p Plan) WithDepth(depth int, memory uint64) Plan {
	if depth > 0 {
		p.Depth = uint32(depth)
		p.Active = uint32(p.slots())
		return p
	}
	total := min(max(Outstanding/uint64(p.Size), 2), mostOutstanding)
	p.Depth = uint32(max(total/uint64(p.Peers), 1))
	for p.Depth > 1 && p.needs() > memory {
		p.Depth--
	}
	p.Active = uint32(min(total, uint64(p.slots())))
	return p
}
