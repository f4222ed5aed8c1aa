package rdmap

import (
	"encoding/binary"
	"fmt"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Bits of the third octet of a Terminate (RDMAP 1.5).
const (
	termLength = 0x80 // M: a segment length follows
	termDDP    = 0x40 // D: and the DDP header
	termRDMA   = 0x20 // R: and the header of a Read Request
	termBits   = termLength | termDDP | termRDMA

	// siw writes the three as bits 0, 1 and 2, and the first octet's halves the other way
	// round (S1).
	siwBits = 0x07

	termSize = 4 + 2 + ddp.UntaggedHeader + readSize
)

// TerminateError is the end of a stream by a Terminate message, the peer's or ours. It
// wraps the [ddp.Fault].
type TerminateError struct {
	Fault ddp.Fault
	// Remote says that the peer sent it, as it found fault with what we sent.
	Remote bool
	// Detail is what this side knows beyond the fault, or nil.
	Detail error
	// Segment is the length of the segment at fault, as its finder told it, and Header what it
	// began with; HasHeader says that it is there.
	Segment   uint16
	Header    ddp.Header
	HasHeader bool
	// Swapped says that the peer wrote it in the bit order of Linux's siw, not in that of RFC 5040.
	Swapped bool
}

// Error says who ended the stream, and why: the fault in words, with its numbers, or what this side knows
// beyond; and in what.
func (e *TerminateError) Error() string {
	who := "this side ended the stream: "
	if e.Remote {
		who = "the peer ended the stream: "
	}
	s := who + e.Fault.Error()
	if e.Detail != nil {
		s = who + e.Detail.Error()
	}
	if !e.HasHeader {
		return s
	}
	h := &e.Header
	op := Opcode(h.Control & opcodeMaskCommit)
	if h.Tagged {
		s += fmt.Sprintf(", in %s to STag %#x at offset %#x", op.One(), h.STag, h.TO)
	} else {
		s += fmt.Sprintf(", in %v %d of queue %d at offset %d", op, h.MSN, h.QN, h.MO)
	}
	return s + e.meant(op)
}

// meant says what a peer is likely to mean by a fault that has no number of its own.
func (e *TerminateError) meant(op Opcode) string {
	switch {
	case !e.Remote:
	case op == Write && e.Fault == ddp.TaggedSTag: // DDP has no fault for missing rights
		return "; memory without the right RemoteWrite is at fault so, too"
	case op == AtomicRequest && e.Fault == ddp.OperationStream: // who asks knows offsets, not addresses
		return "; an atomic operation needs an address at the peer that is a multiple of eight"
	}
	return ""
}

// Unwrap returns the fault, and the detail if there is one.
func (e *TerminateError) Unwrap() []error {
	if e.Detail == nil {
		return []error{e.Fault}
	}
	return []error{e.Fault, e.Detail}
}

// put writes the Terminate message for e. Which headers it has, the fault's layer and
// type tell (RDMAP 1.7, RDMAP-028 to 030); read is the header of the Read Request at fault, if it was one.
func (e *TerminateError) put(b []byte, read []byte) int {
	clear(b[:termSize])
	b[0] = e.Fault.Layer()<<4 | e.Fault.Type()
	b[1] = e.Fault.Code()
	n := 4
	local := e.Fault.Layer() == ddp.LayerRDMAP && e.Fault.Type() == 0
	if !e.HasHeader || e.Fault.Layer() == ddp.LayerMPA || local {
		return n
	}
	b[2] = termLength | termDDP
	binary.BigEndian.PutUint16(b[n:], e.Segment)
	n += 2
	n += e.Header.Put(b[n:])
	if e.Fault.Layer() == ddp.LayerRDMAP && e.Fault.Type() == ddp.RemoteProtection && len(read) == readSize {
		b[2] |= termRDMA
		n += copy(b[n:], read)
	}
	return n
}

// ParseTerminate reads what the peer says. Whatever it says, the stream ends, so that there are no
// errors (RDMAP-058): what cannot be read is left out. With setUp the peer has seen nothing of this side but the reply to
// its request; without, it cannot find fault with that any more.
func ParseTerminate(b []byte, setUp bool) *TerminateError {
	e := &TerminateError{Remote: true, Fault: ddp.OperationUnspecified}
	if len(b) < 4 {
		return e
	}
	bits := b[2] & termBits
	e.Fault = ddp.NewFault(b[0]>>4, b[0], b[1])
	if swapped := ddp.NewFault(b[0], b[0]>>4, b[1]); bits == 0 && (b[2]&siwBits != 0 || siwOnly(e.Fault, swapped, setUp)) {
		e.Fault, e.Swapped = swapped, true
		bits = b[2]&1<<7 | b[2]&2<<5 | b[2]&4<<3
	}
	rest := b[4:]
	if bits&termLength == 0 || len(rest) < 2 {
		return e
	}
	e.Segment = binary.BigEndian.Uint16(rest)
	rest = rest[2:]
	if bits&termDDP != 0 && len(rest) > 0 && len(rest) >= ddp.HeaderSize(rest[0]) {
		// A header with the version at fault is what the peer may tell about.
		_ = ddp.Parse(rest, &e.Header)
		e.HasHeader = true
	}
	return e
}

// siwOnly says of a Terminate without headers that siw wrote it: read the other way round it names an error that can be, and
// as it stands none. Before any message has come, only faults of the set-up can be, which are MPA's; afterwards those
// cannot.
func siwOnly(read, swapped ddp.Fault, setUp bool) bool {
	if setUp {
		return swapped.Known() && swapped.Layer() == ddp.LayerMPA && read.Layer() != ddp.LayerMPA
	}
	return swapped.Known() && (!read.Known() || read >= ddp.LocalMPA && read <= ddp.NoReadyFrame)
}

// SetUpTerminate makes the Terminate for a fault in the reply of a peer, before there is a stream
// (RDMAP-089).
func SetUpTerminate(f ddp.Fault, m *ddp.Message) {
	e := TerminateError{Fault: f}
	m.Header = Terminate.head()
	m.MSN = 1
	m.Data = nil
	m.InlineSize = e.put(m.Inline[:], nil)
	m.Length = uint32(m.InlineSize)
}
