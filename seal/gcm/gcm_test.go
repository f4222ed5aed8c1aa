package gcm

import (
	"bytes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// each runs a test with every implementation that this machine has.
func each(t *testing.T, test func(t *testing.T, with func(*[32]byte) cipher.AEAD)) {
	t.Run("library", func(t *testing.T) { test(t, plain) })
	if _, ok := fast(new([32]byte)); !ok {
		t.Log("this processor has no wide AES, or the system does not keep its registers")
		return
	}
	t.Run("wide", func(t *testing.T) { test(t, must) })
}

func must(secret *[32]byte) cipher.AEAD {
	a, ok := fast(secret)
	if !ok {
		panic("there is no fast one")
	}
	return a
}

// random bytes, the same for the same seed.
func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)}).Read(b)
	return b
}

func someKey(seed uint64) *[32]byte { return (*[32]byte)(random(seed^0xabcd, 32)) }

// known are answers of McGrew and Viega's proposal to NIST (13 to 16), and of IEEE 802.1AE, annex C.
var known = []struct{ name, key, nonce, data, text, sealed string }{
	{
		"13", "0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "", "",
		"530f8afbc74536b9a963b4f1c4cb738b",
	},
	{
		"14", "0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "",
		"00000000000000000000000000000000",
		"cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
	},
	{
		"15", "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "",
		"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
		"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad" +
			"b094dac5d93471bdec1a502270e3cc6c",
	},
	{
		"16", "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
		"feedfacedeadbeeffeedfacedeadbeefabaddad2",
		"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
		"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662" +
			"76fc6ece0f4e1768cddf8853bb2d551b",
	},
	{
		"54 bytes, authenticated", "e3c08a8f06c6e3ad95a70557b23f75483ce33021a9c72b7025666204c69c0b72", "12153524c0895e81b2c28465",
		"d609b1f056637a0d46df998d88e5222ab2c2846512153524c0895e8108000f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f30313233340001",
		"",
		"2f0bc5af409e06d609ea8b7d0fa5ea50",
	},
	{
		"60 bytes, encrypted", "e3c08a8f06c6e3ad95a70557b23f75483ce33021a9c72b7025666204c69c0b72", "12153524c0895e81b2c28465",
		"d609b1f056637a0d46df998d88e52e00b2c2846512153524c0895e81",
		"08000f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a0002",
		"e2006eb42f5277022d9b19925bc419d7a592666c925fe2ef718eb4e308efeaa7c5273b394118860a5be2a97f56ab78365ca597cdbb3edb8d1a1151ea0af7b436",
	},
}

func TestKnownAnswers(t *testing.T) {
	each(t, func(t *testing.T, with func(*[32]byte) cipher.AEAD) {
		for _, k := range known {
			bytesOf := func(s string) []byte {
				b, err := hex.DecodeString(s)
				if err != nil {
					t.Fatalf("%s: %v", k.name, err)
				}
				return b
			}
			a := with((*[32]byte)(bytesOf(k.key)))
			if got := a.Seal(nil, bytesOf(k.nonce), bytesOf(k.text), bytesOf(k.data)); hex.EncodeToString(got) != k.sealed {
				t.Errorf("%s: sealed %x, want %s", k.name, got, k.sealed)
			}
			got, err := a.Open(nil, bytesOf(k.nonce), bytesOf(k.sealed), bytesOf(k.data))
			if err != nil || hex.EncodeToString(got) != k.text {
				t.Errorf("%s: opened %x (%v), want %s", k.name, got, err, k.text)
			}
		}
	})
}

// TestBesideTheLibrary: all lengths of text and data have the answer of the standard library, wherever they are, and where the
// text goes elsewhere and where it stays.
func TestBesideTheLibrary(t *testing.T) {
	most, step := 2100, 1
	if testing.Short() {
		step = 7
	}
	each(t, func(t *testing.T, with func(*[32]byte) cipher.AEAD) {
		secret := someKey(1)
		want, got := plain(secret), with(secret)
		text, data, nonce := random(2, most), random(3, 130), random(4, 12)
		sealed, room, stays := make([]byte, 0, most+16), make([]byte, 0, most+200), make([]byte, most+200)
		for n := 0; n <= most; n += step {
			for d := range len(data) + 1 {
				nonce[d%12]++
				at := (n + 3*d) % 64
				sealed = want.Seal(sealed[:0], nonce, text[:n], data[:d])
				if out := got.Seal(room[:at], nonce, text[:n], data[:d])[at:]; !bytes.Equal(out, sealed) {
					t.Fatalf("%d bytes and %d of data: sealed %x, want %x", n, d, out, sealed)
				}
				in := stays[at : at+n : at+n+16]
				copy(in, text)
				in = got.Seal(in[:0], nonce, in, data[:d])
				if &in[0] != &stays[at] || !bytes.Equal(in, sealed) {
					t.Fatalf("%d bytes and %d of data: sealed in place %x, want %x", n, d, in, sealed)
				}
				if out, err := got.Open(room[:at], nonce, sealed, data[:d]); err != nil || !bytes.Equal(out[at:], text[:n]) {
					t.Fatalf("%d bytes and %d of data: opened %x (%v), want %x", n, d, out, err, text[:n])
				}
				if out, err := got.Open(in[:0], nonce, in, data[:d]); err != nil || !bytes.Equal(out, text[:n]) {
					t.Fatalf("%d bytes and %d of data: opened in place %x (%v), want %x", n, d, out, err, text[:n])
				}
			}
		}
	})
}

