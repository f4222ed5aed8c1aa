package gcm

import (
	"bytes"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestWithout: where the processor has no such instructions there is the library's, and both understand each other.
func TestWithout(t *testing.T) {
	was := wide
	defer func() { wide = was }()
	secret, nonce, text := someKey(1), random(2, 12), random(3, 1431)
	sealed := New(secret).Seal(nil, nonce, text, nil)
	wide = false
	a := New(secret)
	if _, ok := a.(*key); ok {
		t.Fatal("takes what the processor does not have")
	}
	if out, err := a.Open(nil, nonce, sealed, nil); err != nil || !bytes.Equal(out, text) {
		t.Errorf("opened %x (%v)", out, err)
	}
}

// TestWithin: the key's own memory is all that is read and written for it.
func TestWithin(t *testing.T) {
	if !wide {
		t.Skip("this processor has no wide AES, or the system does not keep its registers")
	}
	const size = int(unsafe.Sizeof(key{}))
	mem := guard(t, 1)
	secret, nonce, some := someKey(1), random(2, 12), random(3, 2000)
	for _, end := range []bool{false, true} {
		k := (*key)(unsafe.Pointer(&mem.at(end, size)[0]))
		expand(k, secret)
		for n := range 600 {
			sealed := k.Seal(nil, nonce, some[:n], some[:n/4])
			if want := plain(secret).Seal(nil, nonce, some[:n], some[:n/4]); !bytes.Equal(sealed, want) {
				t.Fatalf("%d bytes: sealed %x, want %x", n, sealed, want)
			}
			if out, err := k.Open(nil, nonce, sealed, some[:n/4]); err != nil || !bytes.Equal(out, some[:n]) {
				t.Fatalf("%d bytes: opened %x (%v)", n, out, err)
			}
		}
		if mem.spoiled(end, size) {
			t.Fatal("wrote beyond the key")
		}
	}
}

// TestAligned: each load of the powers that many blocks take is from one line of the cache.
func TestAligned(t *testing.T) {
	if !wide {
		t.Skip("this processor has no wide AES, or the system does not keep its registers")
	}
	for range 100 {
		if k := must(someKey(1)).(*key); uintptr(unsafe.Pointer(k))%64 != 0 {
			t.Fatalf("the powers are at %p, over the border of a line", k)
		}
	}
}

// TestTooLong: a text that has more blocks than there are counters is not touched.
func TestTooLong(t *testing.T) {
	long, err := unix.Mmap(-1, 0, mostText+32, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Skip("no address space for a text of that length: ", err)
	}
	defer unix.Munmap(long)
	a := new(key)
	if out, err := a.Open(long[:0], make([]byte, 12), long[:mostText+17], nil); err == nil || out != nil {
		t.Error("opened it")
	}
	defer func() {
		if recover() == nil {
			t.Error("sealed it")
		}
	}()
	a.Seal(long[:0], make([]byte, 12), long[:mostText+1], nil)
}
