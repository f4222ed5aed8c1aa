package rdmap_test

import (
	"encoding/binary"
	"slices"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// area is memory of one side with one STag.
type area struct {
	bytes     []byte
	rights    []rdmap.Access
	withdrawn bool
	inside    int
}

func (a *area) Enter(uint64) bool {
	if a.withdrawn {
		return false
	}
	a.inside++
	return true
}

func (a *area) Leave() { a.inside-- }

// memory is what one side lets the other touch: the rules of rdmap.Memory, plainly.
type memory map[uint32]*area

func (m memory) Find(a rdmap.Access, stag uint32, to uint64, n uint32) (ddp.Span, error) {
	faults := [3]error{ddp.ProtectionSTag, ddp.ProtectionBounds, ddp.ProtectionRights}
	if a == rdmap.AccessWrite {
		faults = [3]error{ddp.TaggedSTag, ddp.TaggedBounds, ddp.TaggedSTag}
	}
	needs := a
	if a == rdmap.AccessAtomicWrite {
		needs = rdmap.AccessWrite
	}
	r := m[stag]
	switch {
	case r == nil || r.withdrawn:
		return ddp.Span{}, faults[0]
	case !slices.Contains(r.rights, needs):
		return ddp.Span{}, faults[2]
	case to > uint64(len(r.bytes)) || uint64(n) > uint64(len(r.bytes))-to:
		return ddp.Span{}, faults[1]
	}
	return ddp.Span{Bytes: r.bytes[to : to+uint64(n)], Guard: r}, nil
}

func (m memory) Withdraw(stag uint32) error {
	if r := m[stag]; r == nil || r.withdrawn {
		return ddp.ProtectionInvalidate
	}
	m[stag].withdrawn = true
	return nil
}

func (m memory) Invalidate(stag uint32) error { return m.Withdraw(stag) }

func (m memory) word(a rdmap.Access, stag uint32, to uint64) ([]byte, error) {
	s, err := m.Find(a, stag, to, 8)
	if err == nil && to%8 != 0 {
		err = ddp.OperationStream
	}
	return s.Bytes, err
}

func (m memory) FetchAdd(stag uint32, to uint64, add, _ uint64) (uint64, error) {
	b, err := m.word(rdmap.AccessAtomic, stag, to)
	if err != nil {
		return 0, err
	}
	old := binary.NativeEndian.Uint64(b)
	binary.NativeEndian.PutUint64(b, old+add)
	return old, nil
}

func (m memory) CompareSwap(stag uint32, to uint64, compare, cmpMask, swap, mask uint64) (uint64, error) {
	b, err := m.word(rdmap.AccessAtomic, stag, to)
	if err != nil {
		return 0, err
	}
	old := binary.NativeEndian.Uint64(b)
	if (old^compare)&cmpMask == 0 {
		binary.NativeEndian.PutUint64(b, old&^mask|swap&mask)
	}
	return old, nil
}

func (m memory) AtomicWrite(stag uint32, to uint64, data [8]byte) error {
	b, err := m.word(rdmap.AccessAtomicWrite, stag, to)
	if err == nil {
		copy(b, data[:])
	}
	return err
}
