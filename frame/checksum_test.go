package frame

import (
	"bytes"
	"testing"
)

// TestGoldenChecksum: the checksum is the CRC32C of the bytes before it, also of a frame in two pieces.
func TestGoldenChecksum(t *testing.T) {
	want := readHex(t, "ack-checked")
	buf := bytes.Repeat([]byte{0xEE}, 64)
	plain := append(buf[:0], want[:22]...)
	plain[9] = 0
	if got := AddChecksum(plain); !bytes.Equal(got, want) || buf[len(want)] != 0xEE {
		t.Errorf("wrote\n% x, want\n% x", got, want)
	}
	for cut := HeaderSize; cut <= 42; cut++ {
		head, sum := bytes.Clone(want[:cut]), make([]byte, ChecksumSize)
		head[9] = 0
		if PutChecksum(head, want[cut:42], sum); !bytes.Equal(sum, want[42:]) || head[9] != FlagChecksum {
			t.Errorf("in two pieces, cut at %d: % x", cut, sum)
		}
	}
	if got, ok := CutChecksum(want); !ok || !bytes.Equal(got, want[:42]) || cap(got) != 42 {
		t.Errorf("read % x, %v", got, ok)
	}
	if got, is := SplitChecksum(want); is != RightChecksum || len(got) != 42 {
		t.Errorf("%d bytes, %d", len(got), is)
	}
}

// TestChecksumFindsEachBit: no bit of a frame can be wrong, nor can its end be missing.
func TestChecksumFindsEachBit(t *testing.T) {
	b := readHex(t, "ack-checked")
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		if _, ok := CutChecksum(b); ok {
			t.Errorf("bit %d of %d is wrong", i%8, i/8)
		}
		if _, is := SplitChecksum(b); is != WrongChecksum && HasChecksum(b) {
			t.Errorf("bit %d of %d is wrong, and the checksum %d", i%8, i/8, is)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	for n := range b {
		if _, ok := CutChecksum(b[:n]); ok {
			t.Errorf("%d bytes of %d are whole", n, len(b))
		}
		if got, is := SplitChecksum(b[:n]); is != NoChecksum || len(got) != n {
			t.Errorf("%d bytes of %d: %d", n, len(b), is)
		}
	}
}

// TestCheckedSize: a frame of any length has room for what AddChecksum adds.
func TestCheckedSize(t *testing.T) {
	for n := HeaderSize; n < 2000; n++ {
		size := CheckedSize(n)
		if size < 46 || size < n+4 || size > max(46, n+4) {
			t.Fatalf("%d of %d", size, n)
		}
		b := AddChecksum(make([]byte, n, size))
		if got, ok := CutChecksum(b); len(b) != size || !ok || len(got) != size-4 {
			t.Fatalf("%d bytes, %v", len(b), ok)
		}
	}
}

func FuzzChecksum(f *testing.F) {
	f.Add(readHex(f, "ack-checked"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		got, is := SplitChecksum(b)
		cut, ok := CutChecksum(b)
		if !bytes.Equal(b, before) || ok != (cut != nil) || (is == RightChecksum) != (ok && HasChecksum(b) && len(b) >= 46) {
			t.Fatalf("%d bytes, %v; %d", len(cut), ok, is)
		}
		if want := len(b); is != NoChecksum && len(got) != want-ChecksumSize || is == NoChecksum && len(got) != want {
			t.Fatalf("%d of %d bytes", len(got), want)
		}
		if len(b) < HeaderSize {
			return
		}
		whole := AddChecksum(append(make([]byte, 0, CheckedSize(len(b))), b...))
		if plain, ok := CutChecksum(whole); !ok || !bytes.Equal(plain[10:len(b)], b[10:]) || !bytes.Equal(plain[:9], b[:9]) {
			t.Fatal("a checksum that was added is wrong")
		}
	})
}
