package rdmap

import (
	"encoding/binary"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// Lengths of RDMAP's own headers.
const (
	readSize        = 28
	atomicSize      = 52
	atomicReplySize = 12
	immediateSize   = 8
	flushSize       = 20
	verifySize      = 16 // and the hash, if there is one
	atomicWriteSize = 24
	// HashSize is the longest hash of a Verify.
	HashSize = 32
)

// readRequest is the header of a Read Request (RDMAP-024).
type readRequest struct {
	sinkSTag uint32
	sinkTO   uint64
	size     uint32
	srcSTag  uint32
	srcTO    uint64
}

func (r *readRequest) put(b []byte) int {
	_ = b[readSize-1]
	binary.BigEndian.PutUint32(b, r.sinkSTag)
	binary.BigEndian.PutUint64(b[4:], r.sinkTO)
	binary.BigEndian.PutUint32(b[12:], r.size)
	binary.BigEndian.PutUint32(b[16:], r.srcSTag)
	binary.BigEndian.PutUint64(b[20:], r.srcTO)
	return readSize
}

func (r *readRequest) parse(b []byte) error {
	if len(b) != readSize {
		return ddp.OperationStream
	}
	r.sinkSTag = binary.BigEndian.Uint32(b)
	r.sinkTO = binary.BigEndian.Uint64(b[4:])
	r.size = binary.BigEndian.Uint32(b[12:])
	r.srcSTag = binary.BigEndian.Uint32(b[16:])
	r.srcTO = binary.BigEndian.Uint64(b[20:])
	return nil
}

// Operations of an Atomic Request; 1 is reserved.
const (
	fetchAdd = 0
	cmpSwap  = 2
)

// atomicRequest is the header of an Atomic Request (RDMAPX 1.2).
type atomicRequest struct {
	op      uint8
	id      uint32
	stag    uint32
	to      uint64
	operand uint64 // what is added, or swapped in
	mask    uint64
	compare uint64
	cmpMask uint64
}

func (a *atomicRequest) put(b []byte) int {
	_ = b[atomicSize-1]
	binary.BigEndian.PutUint32(b, uint32(a.op))
	binary.BigEndian.PutUint32(b[4:], a.id)
	binary.BigEndian.PutUint32(b[8:], a.stag)
	binary.BigEndian.PutUint64(b[12:], a.to)
	binary.BigEndian.PutUint64(b[20:], a.operand)
	binary.BigEndian.PutUint64(b[28:], a.mask)
	binary.BigEndian.PutUint64(b[36:], a.compare)
	binary.BigEndian.PutUint64(b[44:], a.cmpMask)
	return atomicSize
}

func (a *atomicRequest) parse(b []byte) error {
	if len(b) != atomicSize {
		return ddp.OperationStream
	}
	a.op = b[3] & 15
	a.id = binary.BigEndian.Uint32(b[4:])
	a.stag = binary.BigEndian.Uint32(b[8:])
	a.to = binary.BigEndian.Uint64(b[12:])
	a.operand = binary.BigEndian.Uint64(b[20:])
	a.mask = binary.BigEndian.Uint64(b[28:])
	a.compare = binary.BigEndian.Uint64(b[36:])
	a.cmpMask = binary.BigEndian.Uint64(b[44:])
	if a.op != fetchAdd && a.op != cmpSwap {
		return ddp.OperationStream // RDMAPX-021: the RFC names no code
	}
	return nil
}

// Flags of a Flush Request.
const (
	flagPersistent = 1
	flagGlobal     = 2
)

// rangeRequest is how the requests of the commit extensions begin: STag, length, TO, in
// this order.
type rangeRequest struct {
	stag   uint32
	length uint32
	to     uint64
}

func (r *rangeRequest) put(b []byte) int {
	_ = b[verifySize-1]
	binary.BigEndian.PutUint32(b, r.stag)
	binary.BigEndian.PutUint32(b[4:], r.length)
	binary.BigEndian.PutUint64(b[8:], r.to)
	return verifySize
}

func (r *rangeRequest) parse(b []byte) error {
	if len(b) < verifySize {
		return ddp.OperationStream
	}
	r.stag = binary.BigEndian.Uint32(b)
	r.length = binary.BigEndian.Uint32(b[4:])
	r.to = binary.BigEndian.Uint64(b[8:])
	return nil
}

// atomicReply is the header of an Atomic Response (RDMAPX 1.4).
type atomicReply struct {
	id  uint32
	old uint64
}

func (a *atomicReply) put(b []byte) int {
	_ = b[atomicReplySize-1]
	binary.BigEndian.PutUint32(b, a.id)
	binary.BigEndian.PutUint64(b[4:], a.old)
	return atomicReplySize
}

func (a *atomicReply) parse(b []byte) {
	a.id = binary.BigEndian.Uint32(b)
	a.old = binary.BigEndian.Uint64(b[4:])
}
