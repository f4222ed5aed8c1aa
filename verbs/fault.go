package verbs

import (
	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// FileLostError says which region it is whose bytes the system cannot get at any more.
//
//	type FileLostError struct {
//		// STag is that of the region, also where a window of it was used.
//		STag uint32
//		// Fault is what the peer is told.
//		Fault Fault
//
//		// contains unexported fields
//	}
//
//	func (e *FileLostError) Error() string
//	    Error names the region, and its file if a file was registered.
//
//	func (e *FileLostError) Unwrap() []error
//	    Unwrap returns the reason, which every such error has in common, and the fault.
type FileLostError = memory.LostError

// TerminateError is the end of a stream by a Terminate message, the peer's or ours. It
// wraps the [Fault].
//
//	type TerminateError struct {
//		Fault Fault
//		// Remote says that the peer sent it, as it found fault with what we sent.
//		Remote bool
//		// Detail is what this side knows beyond the fault, or nil.
//		Detail error
//		// Segment is the length of the segment at fault, as its finder told it, and Header what it
//		// began with; HasHeader says that it is there.
//		Segment   uint16
//		Header    Header
//		HasHeader bool
//		// Swapped says that the peer wrote it in the bit order of Linux's siw, not in that of RFC 5040.
//		Swapped bool
//	}
//
//	func (e *TerminateError) Error() string
//	    Error says who ended the stream, and why: the fault in words, with its numbers, or what this side knows
//	    beyond; and in what.
//
//	func (e *TerminateError) Unwrap() []error
//	    Unwrap returns the fault, and the detail if there is one.
type TerminateError = rdmap.TerminateError

// Fault is an error as a Terminate message names it: the layer that found it, its type and
// its code, in four, four and eight bits (RDMAP 1.6, DDP 1.3).
//
//	type Fault uint16
//
//	const (
//		FaultCatastrophic          Fault = 0x0000
//		FaultProtectionSTag        Fault = 0x0100
//		FaultProtectionBounds      Fault = 0x0101
//		FaultProtectionRights      Fault = 0x0102
//		FaultProtectionAssociation Fault = 0x0103
//		FaultProtectionWrap        Fault = 0x0104
//		FaultProtectionInvalidate  Fault = 0x0109
//		FaultProtectionUnspecified Fault = 0x01ff
//		FaultOperationVersion      Fault = 0x0205
//		FaultOperationOpcode       Fault = 0x0206
//		FaultOperationStream       Fault = 0x0207
//		FaultOperationGlobal       Fault = 0x0208
//		FaultOperationInvalidate   Fault = 0x0209
//		FaultOperationUnspecified  Fault = 0x02ff
//	)
//
//	const (
//		FaultLocalDDP          Fault = 0x1000
//		FaultTaggedSTag        Fault = 0x1100
//		FaultTaggedBounds      Fault = 0x1101
//		FaultTaggedAssociation Fault = 0x1102
//		FaultTaggedWrap        Fault = 0x1103
//		FaultTaggedVersion     Fault = 0x1104
//		FaultUntaggedQN        Fault = 0x1201
//		FaultUntaggedNoBuffer  Fault = 0x1202
//		FaultUntaggedMSN       Fault = 0x1203
//		FaultUntaggedMO        Fault = 0x1204
//		FaultUntaggedTooLong   Fault = 0x1205
//		FaultUntaggedVersion   Fault = 0x1206
//	)
//
//	const (
//		FaultLost         Fault = 0x2001
//		FaultChecksum     Fault = 0x2002
//		FaultMalformed    Fault = 0x2003 // markers and length of a frame disagree
//		FaultSetUp        Fault = 0x2004
//		FaultLocalMPA     Fault = 0x2005
//		FaultNoReads      Fault = 0x2006
//		FaultNoReadyFrame Fault = 0x2007
//	)
//
//	func (f Fault) Code() uint8
//	    Code returns the code of the fault, which each type counts by itself.
//
//	func (f Fault) Error() string
//	    Error names the fault in words, and as the numbers that captures show: layer/type/code.
//
//	func (f Fault) Is(target error) bool
//	    Is makes [errors.Is] find a fault whatever its code is, where the code means nothing.
//
//	func (f Fault) Known() bool
//	    Known says that the texts name the fault.
//
//	func (f Fault) Layer() uint8
//	    Layer returns the layer that found the fault.
//
//	func (f Fault) Type() uint8
//	    Type returns the type of the fault, which each layer counts by itself.
type Fault = ddp.Fault

// What [Fault] can be.
const (
	FaultCatastrophic          = ddp.Catastrophic
	FaultProtectionSTag        = ddp.ProtectionSTag
	FaultProtectionBounds      = ddp.ProtectionBounds
	FaultProtectionRights      = ddp.ProtectionRights
	FaultProtectionAssociation = ddp.ProtectionAssociation
	FaultProtectionWrap        = ddp.ProtectionWrap
	FaultProtectionInvalidate  = ddp.ProtectionInvalidate
	FaultProtectionUnspecified = ddp.ProtectionUnspecified
	FaultOperationVersion      = ddp.OperationVersion
	FaultOperationOpcode       = ddp.OperationOpcode
	FaultOperationStream       = ddp.OperationStream
	FaultOperationGlobal       = ddp.OperationGlobal
	FaultOperationInvalidate   = ddp.OperationInvalidate
	FaultOperationUnspecified  = ddp.OperationUnspecified
)

// What [Fault] can be.
const (
	FaultLocalDDP          = ddp.LocalDDP
	FaultTaggedSTag        = ddp.TaggedSTag
	FaultTaggedBounds      = ddp.TaggedBounds
	FaultTaggedAssociation = ddp.TaggedAssociation
	FaultTaggedWrap        = ddp.TaggedWrap
	FaultTaggedVersion     = ddp.TaggedVersion
	FaultUntaggedQN        = ddp.UntaggedQN
	FaultUntaggedNoBuffer  = ddp.UntaggedNoBuffer
	FaultUntaggedMSN       = ddp.UntaggedMSN
	FaultUntaggedMO        = ddp.UntaggedMO
	FaultUntaggedTooLong   = ddp.UntaggedTooLong
	FaultUntaggedVersion   = ddp.UntaggedVersion
)

// What [Fault] can be.
const (
	FaultLost         = ddp.Lost
	FaultChecksum     = ddp.Checksum
	FaultMalformed    = ddp.Malformed
	FaultSetUp        = ddp.SetUp
	FaultLocalMPA     = ddp.LocalMPA
	FaultNoReads      = ddp.NoReads
	FaultNoReadyFrame = ddp.NoReadyFrame
)

// Header is the header of one segment. Fields of the other kind are 0.
//
//	type Header struct {
//		Tagged bool
//		Last   bool
//		// Control is RDMAP's octet, which DDP passes as it is.
//		Control byte
//
//		STag uint32
//		TO   uint64
//
//		// Invalidate is what RDMAP says in its other four octets.
//		Invalidate uint32
//		QN         uint32
//		MSN        uint32
//		MO         uint32
//	}
//
//	func (h *Header) Put(b []byte) int
//	    Put writes the header to b, which has room for it, and returns its length.
//
//	func (h *Header) Size() int
//	    Size returns the length of the header.
type Header = ddp.Header
