package rdmap

import (
	"errors"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Access is what a peer wants to do with memory.
type Access uint8

// Kinds of access.
const (
	AccessWrite Access = iota
	AccessRead
	AccessAtomic
	AccessFlushPersistent
	AccessFlushGlobal
	AccessVerify
	AccessAtomicWrite // needs the right of AccessWrite (COMMIT-034), and fails as a request
)

// Memory is what the peer of one stream may touch. Errors are a [ddp.Fault]. AccessWrite fails as DDP
// says of tagged segments, everything else as RDMAP says of requests.
type Memory interface {
	// Find checks an access to n bytes at offset to, and returns the bytes.
	Find(a Access, stag uint32, to uint64, n uint32) (ddp.Span, error)
	// Withdraw invalidates memory as the peer asks for (RDMAP-050).
	Withdraw(stag uint32) error
	// Invalidate does it as the program of this side asks for.
	Invalidate(stag uint32) error
	FetchAdd(stag uint32, to uint64, add, mask uint64) (old uint64, err error)
	CompareSwap(stag uint32, to uint64, compare, compareMask, swap, swapMask uint64) (old uint64, err error)
	AtomicWrite(stag uint32, to uint64, data [8]byte) error
}

// Completions takes what is done. Complete is called between Begin and End of a carrier, or
// of whoever posts; it keeps no pointer to what it is given.
type Completions interface {
	Complete(*Completion)
}

// Ready is the message that opens a stream of the peer-to-peer model (MPA-016).
type Ready uint8

// Kinds of opening messages.
const (
	ReadyNone Ready = iota
	ReadyWrite
	ReadyRead
	ReadySend
)

// Config is how a stream is opened. The two sides have agreed on it.
type Config struct {
	// Initiator is the side that speaks first (MPA-011).
	Initiator bool
	Ready     Ready
	// IRD is how many requests of the peer this side keeps, and ORD how many of its own
	// may be outstanding (RDMAP-079).
	IRD, ORD   int
	Extensions Extensions
	// Sends and Receives are how many requests each queue holds.
	Sends, Receives int
	// Unordered says that the carrier places messages before those that come before them.
	Unordered bool

	Memory Memory
	// Sent takes completions of work requests, Received those of receives.
	Sent, Received Completions
	// Shared is a queue of receives that several streams share; without it, each stream has its own.
	Shared Receiver
	// Owner comes back with each completion.
	Owner any
	// Job, if not nil, is told between Begin and End of a carrier that [Stream.Job] has one, because the answers before it
	// are given: nothing more may come that somebody would look for one after.
	Job func()
}

// Receiver gives out receives that were posted for several streams.
type Receiver interface {
	Take() (r Receive, ok bool)
}

// state of a stream. It only goes forward.
type state uint8

const (
	open        state = iota
	terminating       // a Terminate waits for the carrier
	terminated        // a Terminate was sent, or received
	ended             // everything is flushed
)

// Stream is one RDMAP stream, without clock, goroutine, or lock: who drives it sees to it
// that one call ends before the next begins.
type Stream struct {
	cfg   Config
	state state
	cause error // why it is not open any more
	heard bool  // the peer has sent a message
	spoke bool  // the opening message, if there is one, was given to the carrier

	requester requester
	responder responder
	receives  receives

	// given are the messages that the carrier has and has not sent, oldest first.
	given ring[given]
	// ours is true if a response went last, so that a request is next.
	ours bool

	terminate [termSize]byte // ours
	termLen   int
	fromPeer  [termSize]byte

	stats Stats

	// completion is what Completions are given, one at a time.
	completion Completion
}

// given is a message that the carrier has.
type given struct {
	kind  givenKind
	place uint32 // of a work request
}

type givenKind uint8

const (
	givenWork givenKind = iota
	givenResponse
	givenOther // nobody waits for it
)

// New opens a stream.
func New(cfg Config) *Stream {
	cfg.Sends, cfg.Receives = max(cfg.Sends, 1), max(cfg.Receives, 1)
	s := &Stream{cfg: cfg, spoke: cfg.Ready == ReadyNone || !cfg.Initiator}
	s.requester = newRequester(cfg.Sends, cfg.ORD)
	s.responder = newResponder(cfg.IRD)
	s.receives = newReceives(cfg.Receives)
	s.given = newRing[given](cfg.Sends + cfg.IRD + 2)
	return s
}

// Err is nil while the stream is open, and then why it ended.
func (s *Stream) Err() error {
	if s.state == open {
		return nil
	}
	return s.cause
}

// Terminating says that a Terminate waits to be sent, or is with the carrier, which has not sent it; when it is gone the connection is to be
// closed.
func (s *Stream) Terminating() bool {
	return s.state == terminating || s.state == terminated && s.termLen > 0 && s.given.len() > 0
}

// Waiting says that there may be something for the carrier to ask for.
func (s *Stream) Waiting() bool {
	return s.state == terminating || s.state == open &&
		(s.requester.taken != s.requester.work.tail || s.responder.queue.has(s.responder.begun) || !s.spoke)
}

// Busy says that requests of this side, or answers to the peer's, are not done.
func (s *Stream) Busy() bool {
	return s.requester.work.len() > 0 || s.responder.queue.len() > 0 || s.given.len() > 0
}

// errClosed is the cause of a stream that its own side closed.
var errClosed = errors.New("the stream was closed")

// Fail ends the stream for a fault that the carrier or this side found, with a Terminate to the
// peer. The first one counts (RDMAP-092). Detail may be nil.
func (s *Stream) Fail(f ddp.Fault, detail error) {
	s.fail(&TerminateError{Fault: f, Detail: detail}, nil, 0, nil)
}

// fail does it for the segment h with n bytes of payload; read is the header of the Read Request at fault.
func (s *Stream) fail(e *TerminateError, h *ddp.Header, n int, read []byte) {
	if s.state != open {
		return
	}
	if h != nil {
		e.Header, e.Segment, e.HasHeader = *h, uint16(min(n, 0xffff)), true
	}
	s.termLen = e.put(s.terminate[:], read)
	s.state, s.cause = terminating, e
}

// End completes all requests and receives with an error. It is to be called when the carrier
// sends and places nothing more; cause is told if the stream knows no better one.
func (s *Stream) End(cause error) {
	if s.state == ended {
		return
	}
	if s.cause == nil {
		if cause == nil {
			cause = errClosed
		}
		s.cause = cause
	}
	s.state = ended
	err := &flushed{cause: s.cause}
	s.flushWork(err)
	s.flushReceives(err)
}
