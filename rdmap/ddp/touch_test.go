package ddp_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// counting is a guard that counts who is inside.
type counting struct {
	shut   bool
	inside int
	was    int
}

func (c *counting) Enter(uint64) bool {
	if c.shut {
		return false
	}
	c.inside++
	c.was++
	return true
}

func (c *counting) Leave() { c.inside-- }

func copyIn(s *ddp.Span, at int, b []byte) error {
	return s.Touch(func(to []byte) { copy(to[at:], b) })
}

func copyOut(s *ddp.Span, b []byte, at int) error {
	return s.Touch(func(from []byte) { copy(b, from[at:]) })
}

func TestTouch(t *testing.T) {
	guard := &counting{}
	s := ddp.Span{Bytes: []byte("0123456789"), Guard: guard}
	if err := copyIn(&s, 3, []byte("abc")); err != nil || string(s.Bytes) != "012abc6789" {
		t.Fatalf("%v, %s", err, s.Bytes)
	}
	out := make([]byte, 4)
	if err := copyOut(&s, out, 2); err != nil || string(out) != "2abc" {
		t.Fatalf("%v, %s", err, out)
	}
	if guard.inside != 0 || guard.was != 2 {
		t.Fatalf("guard: %+v", *guard)
	}
	guard.shut = true
	if err := copyIn(&s, 0, []byte("xyz")); err != ddp.TaggedSTag || string(s.Bytes) != "012abc6789" {
		t.Errorf("withdrawn: %v, %s", err, s.Bytes)
	}
	alone := ddp.Span{Bytes: make([]byte, 2)}
	if err := copyIn(&alone, 0, []byte("ok")); err != nil || string(alone.Bytes) != "ok" {
		t.Errorf("without guard: %v, %s", err, alone.Bytes)
	}
	if err := copyIn(&ddp.Span{}, 0, nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// TestTouchOfACutFile: what has no file under it any more is an error, and the guard is left.
func TestTouchOfACutFile(t *testing.T) {
	page := os.Getpagesize()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, 2*page), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem, err := syscall.Mmap(int(f.Fd()), 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(mem)
	if err := f.Truncate(int64(page)); err != nil {
		t.Fatal(err)
	}
	guard := &counting{}
	s := ddp.Span{Bytes: mem, Guard: guard}
	if err := copyIn(&s, page-4, []byte("12345678")); err != ddp.LocalDDP {
		t.Errorf("copying in over the end: %v", err)
	}
	if err := copyOut(&s, make([]byte, 8), page); err != ddp.LocalDDP {
		t.Errorf("copying out behind the end: %v", err)
	}
	if err := copyIn(&s, 0, []byte("still")); err != nil || !bytes.HasPrefix(mem, []byte("still")) {
		t.Errorf("what is left: %v", err)
	}
	if guard.inside != 0 || guard.was != 3 {
		t.Errorf("guard: %+v", *guard)
	}
	// Every other panic stays one, faults at other addresses included.
	elsewhere := ddp.Span{Bytes: make([]byte, 8), Guard: guard}
	for name, f := range map[string]func([]byte){
		"index":            func(b []byte) { b[len(b)] = 1 },
		"nil":              func([]byte) { *(*int)(nil) = 1 },
		"somebody's bytes": func([]byte) { mem[page] = 1 },
		"value":            func([]byte) { panic(7) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			elsewhere.Touch(f)
		}()
	}
	if guard.inside != 0 {
		t.Errorf("guard after panics: %+v", *guard)
	}
}

func TestCopiesAllocateNothing(t *testing.T) {
	s := ddp.Span{Bytes: make([]byte, 64), Guard: &counting{}}
	b := make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() { copyIn(&s, 0, b); copyOut(&s, b, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTouch(b *testing.B) {
	payload := make([]byte, 1440)
	for _, guard := range []ddp.Guard{nil, &counting{}} {
		s := ddp.Span{Bytes: make([]byte, 1440), Guard: guard}
		name := "guarded"
		if guard == nil {
			name = "free"
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(1440)
			for b.Loop() {
				copyIn(&s, 0, payload)
			}
		})
	}
	dst := make([]byte, 1440)
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(1440)
		for b.Loop() {
			copy(dst, payload)
		}
	})
}

// TestProbeRacesWithNothing checks that the race detector lets a program write to memory that is probed: Probe looks
// whether pages are there, and not at what they hold.
func TestProbeRacesWithNothing(t *testing.T) {
	b := make([]byte, 3*os.Getpagesize())
	var others sync.WaitGroup
	others.Go(func() { b[0] = 1 })
	ddp.Probe(b)
	others.Wait()
}
