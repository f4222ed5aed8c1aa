package rpcrdma

import "github.com/dgrdma/dgrdma/capture/tcp"

// What is found.
type What uint8

const (
	Malformed    What = iota // a header, or an RPC message, that is not as it must be
	Overrun                  // a Call beyond the credits that were granted
	TooLong                  // a Send beyond the threshold
	SeveralTags              // a Call with several STags: a Reply can invalidate only one
	InlineData               // data in a message, for which no chunk was given
	Unplaced                 // data in a Reply, although the Call has a Write chunk for them
	Returned                 // a Reply whose chunks are not those of its Call, or not what was written
	Invalidation             // a Reply that invalidates what it may not
	FallBack                 // version 1 after an attempt with version 2
	Again                    // a Call that an earlier connection left unanswered
	Twice                    // a Call with the XID of one that waits
	Unanswered               // a Call without a Reply at the end of its connection
	Unasked                  // a Reply or ERROR without a Call
	ReverseCalls             // of the server
	Restarted                // another write verifier of the same server
	NoCredits                // a Reply or an ERROR of version 1 that grants 0 credits
	Whats
)

// Found is how often something was found, and where first.
type Found struct {
	N      int
	Record int     // of the first one
	Way    tcp.Way // of the side that did it
	Other  int     // record of what the first one has to do with; 0: nothing
	Text   string  // about the first one, of kinds that vary
	Bytes  uint64  // of all of them, where that says something
}

func (f *Found) add(record int, way tcp.Way, other int, bytes uint64, text string) {
	if f.N++; f.N == 1 {
		f.Record, f.Way, f.Other, f.Text = record, way, other, text
	}
	f.Bytes += bytes
}

// found counts what was found in a message.
func (c *Connection) found(w What, m *Message, other int, bytes uint64, text string) {
	c.Found[w].add(m.Last.Record, m.Way, other, bytes, text)
}
