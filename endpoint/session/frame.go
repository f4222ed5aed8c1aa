package session

// Epoch is one endpoint's half of the name of a session. 0 names none.
type Epoch uint32

// Tag returns what frames to receiver have in place of both epochs. For one epoch of the receiver, different
// epochs of the sender give different tags.
func Tag(receiver, sender Epoch) uint32 {
	return uint32(receiver) ^ (uint32(sender)<<16 | uint32(sender)>>16)
}

// Kind is the kind of a frame that belongs to the life cycle of a session.
type Kind uint8

const (
	NoFrame Kind = iota
	Hello
	Welcome
	Confirm
	Reject
	Refused
	Reset
	Bye
	Ack // acknowledges a CONFIRM; data has acknowledgements of its own
	kinds
)

var kindNames = [kinds]string{"no frame", "HELLO", "WELCOME", "CONFIRM", "REJECT", "REFUSED", "RESET", "BYE", "ACK"}

func (k Kind) String() string { return kindNames[k] }

// Refusal is why an endpoint has no session with a peer.
type Refusal uint8

const (
	WrongID   Refusal = iota // the endpoint has another id
	NoUnknown                // it takes no unknown sources
	NoRoom                   // it has as many peers as it may have
	NeedsSeal                // it takes sealed frames alone
)

// Frame is a frame of the life cycle of a session. A REJECT has both epochs as the CONFIRM that it answers. A RESET
// has the tag and the id of the frame that it answers, and no epochs.
type Frame struct {
	Kind          Kind
	Sender        Epoch   // but in REJECT, the sender's
	Receiver      Epoch   // the receiver's; 0 in HELLO
	Check         uint32  // of WELCOME and CONFIRM, see [Epochs]
	Refusal       Refusal // of REFUSED
	QuotedTag, ID uint32  // of RESET
	Copy          uint8   // of RESET: of the frame that it answers, for the caller
}
