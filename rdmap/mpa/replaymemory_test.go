package mpa

import (
	"encoding/binary"

	"github.com/dgrdma/dgrdma/rdmap"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// capturedMemory is the memory of one side, under the STags and at the addresses that it had in the capture.
type capturedMemory map[uint32]*capturedArea

type capturedArea struct {
	base        uint64
	mem         []byte
	write, read bool
}

// regionSize is that of siwpeer's region, which both ends fill with a pattern and announce in private data: address, key, length.
const regionSize = 131072

// learn sets memory up as it was: siwpeer's region; or of other programs, what the messages name.
func (r *replay) learn() {
	mine, seed := r.request, 2
	if r.own == fromR {
		mine, seed = r.reply, 1
	}
	if b := mine.Private; len(b) == 16 && binary.BigEndian.Uint32(b[12:]) == regionSize {
		area := &capturedArea{base: binary.BigEndian.Uint64(b), mem: pattern(regionSize, seed), write: true, read: true}
		if r.own == fromR {
			area.write, area.read = !r.with.readOnly, !r.with.writeOnly
		}
		r.memory[binary.BigEndian.Uint32(b[8:])] = area
		return
	}
	cover := func(stag uint32, to uint64, n int) {
		a := r.memory[stag]
		if a == nil {
			a = &capturedArea{base: to, write: true, read: true}
			r.memory[stag] = a
		}
		end := max(to+uint64(n), a.base+uint64(len(a.mem)))
		a.base = min(a.base, to)
		a.mem = make([]byte, end-a.base)
	}
	for _, m := range r.hear {
		switch opcode(&m.message) {
		case rdmap.Write:
			cover(m.first.STag, m.first.TO, len(m.payload))
		case rdmap.ReadRequest:
			q := parseRead(m.payload)
			cover(q.stag, q.to, int(q.size))
		}
	}
	for _, q := range reads(messages(r.said)) {
		cover(q.sink, q.sinkTO, int(q.size))
	}
}

// prepare has the program of this side, if it is not siwpeer, put into its memory what the peer is about to read.
func (r *replay) prepare(q readAsked, answer int) {
	a := r.memory[q.stag]
	if a == nil || len(a.mem) == regionSize {
		return
	}
	for i := range r.said {
		if m := &r.said[i]; opcode(&m.message) == rdmap.ReadResponse {
			if answer--; answer < 0 && len(m.payload) == int(q.size) {
				copy(r.memory.bytes(q.stag, q.to, q.size), m.payload)
				return
			}
		}
	}
}

// bytes is nil for what is not there.
func (m capturedMemory) bytes(stag uint32, to uint64, n uint32) []byte {
	a := m[stag]
	if a == nil || to < a.base || to-a.base > uint64(len(a.mem)) || uint64(n) > uint64(len(a.mem))-(to-a.base) {
		return nil
	}
	at := to - a.base
	return a.mem[at : at+uint64(n) : at+uint64(n)]
}

func (m *capturedMemory) Find(how rdmap.Access, stag uint32, to uint64, n uint32) (ddp.Span, error) {
	faults := [3]ddp.Fault{ddp.ProtectionSTag, ddp.ProtectionBounds, ddp.ProtectionRights}
	if how == rdmap.AccessWrite {
		faults = [3]ddp.Fault{ddp.TaggedSTag, ddp.TaggedBounds, ddp.TaggedSTag}
	}
	a := (*m)[stag]
	switch {
	case a == nil:
		return ddp.Span{}, faults[0]
	case how == rdmap.AccessWrite && !a.write, how == rdmap.AccessRead && !a.read:
		return ddp.Span{}, faults[2]
	}
	b := m.bytes(stag, to, n)
	if b == nil {
		return ddp.Span{}, faults[1]
	}
	return ddp.Span{Bytes: b}, nil
}

func (m *capturedMemory) Withdraw(stag uint32) error {
	if (*m)[stag] == nil {
		return ddp.ProtectionInvalidate
	}
	delete(*m, stag)
	return nil
}

func (m *capturedMemory) Invalidate(stag uint32) error { return m.Withdraw(stag) }

func (*capturedMemory) FetchAdd(uint32, uint64, uint64, uint64) (uint64, error) {
	return 0, ddp.ProtectionRights
}

func (*capturedMemory) CompareSwap(uint32, uint64, uint64, uint64, uint64, uint64) (uint64, error) {
	return 0, ddp.ProtectionRights
}

func (*capturedMemory) AtomicWrite(uint32, uint64, [8]byte) error { return ddp.ProtectionRights }
