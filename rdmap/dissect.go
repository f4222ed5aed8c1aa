package rdmap

import "github.com/dgrdma/dgrdma/rdmap/ddp"

// OpcodeOf reads the opcode of a segment for who looks on, and does not know on what both sides have agreed
// (COMMIT-007): five bits of it where they name one of the commit extensions that is for this queue, else four. fits says that version, kind and
// queue are the opcode's.
func OpcodeOf(h *ddp.Header) (op Opcode, fits bool) {
	const all = Atomics | Immediates | Commit
	if op, err := all.opcode(h); err == nil {
		return op, true
	}
	narrow := *h
	narrow.Control &^= opcodeMaskCommit &^ opcodeMask
	op, err := all.opcode(&narrow)
	if err == ddp.OperationVersion {
		op = Opcode(h.Control & opcodeMask)
	}
	return op, err == nil
}

// Operands are what a request, or its answer, says behind its header. Which of them it has, the opcode tells.
type Operands struct {
	Read               ReadHeader
	Atomic             AtomicHeader
	AtomicReply        AtomicReplyHeader
	Range              RangeHeader // of Flush, Verify and Atomic Write
	Persistent, Global bool        // of Flush
	Word               [8]byte     // of Atomic Write and Immediate Data
	Hash               []byte      // of Verify and its answer; that of what was parsed
}

// Parse reads the whole payload of a message that has operands. The error is a [ddp.Fault]: their length is wrong, or an operation is
// not known.
func (o *Operands) Parse(op Opcode, b []byte) error {
	*o = Operands{}
	want := -1
	switch op {
	case ReadRequest:
		return o.Read.Parse(b)
	case AtomicRequest:
		return o.Atomic.Parse(b)
	case AtomicResponse:
		want = atomicReplySize
	case Immediate, ImmediateSE:
		want = immediateSize
	case FlushRequest:
		want = flushSize
	case AtomicWriteRequest:
		want = atomicWriteSize
	case FlushResponse, AtomicWriteReply:
		want = 0
	}
	if want >= 0 && len(b) != want {
		return ddp.OperationStream
	}
	switch op {
	case AtomicResponse:
		o.AtomicReply.Parse(b)
	case Immediate, ImmediateSE:
		o.Word = [8]byte(b)
	case FlushRequest:
		o.Persistent, o.Global = b[flushSize-1]&flagPersistent != 0, b[flushSize-1]&flagGlobal != 0
		return o.Range.Parse(b)
	case AtomicWriteRequest:
		o.Word = [8]byte(b[verifySize:])
		return o.Range.Parse(b)
	case VerifyRequest:
		if err := o.Range.Parse(b); err != nil {
			return err
		}
		o.Hash = b[verifySize:]
	case VerifyResponse:
		o.Hash = b
	}
	return nil
}

// Operation names what an Atomic Request does.
func (a *AtomicHeader) Operation() string {
	switch a.Op {
	case fetchAdd:
		return "FetchAdd"
	case cmpSwap:
		return "CmpSwap"
	}
	return "unknown operation"
}

// Answer returns the opcode that answers a request, and false for what is none.
func (o Opcode) Answer() (Opcode, bool) {
	switch o {
	case ReadRequest, AtomicRequest, FlushRequest, VerifyRequest, AtomicWriteRequest:
		return o + 1, true
	}
	return 0, false
}
