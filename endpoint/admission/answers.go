package admission

import (
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// Answer is what an unknown source is answered: with a frame of the handshake, or with a RESET.
type Answer struct {
	Local, Remote frame.EndpointID
	To            transport.Addr
	Handshake     frame.Handshake
	Why           uint8               // of a REFUSED
	Reset         frame.SessionHeader // of the frame that it answers, if Handshake is none
	Identifies    bool                // a WELCOME that says who the endpoint is

	lists bool // a list of services follows
}

// Outcome says what became of an answer.
type Outcome uint8

const (
	Added  Outcome = iota
	Again          // the same answer leaves already: one is enough for a burst
	Full           // MostAnswers leave; the source asks again
	TooBig         // it would be longer than the question
)

// Answers are those that leave after a batch.
type Answers struct {
	mtu    int
	checks bool // answers have a checksum where there is room
	list   []Answer
}

// Init empties a, whose frames have at most that many bytes.
func (a *Answers) Init(mtu int, checks bool) { *a = Answers{mtu: mtu, checks: checks} }

// Len returns how many answers leave.
func (a *Answers) Len() int { return len(a.list) }

// All returns them.
func (a *Answers) All() []Answer { return a.list }

// Clear forgets them.
func (a *Answers) Clear() { a.list = a.list[:0] }

// Add has a question answered after the batch. A source whose answer comes late asks again during that time, and loses nothing by it.
func (a *Answers) Add(x Answer, q Question) Outcome {
	h := &x.Handshake
	if h.Kind == frame.HandshakeRefused && q.Size < frame.RefusedSize {
		return TooBig
	}
	h.Checks = a.checks && (q.Checked || q.Size >= frame.ListedSize+frame.ChecksumSize)
	need := frame.ListedSize
	if h.Checks {
		need += frame.ChecksumSize
	}
	x.lists = h.Kind == frame.HandshakeWelcome && q.Size >= frame.ListedSize && a.mtu >= need
	if x.Identifies && !x.lists {
		return TooBig
	}
	switch n := len(a.list); {
	case n > 0 && a.list[n-1] == x:
		return Again
	case n == MostAnswers:
		return Full
	}
	a.list = append(a.list, x)
	return Added
}

// Put writes the frame to the first bytes of b, and returns how many, without the checksum. own is what a REFUSED says of the endpoint, and list
// what a WELCOME does, which has room for own where it says that, too.
func (x *Answer) Put(b []byte, own frame.Refusal, list *frame.Services) (n int) {
	h := &x.Handshake
	if h.Kind == frame.NoHandshake {
		return frame.PutReset(b, x.Reset)
	}
	if !x.lists {
		list = nil
	}
	n = h.PutWith(b, x.Remote, x.Local, list)
	if x.Identifies {
		frame.PutIdentity(b[frame.HandshakeSize:n], own)
	}
	if h.Kind == frame.HandshakeRefused {
		own.Why = x.Why
		own.Put(b[n:])
		n = frame.RefusedSize
	}
	return n
}
