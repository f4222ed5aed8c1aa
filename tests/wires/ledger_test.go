package wires

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
)

// Memory is cut into slots. A transaction fills one: its number as completion
// word, its number and size as data, and then bytes that follow from both.
const (
	slotHeader = 16
	slotData   = 64
)

func stride(size int) int { return slotData + (size+63)&^63 }

// noise is what all data is cut from, the same in every process.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 4<<20)
	rng := rand.NewChaCha8([32]byte{'d', 'g'})
	rng.Read(b)
	return b
})

// pattern is the data of a transaction.
func pattern(number uint32, size int) []byte {
	n := noise()
	at := int(number) * 7919 % (len(n) - size)
	return n[at : at+size]
}

// ledger is memory that looks at every transaction when it completes, and
// remembers which did.
type ledger struct {
	*dgrdma.Region
	stride int

	mu     sync.Mutex
	done   map[frame.EndpointID]map[uint32]int // how often, by source and number
	last   map[uint32]uint32                   // number of the last one, by slot
	wrong  string                              // the first that was not as it must be
	counts int
}

func newLedger(slots, size int) *ledger {
	region, err := dgrdma.NewRegion(slots * stride(size))
	if err != nil {
		panic(err)
	}
	return &ledger{Region: region, stride: stride(size), done: make(map[frame.EndpointID]map[uint32]int), last: make(map[uint32]uint32)}
}

// Complete implements [dgrdma.Memory].
func (l *ledger) Complete(src frame.EndpointID, m *frame.Message) {
	l.Region.Complete(src, m)
	l.mu.Lock()
	defer l.mu.Unlock()
	slot, number := m.CompletionAddr/uint32(l.stride), m.CompletionValue
	if l.done[src] == nil {
		l.done[src] = make(map[uint32]int)
	}
	l.done[src][number]++
	l.last[slot] = number
	l.counts++
	b := l.Bytes()[int(slot)*l.stride:][:l.stride]
	if p := problem(b, number); p != "" && l.wrong == "" {
		l.wrong = fmt.Sprintf("completion of transaction %d from %d in slot %d: %s", number, src, slot, p)
	}
}

// problem compares a slot with what it has to hold.
func problem(slot []byte, number uint32) string {
	size := int(binary.LittleEndian.Uint32(slot[slotHeader+4:]))
	if got := binary.LittleEndian.Uint32(slot[slotHeader:]); got != number || size > len(slot)-slotData {
		return fmt.Sprintf("its slot holds number %d, size %d", got, size)
	}
	got, want := slot[slotData:slotData+size], pattern(number, size)
	if !bytes.Equal(got, want) {
		at := 0
		for got[at] == want[at] {
			at++
		}
		return fmt.Sprintf("byte %d of %d differs", at, size)
	}
	return ""
}

// completions returns how many there were.
func (l *ledger) completions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// verify checks that transactions 1 to count of each source completed once, and
// that memory is what the last of them made of it.
func (l *ledger) verify(count map[frame.EndpointID]int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrong != "" {
		return fmt.Errorf("%s", l.wrong)
	}
	for src, done := range l.done {
		for number, times := range done {
			if times != 1 || number == 0 || int(number) > count[src] {
				return fmt.Errorf("transaction %d from %d, of %d, completed %d times", number, src, count[src], times)
			}
		}
	}
	for src, n := range count {
		if len(l.done[src]) != n {
			return fmt.Errorf("%d of %d transactions from %d completed", len(l.done[src]), n, src)
		}
	}
	return l.image()
}

// verifyAtMostOnce is verify where transactions may have failed.
func (l *ledger) verifyAtMostOnce() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrong != "" {
		return fmt.Errorf("%s", l.wrong)
	}
	for src, done := range l.done {
		for number, times := range done {
			if times != 1 {
				return fmt.Errorf("transaction %d from %d completed %d times", number, src, times)
			}
		}
	}
	return nil
}

// image compares all of memory with what the last transactions made of it.
func (l *ledger) image() error {
	mem := l.Bytes()
	for slot := range len(mem) / l.stride {
		b := mem[slot*l.stride:][:l.stride]
		number, used := l.last[uint32(slot)]
		size := 0
		if used {
			if p := problem(b, number); p != "" {
				return fmt.Errorf("slot %d changed after transaction %d completed: %s", slot, number, p)
			}
			if got := l.Load32(uint32(slot * l.stride)); got != number {
				return fmt.Errorf("slot %d: the completion word is %d, not %d", slot, got, number)
			}
			size = int(binary.LittleEndian.Uint32(b[slotHeader+4:]))
		}
		for i, x := range b {
			mine := used && (i < 4 || i >= slotHeader && i < slotHeader+8 || i >= slotData && i < slotData+(size+7)&^7)
			if x != 0 && !mine {
				return fmt.Errorf("slot %d: byte %d was written by nobody's order", slot, i)
			}
		}
	}
	return nil
}
