package gcm

import (
	"bytes"
	"crypto/cipher"
	"testing"

	"golang.org/x/sys/unix"
)

// guarded is memory between two pages that nobody may touch.
type guarded []byte

func guard(t *testing.T, pages int) guarded {
	page := unix.Getpagesize()
	b, err := unix.Mmap(-1, 0, (pages+2)*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	in := b[page : (pages+1)*page]
	if err := unix.Mprotect(in, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	return in
}

// at returns n bytes at the beginning or at the end, and fills all with what is not to change around them.
func (g guarded) at(end bool, n int) []byte {
	for i := range g {
		g[i] = 0xa5
	}
	if end {
		return g[len(g)-n:]
	}
	return g[:n:n]
}

// spoiled reports whether anything changed around n bytes.
func (g guarded) spoiled(end bool, n int) bool {
	rest := g[n:]
	if end {
		rest = g[:len(g)-n]
	}
	return bytes.Count(rest, []byte{0xa5}) != len(rest)
}

// TestNothingBeyond: nothing is read or written before or behind text, data, nonce and tag.
func TestNothingBeyond(t *testing.T) {
	each(t, func(t *testing.T, with func(*[32]byte) cipher.AEAD) {
		from, to, more, once := guard(t, 1), guard(t, 1), guard(t, 1), guard(t, 1)
		secret := someKey(1)
		want, a := plain(secret), with(secret)
		some := random(2, 2000)
		var sealed []byte
		for n := range 1700 {
			if n > 700 && n < 1300 {
				continue
			}
			for _, end := range []bool{false, true} {
				d := (n * 7) % 140
				text, data, nonce, out := from.at(end, n), more.at(end, d), once.at(end, 12), to.at(end, n+16)
				copy(text, some)
				copy(data, some)
				copy(nonce, some[n:])
				sealed = want.Seal(sealed[:0], nonce, text, data)
				if a.Seal(out[:0], nonce, text, data); !bytes.Equal(out, sealed) || to.spoiled(end, n+16) || !bytes.Equal(text, some[:n]) {
					t.Fatalf("%d bytes, at the end: %v: sealed otherwise, or beyond", n, end)
				}
				text = from.at(end, n)
				if _, err := a.Open(text[:0], nonce, out, data); err != nil || !bytes.Equal(text, some[:n]) || from.spoiled(end, n) {
					t.Fatalf("%d bytes, at the end: %v: opened otherwise, or beyond (%v)", n, end, err)
				}
				if _, err := a.Open(out[:0], nonce, out, data); err != nil || !bytes.Equal(out[:n], some[:n]) || !bytes.Equal(out[n:], sealed[n:]) ||
					to.spoiled(end, n+16) {
					t.Fatalf("%d bytes, at the end: %v: opened in place otherwise, or beyond (%v)", n, end, err)
				}
			}
		}
	})
}
