package memory_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

func register(t testing.TB, d *memory.Domain, bytes []byte, rights memory.Rights, o *memory.Options) *memory.Region {
	t.Helper()
	r, err := d.Register(bytes, rights, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func bind(t testing.TB, r *memory.Region, at, n int, rights memory.Rights, o *memory.Options) *memory.Window {
	t.Helper()
	w, err := r.Bind(at, n, rights, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// words are the bytes of n words at an address that is a multiple of 8.
func words(n int) []byte {
	w := make([]uint64, n)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 8*n)
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// write copies b to the TO as a carrier does.
func write(s *memory.Stream, stag uint32, to uint64, b []byte) error {
	span, v := s.Find(stag, to, uint32(len(b)), memory.RemoteWrite)
	if v != memory.None {
		return v.Segment()
	}
	return span.Touch(func(to []byte) { copy(to, b) })
}

// ended fails the test unless c is closed soon.
func ended(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: not in 20 seconds", what)
	}
}

func async(f func()) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		defer close(c)
		f()
	}()
	return c
}

// until waits for what busy goroutines are about to do.
func until(f func() bool) {
	for !f() {
		runtime.Gosched()
	}
}

// copyOut is what a carrier does that sends the bytes.
func copyOut(b []byte, span ddp.Span) error {
	return span.Touch(func(from []byte) { copy(b, from) })
}
