package ddp

import "fmt"

// Fault is an error as a Terminate message names it: the layer that found it, its type and
// its code, in four, four and eight bits (RDMAP 1.6, DDP 1.3, MPA-008).
type Fault uint16

// Layers of a fault.
const (
	LayerRDMAP = 0
	LayerDDP   = 1
	LayerMPA   = 2
)

// Types of faults that RDMAP finds.
const (
	RemoteProtection = 1
	RemoteOperation  = 2
)

// Faults of RDMAP.
const (
	Catastrophic Fault = 0x0000

	ProtectionSTag        Fault = 0x0100
	ProtectionBounds      Fault = 0x0101
	ProtectionRights      Fault = 0x0102
	ProtectionAssociation Fault = 0x0103
	ProtectionWrap        Fault = 0x0104
	ProtectionInvalidate  Fault = 0x0109
	ProtectionUnspecified Fault = 0x01ff

	OperationVersion     Fault = 0x0205
	OperationOpcode      Fault = 0x0206
	OperationStream      Fault = 0x0207
	OperationGlobal      Fault = 0x0208
	OperationInvalidate  Fault = 0x0209
	OperationUnspecified Fault = 0x02ff
)

// Faults of DDP.
const (
	LocalDDP Fault = 0x1000

	TaggedSTag        Fault = 0x1100
	TaggedBounds      Fault = 0x1101
	TaggedAssociation Fault = 0x1102
	TaggedWrap        Fault = 0x1103
	TaggedVersion     Fault = 0x1104

	UntaggedQN       Fault = 0x1201
	UntaggedNoBuffer Fault = 0x1202
	UntaggedMSN      Fault = 0x1203
	UntaggedMO       Fault = 0x1204
	UntaggedTooLong  Fault = 0x1205
	UntaggedVersion  Fault = 0x1206
)

// Faults of MPA.
const (
	Lost         Fault = 0x2001
	Checksum     Fault = 0x2002
	Malformed    Fault = 0x2003 // markers and length of a frame disagree
	SetUp        Fault = 0x2004
	LocalMPA     Fault = 0x2005
	NoReads      Fault = 0x2006
	NoReadyFrame Fault = 0x2007
)

// NewFault makes a fault of what a Terminate says.
func NewFault(layer, kind, code uint8) Fault {
	return Fault(layer&15)<<12 | Fault(kind&15)<<8 | Fault(code)
}

// Layer returns the layer that found the fault.
func (f Fault) Layer() uint8 { return uint8(f >> 12) }

// Type returns the type of the fault, which each layer counts by itself.
func (f Fault) Type() uint8 { return uint8(f >> 8 & 15) }

// Code returns the code of the fault, which each type counts by itself.
func (f Fault) Code() uint8 { return uint8(f) }

var words = map[Fault]string{
	Catastrophic:          "RDMAP: local catastrophic error",
	ProtectionSTag:        "RDMAP: remote protection error: invalid STag",
	ProtectionBounds:      "RDMAP: remote protection error: base or bounds violation",
	ProtectionRights:      "RDMAP: remote protection error: access rights violation",
	ProtectionAssociation: "RDMAP: remote protection error: STag not associated with the stream",
	ProtectionWrap:        "RDMAP: remote protection error: the tagged offset wraps",
	ProtectionInvalidate:  "RDMAP: remote protection error: STag cannot be invalidated",
	ProtectionUnspecified: "RDMAP: remote protection error: unspecified",
	OperationVersion:      "RDMAP: remote operation error: invalid RDMAP version",
	OperationOpcode:       "RDMAP: remote operation error: unexpected opcode",
	OperationStream:       "RDMAP: remote operation error: catastrophic, localized to the stream",
	OperationGlobal:       "RDMAP: remote operation error: catastrophic, global",
	OperationInvalidate:   "RDMAP: remote operation error: STag cannot be invalidated",
	OperationUnspecified:  "RDMAP: remote operation error: unspecified",
	LocalDDP:              "DDP: local catastrophic error",
	TaggedSTag:            "DDP: tagged buffer: invalid STag",
	TaggedBounds:          "DDP: tagged buffer: base or bounds violation",
	TaggedAssociation:     "DDP: tagged buffer: STag not associated with the stream",
	TaggedWrap:            "DDP: tagged buffer: the tagged offset wraps",
	TaggedVersion:         "DDP: tagged buffer: invalid DDP version",
	UntaggedQN:            "DDP: untagged buffer: invalid queue number",
	UntaggedNoBuffer:      "DDP: untagged buffer: no buffer for the message",
	UntaggedMSN:           "DDP: untagged buffer: message number not in the valid range",
	UntaggedMO:            "DDP: untagged buffer: invalid message offset",
	UntaggedTooLong:       "DDP: untagged buffer: message too long for the buffer",
	UntaggedVersion:       "DDP: untagged buffer: invalid DDP version",
	Lost:                  "MPA: TCP connection closed, terminated or lost",
	Checksum:              "MPA: CRC mismatch",
	Malformed:             "MPA: marker and length of a frame disagree",
	SetUp:                 "MPA: invalid request or reply",
	LocalMPA:              "MPA: local catastrophic error",
	NoReads:               "MPA: insufficient IRD",
	NoReadyFrame:          "MPA: no matching ready-to-receive frame",
}

// kind is the fault by whose name it goes: a local catastrophic error of RDMAP has no codes, and any is as good (figure 9 of
// RFC 5040).
func (f Fault) kind() Fault {
	if f.Layer() == LayerRDMAP && f.Type() == 0 {
		return Catastrophic
	}
	return f
}

// Is makes [errors.Is] find a fault whatever its code is, where the code means nothing.
func (f Fault) Is(target error) bool {
	t, ok := target.(Fault)
	return ok && f.kind() == t.kind()
}

// Known says that the texts name the fault.
func (f Fault) Known() bool {
	_, known := words[f.kind()]
	return known
}

// Error names the fault in words, and as the numbers that captures show: layer/type/code.
func (f Fault) Error() string {
	n := fmt.Sprintf("%d/%d/%02x", f.Layer(), f.Type(), f.Code())
	if w, known := words[f.kind()]; known {
		return w + " (" + n + ")"
	}
	layer := [...]string{"RDMAP", "DDP", "MPA"}
	if int(f.Layer()) < len(layer) {
		return layer[f.Layer()] + ": unknown error " + n
	}
	return "unknown error " + n
}