// TestLong: the counter goes on over its bytes, and the hash over all that is reduced meanwhile.
func TestLong(t *testing.T) {
	each(t, func(t *testing.T, with func(*[32]byte) cipher.AEAD) {
		for i, n := range []int{16 * 253, 16 * 254, 16 * 255, 16*256 + 1, 8960, 1 << 16, 1<<16 + 500, 1<<20 - 32, 1<<20 - 16, 1 << 20, 1<<20 + 511, 3<<20 + 77} {
			secret := someKey(uint64(n))
			text, data, nonce := random(uint64(i), n), random(6, 17*i*i), random(7, 12)
			want := plain(secret).Seal(nil, nonce, text, data)
			a := with(secret)
			if got := a.Seal(nil, nonce, text, data); !bytes.Equal(got, want) {
				t.Errorf("%d bytes: sealed otherwise", n)
			}
			if got, err := a.Open(want[:0], nonce, want, data); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes: opened otherwise (%v)", n, err)
			}
		}
	})
}

// TestManyKeys: round keys and powers of the hash, of many keys.
func TestManyKeys(t *testing.T) {
	each(t, func(t *testing.T, with func(*[32]byte) cipher.AEAD) {
		text, nonce := random(1, 1431), random(2, 12)
		for i := range uint64(500) {
			secret := someKey(i)
			if want, got := plain(secret).Seal(nil, nonce, text, text[:17]), with(secret).Seal(nil, nonce, text, text[:17]); !bytes.Equal(got, want) {
				t.Fatalf("key %x: sealed %x, want %x", *secret, got, want)
			}
		}
	})
}

