package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/rdmap"
)

// Filter chooses frames. A frame must fit each list that is not empty, and fits
// a list by any of its values.
type Filter struct {
	Ends []capture.End // of the source or the destination

	// Only frames of DG/RDMA have these.
	IDs    []frame.EndpointID // of the source or the destination
	Txns   []uint32           // of a message
	Ranges []Range            // that a message writes to

	// Only frames of iWARP have these.
	Operations []Operation
	STags      []uint32 // of a frame, or of what it asks for
	XIDs       []uint32 // of a message of RPC-over-RDMA; no frame has one
}

// Operation is a kind of messages of iWARP.
type Operation struct {
	Opcode rdmap.Opcode
	Atomic string // what an Atomic Request does, and one that is answered, as in [iwarp.Request]; empty: anything
	RPC    bool   // it is none of a frame: messages of RPC-over-RDMA
}

// OfDGRDMA reports whether f chooses by what only frames of DG/RDMA have.
func (f *Filter) OfDGRDMA() bool { return len(f.IDs) > 0 || len(f.Txns) > 0 || len(f.Ranges) > 0 }

// OfMessages reports whether f chooses by what messages have, which cannot be seen where frames are sealed.
func (f *Filter) OfMessages() bool { return len(f.Txns) > 0 || len(f.Ranges) > 0 }

// OfIWARP reports whether f chooses by what only frames of iWARP have.
func (f *Filter) OfIWARP() bool { return len(f.Operations) > 0 || len(f.STags) > 0 || len(f.XIDs) > 0 }

// Match reports whether v is chosen.
func (f *Filter) Match(v *View) bool {
	return !f.OfIWARP() && (len(f.IDs) == 0 || v.Kind != None && (slices.Contains(f.IDs, v.Header.Src) || slices.Contains(f.IDs, v.Header.Dst))) &&
		f.MatchEnds(v.Packet.Src, v.Packet.Dst) &&
		(len(f.Txns) == 0 || f.txn(v)) &&
		(len(f.Ranges) == 0 || f.written(v))
}

// MatchEnds reports whether what goes between two addresses is chosen, by them alone.
func (f *Filter) MatchEnds(a, b capture.Addr) bool {
	return len(f.Ends) == 0 || slices.ContainsFunc(f.Ends, func(e capture.End) bool { return e.Is(a) || e.Is(b) })
}

// txn leaves handshakes out: where other frames have a transaction, they have an epoch.
func (f *Filter) txn(v *View) bool {
	return !v.isShake() && slices.ContainsFunc(v.Messages, func(m Message) bool { return slices.Contains(f.Txns, m.Txn) })
}

func (f *Filter) written(v *View) bool {
	return slices.ContainsFunc(v.Messages, func(m Message) bool {
		return slices.ContainsFunc(f.Ranges, func(r Range) bool {
			return m.Len > 0 && r.overlaps(m.Addr, int(m.Len)) || m.Completes() && r.overlaps(m.CompletionAddr, 4)
		})
	})
}

// Range is a stretch of a memory.
type Range struct{ First, Last uint32 }

func (r Range) overlaps(addr uint32, n int) bool {
	return uint64(addr) <= uint64(r.Last) && uint64(addr)+uint64(n) > uint64(r.First)
}

// ParseRange reads "ADDR", "FIRST-LAST" or "FIRST+LENGTH", in decimal or, after
// 0x, hexadecimal.
func ParseRange(s string) (r Range, err error) {
	a, b, dash := strings.Cut(s, "-")
	plus := false
	if !dash {
		a, b, plus = strings.Cut(s, "+")
	}
	first, err := strconv.ParseUint(a, 0, 32)
	last := first
	if err == nil && (dash || plus) {
		last, err = strconv.ParseUint(b, 0, 33)
	}
	if plus {
		last += first - 1
	}
	if err != nil || last < first || last > 1<<32-1 {
		return Range{}, fmt.Errorf("%q is no range of addresses: need ADDR, FIRST-LAST or FIRST+LENGTH, as in 0x1000-0x1fff", s)
	}
	return Range{uint32(first), uint32(last)}, nil
}
