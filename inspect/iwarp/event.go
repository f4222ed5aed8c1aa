package iwarp

import (
	"github.com/dgrdma/dgrdma/capture/tcp"
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// Kind is what an event is.
type Kind uint8

// Kinds of events.
const (
	SetUp      Kind = iota // a request or reply of MPA
	Frame                  // an FPDU, which carries a segment of a message
	Begins                 // the set-up is not in the capture, nor is the beginning of the connection unless its TCP.Begun: what follows is read nevertheless
	Missing                // bytes that are not in the capture, outside of frames or in one that is reported next
	Found                  // frames again, after bytes that could not be read
	GivenUp                // nothing more is read of that direction
	Lost                   // what should be a frame is none: the next one is looked for
	Finished               // that side has closed the connection
	Reset                  // that side has reset the connection
	Incomplete             // a frame that has begun does not go on
	Gone                   // nothing follows of the connection
)

var kindNames = [...]string{"setup", "fpdu", "begins", "missing", "found", "given up", "lost", "closed", "reset", "incomplete", "gone"}

func (k Kind) String() string { return kindNames[k] }

// CRC says what is known of the CRC of a frame.
type CRC uint8

// What is known.
const (
	Unchecked CRC = iota // not all of the frame is there, or it is not known whether there is one
	Good
	Bad
	Off // both sides do without
)

var crcNames = [...]string{"unchecked", "good", "bad", "off"}

func (c CRC) String() string { return crcNames[c] }

// Event is something that was read, or could not be.
type Event struct {
	Kind  Kind
	Conn  *Connection
	Way   tcp.Way // of who sent it
	First tcp.Ref // with the first byte
	Last  tcp.Ref // with the last one, when it was complete

	SetUp mpa.SetUp // if Kind is SetUp
	Wrong error     // what is wrong with it, or with the operands of a frame

	Absent int // bytes of the frame, or of set-up, that are not in the capture

	// Of a frame.
	Header   ddp.Header
	Fault    error // what is wrong with the header, or with its place among the others: a ddp.Fault
	Opcode   rdmap.Opcode
	Fits     bool   // kind and queue are the opcode's
	Length   int    // of the payload
	Payload  []byte // with zeros in the place of what is absent
	Leading  int    // how many bytes of it are there before the first absent one
	CRC      CRC
	NoHeader bool   // and the header is among them
	CutEnd   bool   // pad and CRC are themselves in several segments of TCP
	Segments int    // of the message so far
	Message  uint64 // length of the message so far; the whole if Header.Last
	Started  bool   // the beginning of the message was seen
	WantMSN  uint32 // if it is not the MSN: the one that would be next

	HasOperands bool
	Operands    rdmap.Operands
	Terminate   *rdmap.TerminateError
	Answers     *Request // the request that the message answers
	Odd         string   // how the answer does not fit it

	N   int    // bytes that are missing, were skipped, or are there of an incomplete frame
	Why string // of GivenUp and Gone

	// Late says why it is told behind later records, if it is not told with its own.
	Late string

	Began []byte // of GivenUp: the first bytes of the direction, if these are none of set-up
}

// From returns who sent it, and To to whom.
func (e *Event) From() string { return e.Conn.TCP.Ends[e.Way].String() }

// To returns the other end.
func (e *Event) To() string { return e.Conn.TCP.Ends[1-e.Way].String() }

// Said is a set-up frame that was seen.
type Said struct {
	mpa.SetUp
	At     tcp.Ref
	Absent int // bytes of it that are not in the capture
}

// Request is one that waits for its answer.
type Request struct {
	Opcode rdmap.Opcode
	MSN    uint32
	At     tcp.Ref
	Read   rdmap.ReadHeader // if it is a Read
	ID     uint32           // if it is an Atomic Request: the one that the answer names
	Atomic string           // and what it does: FetchAdd, CmpSwap
	Whole  bool             // these are known

	order int // among those of its direction
}

// Connection is one of iWARP.
type Connection struct {
	TCP    *tcp.Connection
	Number int // from 1, in the order in which they were recognised
	// Request and Reply are those that were seen, or nil.
	Request, Reply *Said
	Initiator      tcp.Way // if Known
	Known          bool
	// SeveralPlaces is whether it is of several interfaces, or of the kind that "any" has: the capture may have each segment once for each.
	SeveralPlaces bool

	place    int // interface of the first segment
	placed   bool
	ways     [2]way
	ignored  bool
	segments int  // of TCP, that Stats has not counted yet
	cut      bool // of a segment the payload was not captured whole
	unsure   bool // it is gone, and what was captured does not show whether it is iWARP
	early    early
	frames   [2]int
	began    bool // it was said that its beginning is not in the capture
}

// CRC reports whether both sides have agreed on CRC, if known: without their frames of set-up it is known by the first frame.
func (c *Connection) CRC() (on, known bool) {
	if c.Request != nil && c.Reply != nil {
		return c.Request.CRC || c.Reply.CRC, true
	}
	for i := range c.ways {
		if s := c.ways[i].crc; s != Unchecked {
			return s == Good, true
		}
	}
	return false, false
}

// Waiting returns the requests of a side that were not answered, in their order, and whether its message is not complete.
func (c *Connection) Waiting(w tcp.Way) (requests []Request, unfinished bool) {
	d := &c.ways[w]
	return d.requests.all(), d.tagged.begun || d.untagged.begun
}