// TestChanged: no bit of anything may be another one, and what is refused leaves zeros.
func TestChanged(t *testing.T) {
	each(t, func(t *testing.T, with func(*[32]byte) cipher.AEAD) {
		a := with(someKey(1))
		for _, n := range []int{0, 1, 15, 16, 17, 64, 100, 256, 257, 320, 512, 513, 1431} {
			text, data, nonce := random(2, n), random(3, 17+n/10), random(4, 12)
			sealed := a.Seal(nil, nonce, text, data)
			in := make([]byte, len(sealed))
			refused := func(what string, bit int) {
				t.Helper()
				copy(in, sealed)
				if out, err := a.Open(in[:0], nonce, in, data); err == nil || out != nil {
					t.Fatalf("%d bytes: bit %d of the %s changed, and opened", n, bit, what)
				}
				if !bytes.Equal(in[:n], make([]byte, n)) || !bytes.Equal(in[n:], sealed[n:]) {
					t.Fatalf("%d bytes: bit %d of the %s changed, and left %x", n, bit, what, in)
				}
			}
			for what, b := range map[string][]byte{"sealed text": sealed, "data": data, "nonce": nonce} {
				for bit := range 8 * len(b) {
					b[bit/8] ^= 1 << (bit % 8)
					refused(what, bit)
					b[bit/8] ^= 1 << (bit % 8)
				}
			}
			for cut := range len(sealed) {
				if _, err := a.Open(nil, nonce, sealed[:cut], data); err == nil {
					t.Fatalf("%d bytes: cut to %d, and opened", n, cut)
				}
			}
			if _, err := a.Open(nil, nonce, append(bytes.Clone(sealed), 0), data); err == nil {
				t.Fatalf("%d bytes: one more, and opened", n)
			}
			if out, err := a.Open(in[:0], nonce, sealed, data); err != nil || !bytes.Equal(out, text) {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
	})
}

// TestContract: what cipher.AEAD promises beside the bytes.
func TestContract(t *testing.T) {
	each(t, func(t *testing.T, with func(*[32]byte) cipher.AEAD) {
		a := with(someKey(1))
		if a.NonceSize() != 12 || a.Overhead() != 16 {
			t.Errorf("nonces of %d bytes, tags of %d", a.NonceSize(), a.Overhead())
		}
		nonce, b := random(2, 12), random(3, 200)
		panics := func(what string, do func()) {
			t.Helper()
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			do()
		}
		for _, wrong := range [][]byte{nil, nonce[:11], append(bytes.Clone(nonce), 0)} {
			panics("nonce, to seal", func() { a.Seal(nil, wrong, b, nil) })
			panics("nonce, to open", func() { a.Open(nil, wrong, b, nil) })
		}
		panics("sealed a byte behind", func() { a.Seal(b[1:1], nonce, b[:100], nil) })
		panics("sealed a byte before", func() { a.Seal(b[:0], nonce, b[1:100], nil) })
		panics("the tag over the text", func() { a.Seal(b[:0], nonce, b[50:90], nil) })
		panics("opened a byte behind", func() { a.Open(b[1:1], nonce, b[:100], nil) })
		panics("opened a byte before", func() { a.Open(b[:0], nonce, b[1:100], nil) })
		// Side by side is not over each other.
		copy(b[100:150], random(4, 50))
		if out := a.Seal(b[:34], nonce, b[100:150], b[:34]); &out[0] != &b[0] || len(out) != 100 {
			t.Errorf("sealed %d bytes elsewhere", len(out))
		}
		if out, err := a.Open(b[:34], nonce, b[34:100], b[:34]); err != nil || !bytes.Equal(out[34:], random(4, 50)) {
			t.Errorf("opened %x (%v)", out, err)
		}
	})
}

func TestNothingAllocated(t *testing.T) {
	each(t, func(t *testing.T, with func(*[32]byte) cipher.AEAD) {
		a := with(someKey(1))
		nonce, b, data := random(2, 12), random(3, 1500), random(4, 17)
		if n := fixture.Allocations(100, func() {
			if _, err := a.Open(b[:0], nonce, a.Seal(b[:0], nonce, b[:1431], data), data); err != nil {
				t.Error(err)
			}
			if _, err := a.Open(b[:0], nonce, b[:1431], data); err == nil {
				t.Error("opened what is not sealed")
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestAtOnce: many use one, on stacks that have to grow, while the garbage collector stops them.
func TestAtOnce(t *testing.T) {
	each(t, func(t *testing.T, with func(*[32]byte) cipher.AEAD) {
		secret := someKey(1)
		a := with(secret)
		var all sync.WaitGroup
		for g := range uint64(8) {
			all.Go(func() {
				for i := range uint64(100) {
					n := int(i*37+g*101) % 3000
					text, nonce := random(i, n), random(g<<8|i, 12)
					want := plain(secret).Seal(nil, nonce, text, text[:n/20])
					var sealed, opened []byte
					done := make(chan error)
					go func() { // on a new stack
						var err error
						deep(int(i), func() {
							sealed = a.Seal(nil, nonce, text, text[:n/20])
							opened, err = a.Open(nil, nonce, sealed, text[:n/20])
						})
						done <- err
					}()
					if err := <-done; err != nil || !bytes.Equal(sealed, want) || !bytes.Equal(opened, text) {
						t.Errorf("goroutine %d, %d bytes: otherwise (%v)", g, n, err)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

//go:noinline
func deep(n int, do func()) (sum byte) {
	var room [100]byte
	room[n%100] = byte(n)
	if n == 0 {
		do()
		return room[0]
	}
	return deep(n-1, do) + room[n%100]
}

func FuzzBesideTheLibrary(f *testing.F) {
	f.Add([]byte("a key"), []byte("a nonce"), []byte("data"), []byte("text"), uint16(3))
	f.Add([]byte{}, []byte{}, make([]byte, 100), make([]byte, 600), uint16(0))
	f.Fuzz(func(t *testing.T, k, no, data, text []byte, flip uint16) {
		secret, nonce := new([32]byte), make([]byte, 12)
		copy(secret[:], k)
		copy(nonce, no)
		a := New(secret)
		want := plain(secret).Seal(nil, nonce, text, data)
		if got := a.Seal(nil, nonce, text, data); !bytes.Equal(got, want) {
			t.Fatalf("sealed %x, want %x", got, want)
		}
		if got, err := a.Open(nil, nonce, want, data); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("opened %x (%v)", got, err)
		}
		want[int(flip/8)%len(want)] ^= 1 << (flip % 8)
		if got, err := a.Open(want[:0], nonce, want, data); err == nil {
			t.Fatalf("opened %x", got)
		}
	})
}

func BenchmarkGCM(b *testing.B) {
	for _, n := range []int{64, 1435, 8960, 65536} {
		for _, what := range []string{"library", "wide"} {
			a := plain(someKey(1))
			if what == "wide" {
				w, ok := fast(someKey(1))
				if !ok {
					continue
				}
				a = w
			}
			text, data, nonce := random(1, n), random(2, 17), random(3, 12)
			sealed := a.Seal(nil, nonce, text, data)
			room := make([]byte, 0, n+16)
			b.Run(fmt.Sprintf("seal/%d/%s", n, what), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					a.Seal(room, nonce, text, data)
				}
			})
			b.Run(fmt.Sprintf("open/%d/%s", n, what), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					if _, err := a.Open(room, nonce, sealed, data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
