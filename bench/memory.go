package bench

import (
	"slices"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// Service is the name of a [Memory] as a service: see Config.Service of package dgrdma.
const Service = "bench"

// Memory is the memory of one side: a region that looks at each transaction
// the moment it completes. That happens on the goroutine that receives, so
// nothing else is placed meanwhile.
type Memory struct {
	*dgrdma.Region
	control chan control // records of the other side
	run     atomic.Pointer[arrivals]
}

// control is a control record as it came.
type control struct {
	from dgrdma.EndpointID
	kind uint32
	data []byte
}

// arrivals is what comes during a run.
type arrivals struct {
	plan    Plan
	rounds  []uint32
	arrived atomic.Uint64
	told    atomic.Uint64 // what the other side says that it has posted, of what this one does not see come
	wrong   atomic.Uint64
	worst   atomic.Pointer[mismatch] // the first one
}

// NewMemory makes a memory of so many bytes, for the endpoint of a client or a server.
func NewMemory(size int) (*Memory, error) {
	region, err := dgrdma.NewRegion(size)
	return &Memory{Region: region, control: make(chan control, 8)}, err
}

func newArrivals(p Plan) *arrivals { return &arrivals{plan: p, rounds: make([]uint32, p.slots())} }

// progress returns how many are there, as far as anybody knows.
func (a *arrivals) progress() uint64 { return max(a.arrived.Load(), a.told.Load()) }

// expect begins a run.
func (t *Memory) expect(p Plan) *arrivals {
	a := newArrivals(p)
	t.run.Store(a)
	return a
}

// Complete implements [dgrdma.Memory].
func (t *Memory) Complete(src dgrdma.EndpointID, m *dgrdma.Message) {
	t.Region.Complete(src, m)
	switch at := m.CompletionAddr; {
	case at == controlWord:
		record := t.Bytes()[controlData:completionsAt]
		c := control{from: src, kind: m.CompletionValue, data: slices.Clone(record)}
		clear(record) // the next one may be shorter
		select {
		case t.control <- c:
		default: // nobody of ours sends so many
		}
	case at >= completionsAt:
		if a := t.run.Load(); a != nil {
			a.complete(t.Bytes(), int(at-completionsAt)/4, m.CompletionValue)
		}
	}
}

// complete looks at a transaction. It runs on the receiving goroutine.
func (a *arrivals) complete(memory []byte, slot int, round uint32) {
	if slot >= len(a.rounds) {
		a.found(mismatch{slot: slot, offset: -1, got: uint64(round)})
		return
	}
	at := a.plan.slotAt(slot)
	a.look(memory[at:at+a.plan.Size], slot, round)
}

// look looks at the data of a transaction, whose slot there is.
func (a *arrivals) look(data []byte, slot int, round uint32) {
	a.arrived.Add(1)
	a.rounds[slot]++
	if want := a.rounds[slot]; want != round {
		a.found(mismatch{slot: slot, round: round, offset: -1, expected: uint64(want), got: uint64(round)})
		a.rounds[slot] = round
	}
	a.compare(data, slot, round, round)
}

// compare compares data with what a slot had in a round, as thoroughly as it is the turn of
// the use that has this number.
func (a *arrivals) compare(data []byte, slot int, round, use uint32) {
	if a.plan.Verify == VerifyOff {
		return
	}
	p := patternOf(a.plan.Verify, slot, round)
	offset, expected, got, ok := p.check(data, (use+uint32(slot))%wholeEvery == 0)
	if !ok {
		a.found(mismatch{slot, round, offset, expected, got})
	}
}

func (a *arrivals) found(m mismatch) {
	a.wrong.Add(1)
	a.worst.CompareAndSwap(nil, &m)
}

// report adds what was found to what is told about the run.
func (a *arrivals) report(s *Counts) {
	s.Arrived += a.arrived.Load()
	if w := a.worst.Load(); w != nil && s.Wrong == 0 {
		s.WrongSlot, s.WrongRound, s.WrongOffset = uint64(w.slot), uint64(w.round), uint64(int64(w.offset))
		s.WrongExpected, s.WrongGot = w.expected, w.got
	}
	s.Wrong += a.wrong.Load()
}

// mismatch returns the first of what was wrong.
func (s *Counts) mismatch() *mismatch {
	return &mismatch{int(s.WrongSlot), uint32(s.WrongRound), int(int64(s.WrongOffset)), s.WrongExpected, s.WrongGot}
}
