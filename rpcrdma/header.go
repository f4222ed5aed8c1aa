package rpcrdma

import (
	"encoding/binary"
	"strconv"
)

// Versions of RPC-over-RDMA.
const (
	Version1 = 1
	Version2 = 2
)

// Lengths of the prefixes: what each header begins with.
const (
	PrefixSize1 = 16
	PrefixSize2 = 20
)

// Type is the type of a header.
type Type uint32

// Types of headers.
const (
	TypeMsg      Type = 0
	TypeNoMsg    Type = 1
	TypeMsgP     Type = 2 // version 1; never sent
	TypeDone     Type = 3 // version 1; never sent
	TypeError    Type = 4
	TypeConnProp Type = 5 // version 2
)

var typeNames = [...]string{"MSG", "NOMSG", "MSGP", "DONE", "ERROR", "CONNPROP"}

func (t Type) String() string {
	if int64(t) < int64(len(typeNames)) {
		return typeNames[t]
	}
	return "type " + strconv.FormatUint(uint64(t), 10)
}

// Flags are those of a header of version 2.
type Flags uint32

// Flags.
const (
	FlagResponse Flags = 1 << iota // the xid is that of a Call of the receiver
	FlagMore                       // the payload goes on in the next message
	FlagTPMore                     // another CONNPROP follows
	knownFlags   = FlagResponse | FlagMore | FlagTPMore
)

// Header is a transport header. Fields that its type or version does not have are 0.
type Header struct {
	XID uint32
	// Version is that of the layout: 1 or 2. It is also the word on the wire, except in an ERR_VERS: see [Report].
	Version uint32
	// Credit is the word of credits: in version 1 how many are asked for (Call) or granted (Reply), in
	// version 2 two numbers: see [Credit2].
	Credit uint32
	Type   Type
	Flags  Flags // version 2; unknown ones are neither read nor sent

	// Of MSG and NOMSG.
	InvHandle uint32 // version 2: the handle that the Reply may invalidate, or 0
	Reads     []ReadChunk
	Writes    []Chunk
	HasReply  bool // a Reply chunk is there, if with 0 segments
	Reply     Chunk

	Report     Report     // of ERROR
	Properties []Property // of CONNPROP
}

// Credit2 makes the word of credits of version 2: the most that can be outstanding at the sender
// of the message, and how many it newly grants.
func Credit2(maximum, granted uint16) uint32 { return uint32(maximum)<<16 | uint32(granted) }

// Maximum returns the first number of the word of credits of version 2.
func (h *Header) Maximum() uint16 { return uint16(h.Credit >> 16) }

// Granted returns the second number of the word of credits of version 2.
func (h *Header) Granted() uint16 { return uint16(h.Credit) }

// noLists reports whether all lists are absent.
func (h *Header) noLists() bool { return len(h.Reads) == 0 && len(h.Writes) == 0 && !h.HasReply }

// IsRefresh reports whether the message does nothing but grant credits.
func (h *Header) IsRefresh() bool {
	return h.Version == Version2 && h.Type == TypeNoMsg && h.XID == 0 && h.noLists()
}

// Prefix is the four words with which headers of all versions begin (RPC1-003).
type Prefix struct {
	XID     uint32
	Version uint32
	Credit  uint32
	Type    Type
}

// Peek reads the beginning of a message, which tells the version that it is of. It is not ok if the
// message is shorter.
func Peek(b []byte) (p Prefix, ok bool) {
	if len(b) < PrefixSize1 {
		return p, false
	}
	return Prefix{word(b, 0), word(b, 4), word(b, 8), Type(word(b, 12))}, true
}

// word reads the word at an offset.
func word(b []byte, at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }

// isErrVers says whether the message is an ERR_VERS, and in which version's layout. Its version word is that
// of the refused message, and the two layouts differ in length alone.
func isErrVers(b []byte, highest uint32) (layout uint32, is bool) {
	switch len(b) {
	case PrefixSize1 + 3*wordSize:
		// A header of version 2 of this length has flags where version 1 has the code, and then a code.
		code := ErrorCode(word(b, PrefixSize2))
		other := highest >= Version2 && word(b, 4) == Version2 && reportSize(Version2, code) == 2*wordSize
		return Version1, ErrorCode(word(b, PrefixSize1)) == CodeVers && !other
	case PrefixSize2 + 3*wordSize:
		return Version2, Flags(word(b, PrefixSize1))&FlagResponse != 0 && ErrorCode(word(b, PrefixSize2)) == CodeVers
	}
	return 0, false
}
