package mpa

import (
	"fmt"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

const (
	// DefaultTimeout is how long each side waits for the other during set-up.
	DefaultTimeout = 10 * time.Second
	// SafePrivate is the length of private data that every peer is known to take: Linux's siw (S8)
	// receives 256 octets with the 4 of enhanced set-up, keeps the length of what it sends
	// in an octet, and a longer reply crashes its kernel.
	SafePrivate = 248
	// MaxReads is the largest IRD and ORD.
	MaxReads = NotNegotiated - 1
)

// Reserved bits of the flags octet by which our own kind knows itself. An initiator
// sets one, and a responder that knows it answers with another, which no request has:
// siw brings the bits of a request back in its reply, so that the first bit in a reply
// says nothing. 0x08 is siw's own (S11).
const (
	ownRequest = 0x01
	ownReply   = 0x02
)

// Options are what one side wants of a connection. The zero Options, and nil, want CRC,
// no reads, and revision 2.
type Options struct {
	// Private is for the program at the other side: at most [SafePrivate] octets, or
	// with LongPrivate what the frame has room for, 512 (508 with enhanced set-up).
	Private     []byte
	LongPrivate bool
	// NoCRC does not ask for CRC. It is used nevertheless if the peer asks.
	NoCRC bool
	// IRD is how many reads of the peer this side serves at a time, ORD how many it
	// would like to have under way itself. At most MaxReads.
	IRD, ORD int
	// Strict leaves the reserved flags alone, by which two of our own kind agree on
	// frames that are longer than a TCP segment.
	Strict bool
	// Ready are the kinds of ready-to-receive frames that this side knows; 0: all.
	Ready Ready

	// What follows is for who initiates.

	// Rev is the revision to ask for: 2, which 0 is as well, or 1, which has neither IRD and
	// ORD nor peer-to-peer mode.
	Rev int
	// PeerToPeer lets the responder send first, after a ready-to-receive frame.
	PeerToPeer bool
	// Timeout is for the reply, or for writing it; 0: DefaultTimeout.
	Timeout time.Duration
	// Terminate makes the message that tells the peer of a fault in its reply. nil:
	// the connection ends without a word.
	Terminate func(ddp.Fault, *ddp.Message)
}

// Agreed is what both sides have agreed on.
type Agreed struct {
	Rev int
	CRC bool
	// IRD is how many reads of the peer this side serves at a time, ORD how many it may have
	// under way itself. In revision 1 they are what the options say.
	IRD, ORD int
	// PeerToPeer says that the first frame of the initiator is the one that Ready names, and
	// that the responder may send once it has come.
	PeerToPeer bool
	Ready      Ready
	// Private is what the peer's program had to say.
	Private []byte
	// Long says that the peer is of our own kind and takes the longest frames.
	Long bool
}

// check says what is wrong with the options, for a frame of that kind.
func (o *Options) check(enhanced bool) error {
	most := SafePrivate
	if o.LongPrivate {
		most = maxPrivate
		if enhanced {
			most -= wordsSize
		}
	}
	switch {
	case len(o.Private) > most && !o.LongPrivate:
		return fmt.Errorf("%w: %d octets of private data; more than %d crash some peers, LongPrivate sends them nevertheless", ErrOption, len(o.Private), most)
	case len(o.Private) > most:
		return fmt.Errorf("%w: %d octets of private data; a frame has room for %d", ErrOption, len(o.Private), most)
	case o.IRD < 0 || o.IRD > MaxReads || o.ORD < 0 || o.ORD > MaxReads:
		return fmt.Errorf("%w: IRD %d, ORD %d; they are 0 to %d", ErrOption, o.IRD, o.ORD, MaxReads)
	case o.Rev < 0 || o.Rev > 2:
		return fmt.Errorf("%w: revision %d of MPA; 1 and 2 are known", ErrOption, o.Rev)
	case o.Rev == 1 && o.PeerToPeer:
		return fmt.Errorf("%w: peer-to-peer mode needs revision 2 of MPA", ErrOption)
	}
	return nil
}

func (o *Options) ready() Ready {
	if o.Ready == 0 {
		return ReadyWrite | ReadyRead | ReadySend
	}
	return o.Ready
}

// prefer chooses one of a set: a Write costs neither a read nor a receive of the peer, and siw knows no
// Send.
func (r Ready) prefer() Ready {
	for _, one := range []Ready{ReadyWrite, ReadyRead, ReadySend} {
		if r&one != 0 {
			return one
		}
	}
	return 0
}

// offer is the request of an initiator.
func (o *Options) offer() (SetUp, error) {
	s := SetUp{Rev: 2, CRC: !o.NoCRC, Private: o.Private, Enhanced: true, IRD: uint16(o.IRD), ORD: uint16(o.ORD)}
	if o.Rev == 1 {
		s.Rev, s.Enhanced, s.IRD, s.ORD = 1, false, 0, 0
	}
	if o.PeerToPeer {
		s.PeerToPeer, s.Ready = true, o.ready()
	}
	if !o.Strict {
		s.Reserved = ownRequest
	}
	return s, o.check(s.Enhanced)
}

// acceptable says what a responder cannot take, whatever its options are.
func acceptable(request *SetUp) error {
	if request.Markers {
		return &SetUpError{Err: ErrMarkers, What: "the request wants markers in the stream, which this side does not make; have the peer not ask for them"}
	}
	return nil
}

// answer is the reply of a responder that accepts, and what is then agreed.
func (o *Options) answer(request *SetUp) (SetUp, Agreed, error) {
	s := SetUp{Reply: true, Rev: request.Rev, Enhanced: request.Enhanced, Private: o.Private, CRC: request.CRC || !o.NoCRC}
	a := Agreed{Rev: int(s.Rev), CRC: s.CRC, IRD: o.IRD, ORD: o.ORD, Private: request.Private}
	if err := o.check(s.Enhanced); err != nil {
		return s, a, err
	}
	if request.Reserved == ownRequest && !o.Strict {
		s.Reserved, a.Long = ownReply, true
	}
	if !s.Enhanced {
		return s, a, nil
	}
	// MPA-014: what is not negotiated here is not negotiated in the reply either.
	s.IRD, s.ORD = NotNegotiated, NotNegotiated
	if request.ORD != NotNegotiated {
		a.IRD = min(o.IRD, int(request.ORD))
		s.IRD = uint16(a.IRD)
	}
	if request.IRD != NotNegotiated {
		a.ORD = min(o.ORD, int(request.IRD))
		s.ORD = uint16(a.ORD)
	}
	if !request.PeerToPeer {
		return s, a, nil
	}
	s.PeerToPeer, s.Ready = true, (request.Ready & o.ready()).prefer()
	a.PeerToPeer, a.Ready = true, s.Ready
	if s.Ready == 0 {
		return s, a, &SetUpError{Err: ErrReady, Fault: ddp.NoReadyFrame,
			What: fmt.Sprintf("the request offers %v, and this side knows %v", request.Ready, o.ready())}
	}
	return s, a, nil
}

// refusal is the reply of a responder that does not accept.
func refusal(request *SetUp, private []byte) SetUp {
	return SetUp{Reply: true, Rev: request.Rev, Enhanced: request.Enhanced, CRC: request.CRC, Reject: true, Private: private}
}

// conclude is what is agreed with a reply to the offer.
func (o *Options) conclude(request, reply *SetUp) (Agreed, error) {
	a := Agreed{Rev: int(request.Rev), CRC: request.CRC || reply.CRC, IRD: o.IRD, ORD: o.ORD, Private: reply.Private}
	switch {
	case reply.Reject:
		return a, &RejectedError{Private: reply.Private}
	case reply.Markers:
		return a, &SetUpError{Err: ErrMarkers, What: "the reply wants markers in the stream, which this side does not make; have the peer not ask for them"}
	case reply.Rev != request.Rev:
		return a, &SetUpError{Err: ErrRevision, What: fmt.Sprintf("a request of revision %d of MPA was answered in revision %d; ask for that one", request.Rev, reply.Rev)}
	case reply.Enhanced != request.Enhanced:
		return a, &SetUpError{Err: ErrRevision, What: "a request with IRD and ORD was answered without them; ask for revision 1 of MPA"}
	}
	// An echo of the own bit says that the peer echoes.
	a.Long = !o.Strict && reply.Reserved&(ownRequest|ownReply) == ownReply
	if !request.Enhanced {
		return a, nil
	}
	if reply.IRD != NotNegotiated {
		a.ORD = min(o.ORD, int(reply.IRD))
	}
	if reply.ORD != NotNegotiated && int(reply.ORD) > o.IRD {
		return a, &SetUpError{Err: ErrReads, Fault: ddp.NoReads,
			What: fmt.Sprintf("the peer wants %d reads under way, and %d were offered: its ORD must not exceed our IRD", reply.ORD, o.IRD)}
	}
	if !request.PeerToPeer {
		return a, nil
	}
	a.PeerToPeer = true
	if reply.PeerToPeer {
		a.Ready = (reply.Ready & request.Ready).prefer()
	}
	if a.Ready == 0 {
		return a, &SetUpError{Err: ErrReady, Fault: ddp.NoReadyFrame, What: fmt.Sprintf("the request offers %v, and the reply takes %v", request.Ready, reply.Ready)}
	}
	return a, nil
}

// String names the kinds.
func (r Ready) String() string {
	s := ""
	for _, k := range []struct {
		one  Ready
		name string
	}{{ReadyWrite, "Write"}, {ReadyRead, "Read"}, {ReadySend, "Send"}} {
		if r&k.one == 0 {
			continue
		}
		if s != "" {
			s += ", "
		}
		s += k.name
	}
	if s == "" {
		return "none"
	}
	return s
}
