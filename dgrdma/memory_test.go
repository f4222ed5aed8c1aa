package dgrdma

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/dgrdma/dgrdma/frame"
)

// TestRegionSizes checks that a new region has as many bytes as it was asked for, all of them zero
// and there to be written, and begins at a multiple of 8.
func TestRegionSizes(t *testing.T) {
	sizes := []int{4095, 4096, 1 << 16}
	for size := range 18 {
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		r, err := NewRegion(size)
		if err != nil {
			t.Fatal(err)
		}
		b := r.Bytes()
		if len(b) != size || cap(b) != size || r.Size() != uint64(size) || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 != 0 {
			t.Errorf("%d bytes of %d at %p, asked for %d", len(b), cap(b), b, size)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d of %d is %d", i, size, b[i])
			}
			b[i] = 1
		}
	}
	if most := uint64(1) << 32; uint64(int(most)) == most {
		if _, err := NewRegion(int(most + 1)); err == nil {
			t.Error("there are addresses for more than 4 GiB")
		}
	}
}

// TestRegionTakesItsSize checks that a region takes about as much memory as it has.
func TestRegionTakesItsSize(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := NewRegion(1 << 20)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took < r.Size() || took > 4*r.Size() {
		t.Errorf("%d bytes for a region of %d, %v", took, r.Size(), err)
	}
}

// TestRegionOverBegins checks that memory that exists has to begin at a multiple of 8, if there is
// any, and is what peers write into.
func TestRegionOverBegins(t *testing.T) {
	words := make([]uint64, 8)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 64)
	for from := range 32 {
		r, err := RegionOver(all[from : from+8])
		switch {
		case from%8 != 0:
			if r != nil || !errors.Is(err, ErrAlignment) {
				t.Errorf("from byte %d on: %v, %v", from, r, err)
			}
		case err != nil || r.Size() != 8:
			t.Errorf("from byte %d on: %v", from, err)
		default:
			if r.Store32(4, uint32(from+1)); binary.LittleEndian.Uint32(all[from+4:]) != uint32(from+1) {
				t.Errorf("from byte %d on: the word is not there", from)
			}
		}
	}
	for _, none := range [][]byte{nil, all[:0], all[1:1]} {
		if r, err := RegionOver(none); err != nil || r.Size() != 0 {
			t.Errorf("no bytes: %v", err)
		}
	}
	if r, err := RegionOver(all[1:2]); r != nil || !errors.Is(err, ErrAlignment) || strings.Contains(err.Error(), "peer") {
		t.Errorf("one byte: %v, %v", r, err)
	}
}

// TestRegionAdmits checks that what lies inside the memory is admitted up to its last byte, and
// nothing else (DGRDMA-037). An address says nothing where no byte is to be written.
func TestRegionAdmits(t *testing.T) {
	const size = 64
	r, err := NewRegion(size)
	if err != nil {
		t.Fatal(err)
	}
	none := uint32(frame.NoCompletion)
	for _, c := range []struct {
		addr     uint32
		n        uint16
		word     uint32
		admitted bool
	}{
		{0, size, none, true},
		{size - 8, 8, none, true},
		{size - 1, 1, none, true},
		{0, 1, none, true},
		{size - 7, 8, none, false},
		{0, size + 1, none, false},
		{size, 1, none, false},
		{0xFFFFFFFF, 1, none, false},
		{0xFFFFFFF8, 16, none, false},
		{0, 0, size - 4, true},
		{0, 0, 0, true},
		{0, 0, size - 3, false},
		{0, 0, size - 2, false},
		{0, 0, 0xFFFFFFFE, false},
		{8, 8, size, false},
		{size, 0, none, true},
		{0xFFFFFFFF, 0, none, true},
		{0xFFFFFFFF, 0, 8, true},
	} {
		m := frame.Message{Txn: 1, Count: 1, Index: 1, Addr: c.addr, Len: c.n, CompletionAddr: c.word, CompletionValue: c.word}
		dst, err := r.Admit(1, &m)
		switch {
		case !c.admitted:
			if dst != nil || !errors.Is(err, ErrBounds) {
				t.Errorf("%+v: %d bytes, %v", c, len(dst), err)
			}
		case err != nil || len(dst) != int(c.n) || cap(dst) != int(c.n):
			t.Errorf("%+v: %d bytes of %d, %v", c, len(dst), cap(dst), err)
		case c.n > 0 && &dst[0] != &r.Bytes()[c.addr]:
			t.Errorf("%+v: elsewhere", c)
		}
	}
}

