package memory_test

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

// atomicsOn are the methods of a stream on the words of a region.
type atomicsOn struct {
	t      testing.TB
	stream *memory.Stream
	stag   uint32
	bytes  []byte
}

func newAtomics(t testing.TB, n int) *atomicsOn {
	domain := memory.NewTable().NewDomain()
	b := words(n)
	return &atomicsOn{t, domain.NewStream(), register(t, domain, b, memory.RemoteAtomic|memory.RemoteWrite, nil).STag(), b}
}

func (a *atomicsOn) word(i int) *uint64 { return (*uint64)(unsafe.Pointer(&a.bytes[8*i])) }

func (a *atomicsOn) fetchAdd(i int, add, mask uint64) uint64 {
	old, err := a.stream.FetchAdd(a.stag, uint64(8*i), add, mask)
	if err != nil {
		a.t.Error(err)
	}
	return old
}

func (a *atomicsOn) compareSwap(i int, compare, compareMask, swap, swapMask uint64) uint64 {
	old, err := a.stream.CompareSwap(a.stag, uint64(8*i), compare, compareMask, swap, swapMask)
	if err != nil {
		a.t.Error(err)
	}
	return old
}

// ripple adds as RFC 7306, 5.1.1, does: bit by bit, and drops what is carried out of a bit
// of the mask.
func ripple(a, b, mask uint64, width int) (sum uint64) {
	carry := uint64(0)
	for i := range width {
		n := a>>i&1 + b>>i&1 + carry
		sum |= n & 1 << i
		carry = n >> 1
		if mask>>i&1 != 0 {
			carry = 0
		}
	}
	return sum
}

// TestFetchAddFields (RDMAPX-012): every mask, sum and addend of six bits, at the bottom, in the
// middle and at the top of the word; and random ones of 64.
func TestFetchAddFields(t *testing.T) {
	a := newAtomics(t, 1)
	word := a.word(0)
	const width = 6
	for _, at := range []int{0, 29, 64 - width} {
		fence := uint64(0) // so that the small field is one
		if at > 0 {
			fence = 1 << (at - 1)
		}
		for mask := range uint64(1 << width) {
			for old := range uint64(1 << width) {
				for add := range uint64(1 << width) {
					*word = old << at
					top := uint64(1) << (at + width - 1) // the last carry goes nowhere
					if got := a.fetchAdd(0, add<<at, mask<<at|fence|top); got != old<<at {
						t.Fatalf("returned %#x, was %#x", got, old<<at)
					}
					if want := ripple(old, add, mask, width) << at; *word != want {
						t.Fatalf("%#x + %#x in fields %#x at %d: %#x, want %#x", old, add, mask, at, *word, want)
					}
				}
			}
		}
	}
	random := seeded(t)
	for range 100_000 {
		old, add, mask := random.Uint64(), random.Uint64(), random.Uint64()&random.Uint64()&random.Uint64()
		if random.IntN(4) == 0 {
			mask = 0
		}
		*word = old
		if got := a.fetchAdd(0, add, mask); got != old || *word != ripple(old, add, mask, 64) {
			t.Fatalf("%#x + %#x in fields %#x: %#x, want %#x", old, add, mask, *word, ripple(old, add, mask, 64))
		}
		if a.fetchAdd(0, 0, mask); *word != ripple(old, add, mask, 64) {
			t.Fatalf("RDMAPX-004: adding 0 in fields %#x changed the word", mask)
		}
	}
}

