package rdmap

import (
	"fmt"
	"strings"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Opcode is what a message says it is, in the control octet of each segment.
type Opcode uint8

// Opcodes of RFC 5040, RFC 7306 and draft-talpey-rdma-commit-01.
const (
	Write              Opcode = 0x00
	ReadRequest        Opcode = 0x01
	ReadResponse       Opcode = 0x02
	Send               Opcode = 0x03
	SendInvalidate     Opcode = 0x04
	SendSE             Opcode = 0x05
	SendSEInvalidate   Opcode = 0x06
	Terminate          Opcode = 0x07
	Immediate          Opcode = 0x08
	ImmediateSE        Opcode = 0x09
	AtomicRequest      Opcode = 0x0a
	AtomicResponse     Opcode = 0x0b
	FlushRequest       Opcode = 0x0c
	FlushResponse      Opcode = 0x0d
	VerifyRequest      Opcode = 0x0e
	VerifyResponse     Opcode = 0x0f
	AtomicWriteRequest Opcode = 0x10
	AtomicWriteReply   Opcode = 0x11
)

// Queues of untagged messages (RDMAP-005, RDMAPX-007).
const (
	queueSend      = 0
	queueRequest   = 1
	queueTerminate = ddp.AbortQueue
	queueResponse  = 3
)

// The control octet: RDMAP's version in the upper two bits, the opcode in the lower
// four, or five where both sides have agreed on the commit extensions (COMMIT-007).
const (
	controlVersion     = 0x40
	controlVersionMask = 0xc0
	opcodeMask         = 0x0f
	opcodeMaskCommit   = 0x1f
)

type opcodeKind struct {
	name   string
	tagged bool
	queue  uint32
	needs  Extensions
}

var opcodes = [...]opcodeKind{
	Write:              {"Write", true, 0, 0},
	ReadRequest:        {"Read Request", false, queueRequest, 0},
	ReadResponse:       {"Read Response", true, 0, 0},
	Send:               {"Send", false, queueSend, 0},
	SendInvalidate:     {"Send with Invalidate", false, queueSend, 0},
	SendSE:             {"Send with SE", false, queueSend, 0},
	SendSEInvalidate:   {"Send with SE and Invalidate", false, queueSend, 0},
	Terminate:          {"Terminate", false, queueTerminate, 0},
	Immediate:          {"Immediate Data", false, queueSend, Immediates},
	ImmediateSE:        {"Immediate Data with SE", false, queueSend, Immediates},
	AtomicRequest:      {"Atomic Request", false, queueRequest, Atomics},
	AtomicResponse:     {"Atomic Response", false, queueResponse, Atomics},
	FlushRequest:       {"Flush Request", false, queueRequest, Commit},
	FlushResponse:      {"Flush Response", false, queueResponse, Commit},
	VerifyRequest:      {"Verify Request", false, queueRequest, Commit},
	VerifyResponse:     {"Verify Response", false, queueResponse, Commit},
	AtomicWriteRequest: {"Atomic Write Request", false, queueRequest, Commit},
	AtomicWriteReply:   {"Atomic Write Response", false, queueResponse, Commit},
}

func (o Opcode) String() string {
	if int(o) < len(opcodes) {
		return opcodes[o].name
	}
	return fmt.Sprintf("opcode %#02x", uint8(o))
}

// One is one such operation in a sentence: "a Write", "an Atomic Request".
func (o Opcode) One() string {
	s := o.String()
	if strings.ContainsRune("AEIOUaeiou", rune(s[0])) {
		return "an " + s
	}
	return "a " + s
}

// Extensions are the operations beyond RFC 5040 that both sides of a stream have agreed
// on. Nothing on the wire tells (RDMAPX-002, COMMIT-005): the programs have to.
type Extensions uint8

// The extensions, each by itself (RDMAPX-005).
const (
	Atomics    Extensions = 1 << iota // FetchAdd and CmpSwap, RFC 7306
	Immediates                        // Immediate Data, RFC 7306
	Commit                            // Flush, Verify, Atomic Write, draft-talpey-rdma-commit-01
)

var extensionNames = [...]string{"Atomics", "Immediates", "Commit"}

// String names the extensions as the constants do.
func (e Extensions) String() string {
	var has []string
	for i, name := range extensionNames {
		if e>>i&1 != 0 {
			has = append(has, name)
		}
	}
	if e>>len(extensionNames) != 0 {
		has = append(has, "unknown extensions")
	}
	if has == nil {
		return "no extensions"
	}
	return strings.Join(has, "|")
}

// opcode reads the control octet of a segment and checks that the rest of the header fits
// it (RDMAP-020, RDMAP-093, RDMAP-096).
func (e Extensions) opcode(h *ddp.Header) (Opcode, error) {
	if h.Control&controlVersionMask != controlVersion {
		return 0, ddp.OperationVersion
	}
	op := Opcode(h.Control & opcodeMask)
	if e&Commit != 0 {
		op = Opcode(h.Control & opcodeMaskCommit)
	}
	if int(op) >= len(opcodes) {
		return op, ddp.OperationOpcode
	}
	k := &opcodes[op]
	switch {
	case k.needs&^e != 0, k.tagged != h.Tagged:
		return op, ddp.OperationOpcode
	case !k.tagged && k.queue != h.QN:
		return op, ddp.UntaggedQN
	}
	return op, nil
}

// head is the header of the only or first segment of a message.
func (o Opcode) head() ddp.Header {
	return ddp.Header{Tagged: opcodes[o].tagged, QN: opcodes[o].queue, Control: controlVersion | byte(o)}
}
