package rpcrdma

import (
	"github.com/dgrdma/dgrdma/capture/tcp"
	codec "github.com/dgrdma/dgrdma/rpcrdma"
)

// Kind is what a message is.
type Kind uint8

// Kinds of messages.
const (
	Unread     Kind = iota // it is not whole in the capture, or its header is malformed
	CallKind               // a Call, or its last part
	ReplyKind              // a Reply, or its last part
	Part                   // a part of a message of version 2 that is not the last one
	Error                  // an ERROR
	Properties             // properties of version 2
	Refresh                // of version 2: it does nothing but grant credits
)

var kindNames = [...]string{"unread", "Call", "Reply", "part", "ERROR", "properties", "refresh"}

func (k Kind) String() string { return kindNames[k] }

// Message is what one Send carries. It is valid until the next event.
type Message struct {
	Conn        *Connection
	Way         tcp.Way // of the side that sent it
	First, Last tcp.Ref
	Length      uint64 // of the Send
	Kind        Kind
	Header      *codec.Header
	Payload     uint64 // length of what follows the header
	Fault       error  // what is wrong with the header: a *codec.Fault
	Wrong       string // what is wrong with the RPC message, or empty
	Reverse     bool   // it is of the reverse direction
	Call        *Call  // that it is, or that it answers; nil if that is not known
	Status      Status // of a Reply

	Octets []byte // of the Send from its header on, as far as they were captured, and [mostKept] at most

	rpc []byte // the RPC message, as far as it is known

	Late bool // it was read after what came later

	Invalidates bool
	STag        uint32 // that it invalidates
}

// message is one that is being put together.
type message struct {
	buf    []byte // from its beginning
	length uint64
	first  tcp.Ref
	begun  bool
	broken bool // what follows buf is not known
}

// mostKept is how much of a Send is read: the longest header of a Decoder has 6.2 KB.
const mostKept = 8 << 10

// add takes a segment, of which b, its beginning, was captured.
func (m *message) add(b []byte, length int) {
	m.length += uint64(length)
	if m.broken {
		return
	}
	m.buf = append(m.buf, b[:min(len(b), mostKept-len(m.buf))]...)
	m.broken = len(b) < length || len(m.buf) == mostKept
}

// part is a message of version 2 of which more parts follow.
type part struct {
	begun  bool
	xid    uint32
	head   []byte
	length uint64
}

// part returns what a message of a side may continue.
func (s *Side) part(h *codec.Header) *part {
	if h.Flags&codec.FlagResponse != 0 {
		return &s.parts[1]
	}
	return &s.parts[0]
}

// mostHead is how much of an RPC message is read: its header has at most 840 octets.
const mostHead = 1 << 10
