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

// ReadHeader is the header of a Read Request (RDMAP-024).
type ReadHeader struct {
	SinkSTag   uint32
	SinkTO     uint64
	Size       uint32
	SourceSTag uint32
	SourceTO   uint64
}

func (r *ReadHeader) put(b []byte) int {
	_ = b[readSize-1]
	binary.BigEndian.PutUint32(b, r.SinkSTag)
	binary.BigEndian.PutUint64(b[4:], r.SinkTO)
	binary.BigEndian.PutUint32(b[12:], r.Size)
	binary.BigEndian.PutUint32(b[16:], r.SourceSTag)
	binary.BigEndian.PutUint64(b[20:], r.SourceTO)
	return readSize
}

func (r *ReadHeader) Parse(b []byte) error {
	if len(b) != readSize {
		return ddp.OperationStream
	}
	r.SinkSTag = binary.BigEndian.Uint32(b)
	r.SinkTO = binary.BigEndian.Uint64(b[4:])
	r.Size = binary.BigEndian.Uint32(b[12:])
	r.SourceSTag = binary.BigEndian.Uint32(b[16:])
	r.SourceTO = binary.BigEndian.Uint64(b[20:])
	return nil
}

// Operations of an Atomic Request; 1 is reserved.
const (
	fetchAdd = 0
	cmpSwap  = 2
)

// AtomicHeader is the header of an Atomic Request (RDMAPX 1.2).
type AtomicHeader struct {
	Op          uint8
	ID          uint32
	STag        uint32
	TO          uint64
	Operand     uint64 // what is added, or swapped in
	Mask        uint64
	Compare     uint64
	CompareMask uint64
}

func (a *AtomicHeader) put(b []byte) int {
	_ = b[atomicSize-1]
	binary.BigEndian.PutUint32(b, uint32(a.Op))
	binary.BigEndian.PutUint32(b[4:], a.ID)
	binary.BigEndian.PutUint32(b[8:], a.STag)
	binary.BigEndian.PutUint64(b[12:], a.TO)
	binary.BigEndian.PutUint64(b[20:], a.Operand)
	binary.BigEndian.PutUint64(b[28:], a.Mask)
	binary.BigEndian.PutUint64(b[36:], a.Compare)
	binary.BigEndian.PutUint64(b[44:], a.CompareMask)
	return atomicSize
}

func (a *AtomicHeader) Parse(b []byte) error {
	if len(b) != atomicSize {
		return ddp.OperationStream
	}
	a.Op = b[3] & 15
	a.ID = binary.BigEndian.Uint32(b[4:])
	a.STag = binary.BigEndian.Uint32(b[8:])
	a.TO = binary.BigEndian.Uint64(b[12:])
	a.Operand = binary.BigEndian.Uint64(b[20:])
	a.Mask = binary.BigEndian.Uint64(b[28:])
	a.Compare = binary.BigEndian.Uint64(b[36:])
	a.CompareMask = binary.BigEndian.Uint64(b[44:])
	if a.Op != fetchAdd && a.Op != cmpSwap {
		return ddp.OperationStream // RDMAPX-021: the RFC names no code
	}
	return nil
}

// Flags of a Flush Request.
const (
	flagPersistent = 1
	flagGlobal     = 2
)

// RangeHeader is how the requests of the commit extensions begin: STag, length, TO, in
// this order.
type RangeHeader struct {
	STag   uint32
	Length uint32
	TO     uint64
}

func (r *RangeHeader) put(b []byte) int {
	_ = b[verifySize-1]
	binary.BigEndian.PutUint32(b, r.STag)
	binary.BigEndian.PutUint32(b[4:], r.Length)
	binary.BigEndian.PutUint64(b[8:], r.TO)
	return verifySize
}

func (r *RangeHeader) Parse(b []byte) error {
	if len(b) < verifySize {
		return ddp.OperationStream
	}
	r.STag = binary.BigEndian.Uint32(b)
	r.Length = binary.BigEndian.Uint32(b[4:])
	r.TO = binary.BigEndian.Uint64(b[8:])
	return nil
}

// AtomicReplyHeader is the header of an Atomic Response (RDMAPX 1.4).
type AtomicReplyHeader struct {
	ID  uint32
	Old uint64
}

func (a *AtomicReplyHeader) put(b []byte) int {
	_ = b[atomicReplySize-1]
	binary.BigEndian.PutUint32(b, a.ID)
	binary.BigEndian.PutUint64(b[4:], a.Old)
	return atomicReplySize
}

func (a *AtomicReplyHeader) Parse(b []byte) {
	a.ID = binary.BigEndian.Uint32(b)
	a.Old = binary.BigEndian.Uint64(b[4:])
}