// TestNoMemoryAdmits checks that nothing can be written without memory, and that what writes
// nothing is no offence.
func TestNoMemoryAdmits(t *testing.T) {
	none := uint32(frame.NoCompletion)
	for _, m := range []frame.Message{
		{Len: 1, CompletionAddr: none, CompletionValue: none}, {Len: 8, CompletionAddr: none, CompletionValue: none},
		{CompletionAddr: 0, CompletionValue: 1}, {Len: 8, CompletionAddr: 0, CompletionValue: 1},
		{CompletionAddr: none, CompletionValue: none},
	} {
		writes := m.Len > 0 || m.CompletionAddr != none
		if dst, err := (noMemory{}).Admit(1, &m); dst != nil || errors.Is(err, ErrBounds) != writes || !writes && err != nil {
			t.Errorf("%+v: %d bytes, %v", m, len(dst), err)
		}
	}
}

// TestWordsOfARegion checks that words are little-endian at any address, up to the last byte, and
// that there is none outside.
func TestWordsOfARegion(t *testing.T) {
	const size = 15 // the last word at a multiple of 4 would end after it
	r, err := NewRegion(size)
	if err != nil {
		t.Fatal(err)
	}
	panics := func(what func()) (did bool) {
		defer func() { did = recover() != nil }()
		what()
		return false
	}
	for _, addr := range []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0xFFFFFFFC, 0xFFFFFFFF} {
		clear(r.Bytes())
		want := addr*0x01010101 + 0x84218421
		if addr+4 > size || addr > size {
			if !panics(func() { r.Store32(addr, want) }) || !panics(func() { r.Load32(addr) }) {
				t.Errorf("a word at %#x of %d bytes", addr, size)
			}
			continue
		}
		r.Store32(addr, want)
		if got := binary.LittleEndian.Uint32(r.Bytes()[addr:]); got != want || r.Load32(addr) != want {
			t.Errorf("at %d: %#x, loaded %#x, want %#x", addr, got, r.Load32(addr), want)
		}
		for i, b := range r.Bytes() {
			if at := uint32(i); b != 0 && (at < addr || at >= addr+4) {
				t.Errorf("byte %d changed with the word at %d", i, addr)
			}
		}
	}
}

// TestWordsAtMultiplesOf4 checks that words at multiples of 4 can be read and written at once; at
// others machines fail.
func TestWordsAtMultiplesOf4(t *testing.T) {
	words := make([]uint64, 3)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 24)
	for at := range 16 {
		switch w := wordAt(all[at : at+4]); {
		case at%4 == 0 && unsafe.Pointer(w) != unsafe.Pointer(&all[at]):
			t.Errorf("the word at %d is at %p", at, w)
		case at%4 != 0 && w != nil:
			t.Errorf("a word at %d", at)
		}
	}
}

// TestPlace checks that data is placed whole, however short it is, and nothing next to it.
func TestPlace(t *testing.T) {
	for at := range 8 {
		for n := range 10 {
			memory, want := pattern(1, 32), pattern(1, 32)
			data := pattern(2, n)
			copy(want[at:], data)
			if place(memory[at:at+n], data); !slices.Equal(memory, want) {
				t.Errorf("%d bytes at %d: %x, want %x", n, at, memory, want)
			}
		}
	}
}

// TestPlacedWordIsHeardOf checks that a goroutine that waits for a word hears of data that is one,
// without an endpoint of that memory (quirk F15).
func TestPlacedWordIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := NewRegion(64)
		if err != nil {
			t.Fatal(err)
		}
		heard := false
		go func() { heard = r.WaitFor(t.Context(), 8, 0x04030201) == nil }()
		synctest.Wait()
		place(r.Bytes()[8:12], []byte{1, 2, 3, 4})
		r.Placed(1, &frame.Message{Addr: 8, Len: 4})
		if synctest.Wait(); !heard {
			t.Error("still waits")
		}
	})
}
