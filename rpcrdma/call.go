package rpcrdma

import (
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// Call is one call of a Requester. It is the program's until [Machine.Call], and again from ActReturn on.
type Call struct {
	// Head is the RPC message without Items, and begins with its XID, which no other Call of the connection has.
	Head []byte
	// Items are those that may travel by themselves. They are lent to the peer if the message is too long for one Send.
	Items []xdr.Item
	// Into is where results may be placed: memory that is lent to the peer, one Write chunk each.
	Into [][]byte
	// Direct says that Items and Into are memory that the program uses again. Then a cancelled Call returns only when
	// the peer can touch them no more. Otherwise it returns at once: see Kept.
	Direct bool
	// MaxReply is the length of the longest Reply, without what is placed.
	MaxReply int
	// Done is for whoever carries out ActReturn. The machine does not call it.
	Done func(*Call)

	// At ActReturn:
	Err  error
	Sent bool // the peer may have carried it out
	// Kept says that Items and Into may still be used by the peer: they belong to the machine, which leaves them to the
	// collector. It is so only after a Cancel, and never if Direct is set.
	Kept bool
	// Message is the Reply, without what was placed. It is in Reply, which the program gives back to the Pool.
	Message []byte
	Reply   *Buffer
	// Placed is how many octets were written into Into[i]. It is -1 if that was not lent: all items are in Message.
	Placed [MaxInto]int

	out *call // of the machine; nil after ActReturn
}

// MaxInto is how many Write chunks a Call has at most. The number is arbitrary.
const MaxInto = 4

// state is how far a Call is.
type state uint8

const (
	// callQueued: nothing was sent. Cancel returns the Call at once.
	callQueued state = iota
	// callSending: some parts were sent, and nothing is lent. Cancel returns the Call at once, and an empty last part
	// follows: the peer finds that the message ends early. An ERROR does the same.
	callSending
	// callSent: the Reply is waited for. Cancel returns the Call at once, or with the Reply if it is Direct and has lent
	// memory.
	callSent
	// callCollecting: some parts of the Reply came. Cancel does as in callSent, and the other parts are dropped.
	callCollecting
	// callAnswered: an ERROR came before all parts were sent. The Call was returned.
	callAnswered
)

// call is what the machine keeps of a Call, from a free list. It outlives the Call that was cancelled: the XID,
// the credit and the leases are the peer's until its Reply or ERROR.
type call struct {
	of       *Call // nil if it was returned
	xid      uint32
	state    state
	deadline time.Time // of the Reply, after a Cancel; zero before

	// What is sent: the message without the items that are reduced. Flat is its buffer, unless it is the Call's Head.
	head    []byte
	flat    *Buffer
	sent    int  // octets of head
	special bool // head is lent: the first Read chunk, at Position 0

	// The chunks that are given: Read chunks of items, Write chunks of Call.Into, a Reply chunk of replySize octets.
	reads, writes int
	chunks        [MaxReadChunks]readPlan
	hasReply      bool
	replySize     int
	// Leases are those of the chunks, in this order, once they are registered. The slice and its Regions stay when
	// the record is used again.
	leases []Lease
	lent   bool

	reply     *Buffer // of the Reply chunk
	parts     *Buffer // of the parts of the Reply
	collected int     // octets of the parts, also of those that are not kept
	spoiled   bool    // some part of the Reply is not there
}

// wholeMessage is the item of the Read chunk at Position 0.
const wholeMessage = -1

// readPlan is where a Read chunk belongs, and what it is of.
type readPlan struct {
	position uint32
	item     int // of Call.Items, or wholeMessage
	length   int
}