// TestCompareSwapMasks (RDMAPX-013): every word, comparison, swap and mask of three bits, spread over the
// word.
func TestCompareSwapMasks(t *testing.T) {
	a := newAtomics(t, 1)
	spread := func(v int) (w uint64) { // bits 0, 31 and 63
		return uint64(v&1) | uint64(v>>1&1)<<31 | uint64(v>>2&1)<<63
	}
	const others = 0x0123_4567_0000_0100 // must stay
	for n := range 1 << 15 {
		old, compare, compareMask, swap, swapMask := n&7, n>>3&7, n>>6&7, n>>9&7, n>>12&7
		want := 0
		equal := true
		for bit := 1; bit < 8; bit <<= 1 {
			equal = equal && (compareMask&bit == 0 || old&bit == compare&bit)
		}
		for bit := 1; bit < 8; bit <<= 1 {
			if equal && swapMask&bit != 0 {
				want |= swap & bit
			} else {
				want |= old & bit
			}
		}
		*a.word(0) = spread(old) | others
		got := a.compareSwap(0, spread(compare), spread(compareMask), spread(swap), spread(swapMask))
		if got != spread(old)|others || *a.word(0) != spread(want)|others {
			t.Fatalf("%03b: compare %03b/%03b, swap %03b/%03b: returned %#x, is %#x, want %#x", old, compare, compareMask, swap, swapMask, got, *a.word(0), spread(want)|others)
		}
	}
	*a.word(0) = 7
	if old := a.compareSwap(0, 7, ^uint64(0), 9, ^uint64(0)); old != 7 || *a.word(0) != 9 {
		t.Errorf("without masks: %d, %d", old, *a.word(0))
	}
}

// TestAtomicsAreRefused, and memory is what it was (RDMAPX-010, RDMAPX-011, RDMAPX-017, COMMIT-031,
// COMMIT-032, COMMIT-034, RDMAPX-046).
func TestAtomicsAreRefused(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	buf := words(5)
	odd := register(t, domain, buf[4:36], memory.RemoteAtomic|memory.RemoteWrite, nil) // TO 4 is aligned
	based := register(t, domain, buf, memory.RemoteAtomic|memory.RemoteWrite, &memory.Options{Base: 3})
	read := register(t, domain, buf, memory.RemoteRead, nil)
	writable := register(t, domain, buf, memory.RemoteWrite, nil)
	atomics := register(t, domain, buf, memory.RemoteAtomic, nil)
	gone := register(t, domain, buf, memory.RemoteAtomic|memory.RemoteWrite, nil)
	gone.Invalidate()
	for _, c := range []struct {
		name       string
		g          *memory.Grant
		to         uint64
		add, store ddp.Fault
	}{
		{"RDMAPX-010: the address counts", odd.Grant, 4, 0, 0},
		{"RDMAPX-010: not the TO", odd.Grant, 0, 0x0207, 0x0207},
		{"RDMAPX-010: any TO", based.Grant, 11, 0, 0},
		{"RDMAPX-011: misaligned", based.Grant, 8, 0x0207, 0x0207},
		{"RDMAPX-017: over the end", based.Grant, 36, 0x0101, 0x0101},
		{"RDMAPX-017: wraps", based.Grant, 1<<64 - 5, 0x0104, 0x0104},
		{"RDMAPX-017: invalidated", gone.Grant, 0, 0x0100, 0x0100},
		{"RDMAPX-017: read only", read.Grant, 0, 0x0102, 0x0102},
		{"COMMIT-034: the right to write", writable.Grant, 8, 0x0102, 0},
		{"RDMAPX-017: the right to do atomics", atomics.Grant, 8, 0, 0x0102},
	} {
		for op, do := range map[string]struct {
			want ddp.Fault
			do   func() error
		}{
			"FetchAdd":    {c.add, func() error { _, err := stream.FetchAdd(c.g.STag(), c.to, 1, 0); return err }},
			"CompareSwap": {c.add, func() error { _, err := stream.CompareSwap(c.g.STag(), c.to, 0, 0, 5, 7); return err }},
			"Store":       {c.store, func() error { return stream.Store(c.g.STag(), c.to, [8]byte{1, 2, 3, 4, 5, 6, 7, 8}) }},
		} {
			clear(buf)
			var fault ddp.Fault
			err := do.do()
			if (err != nil) != (do.want != 0) || err != nil && (!errors.As(err, &fault) || fault != do.want) {
				t.Errorf("%s, %s: %v, want %v", c.name, op, err, do.want)
			}
			changed := false
			for _, b := range buf {
				changed = changed || b != 0
			}
			if changed != (do.want == 0) {
				t.Errorf("%s, %s: changed: %v", c.name, op, changed)
			}
		}
	}
}

// TestWordsOnTheirWay: numbers are in the machine's order (RDMAPX-014), eight bytes to store in
// none (COMMIT-036).
func TestWordsOnTheirWay(t *testing.T) {
	a := newAtomics(t, 2)
	binary.NativeEndian.PutUint64(a.bytes[8:], 1000)
	if old := a.fetchAdd(1, 1, 0); old != 1000 || binary.NativeEndian.Uint64(a.bytes[8:]) != 1001 {
		t.Errorf("was %d, is % x", old, a.bytes[8:])
	}
	if err := a.stream.Store(a.stag, 8, [8]byte{1, 2, 3, 4, 5, 6, 7, 8}); err != nil || string(a.bytes[8:]) != "\x01\x02\x03\x04\x05\x06\x07\x08" {
		t.Errorf("%v, % x", err, a.bytes[8:])
	}
}

// TestAtomicsExclude (RDMAPX-015, RDMAPX-016): many streams of several tables, with all operations, and
// the program's own, on the same words: every one counts once.
func TestAtomicsExclude(t *testing.T) {
	buf := words(2)
	var all sync.WaitGroup
	const each, kinds, rounds = 2, 4, 3000
	for range each {
		domain := memory.NewTable().NewDomain()
		r := register(t, domain, buf, memory.RemoteAtomic, nil)
		w := bind(t, r, 0, 16, memory.RemoteAtomic, &memory.Options{Base: 1 << 40})
		a := &atomicsOn{t, domain.NewStream(), r.STag(), buf}
		all.Go(func() { // the whole word
			for range rounds {
				a.fetchAdd(0, 1, 0)
			}
		})
		all.Go(func() { // its lower half, by a window
			stream := domain.NewStream()
			for range rounds {
				if _, err := stream.FetchAdd(w.STag(), 1<<40, 1, 1<<31|1<<63); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for done := 0; done < rounds; {
				old := atomic.LoadUint64(a.word(0))
				if a.compareSwap(0, old, ^uint64(0), old+1, ^uint64(0)) == old {
					done++
				}
			}
		})
		all.Go(func() { // the program
			for range rounds {
				atomic.AddUint64(a.word(0), 1)
			}
		})
		// A spin lock of one bit beside a counter of the other 63, which is not to be touched.
		all.Go(func() {
			for range rounds / 10 {
				for a.compareSwap(1, 0, 1<<63, 1<<63, 1<<63)>>63 != 0 {
				}
				if old := a.compareSwap(1, 1<<63, 1<<63, 0, 1<<63); old>>63 == 0 {
					t.Error("somebody else opened the lock")
				}
			}
		})
		all.Go(func() {
			for range rounds {
				a.fetchAdd(1, 1, 1<<62|1<<63)
			}
		})
	}
	all.Wait()
	a := &atomicsOn{bytes: buf}
	if got, want := *a.word(0), uint64(each*kinds*rounds); got != want {
		t.Errorf("counted %d of %d", got, want)
	}
	if got, want := *a.word(1), uint64(each*rounds); got != want {
		t.Errorf("beside the lock: counted %#x, want %#x", got, want)
	}
}

// TestStoreIsWhole (COMMIT-032): who loads the word sees one of what was stored, never parts of
// two.
func TestStoreIsWhole(t *testing.T) {
	a := newAtomics(t, 1)
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for !stop.Load() {
				var b [8]byte
				half := rand.Uint32()
				binary.NativeEndian.PutUint64(b[:], uint64(half)<<32|uint64(^half))
				if err := a.stream.Store(a.stag, 0, b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := map[uint64]bool{}
	for len(seen) < 200 && !t.Failed() {
		if v := atomic.LoadUint64(a.word(0)); v != 0 {
			if bits.RotateLeft64(v, 32) != ^v {
				t.Errorf("%#x: two halves that do not belong together", v)
			}
			seen[v] = true
		}
	}
	stop.Store(true)
	all.Wait()
}
