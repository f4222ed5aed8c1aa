package endpoint

import (
	"bytes"
	"testing"

	"github.com/dgrdma/dgrdma/transport"
)

// TestBatchOfSmallFrames: each frame of a batch has a buffer of its own, with room for the
// longest of those that are sent once, and what is made for a batch is used by a full one.
func TestBatchOfSmallFrames(t *testing.T) {
	for _, headroom := range []int{0, 14} {
		var b batch
		b.init(headroom, leastLent, mostLent)
		var bufs [][]byte
		for !b.full() {
			buf := b.small()
			if len(buf) < headroom+toldSize || len(buf) != cap(buf) {
				t.Fatalf("a buffer of %d bytes, which may grow to %d", len(buf), cap(buf))
			}
			copy(buf, bytes.Repeat([]byte{byte(len(bufs))}, len(buf)))
			bufs = append(bufs, buf)
			b.add(new(transport.Addr), buf, nil, nil)
		}
		used := 0
		for i, buf := range bufs {
			used += len(buf)
			if !bytes.Equal(buf, bytes.Repeat([]byte{byte(i)}, len(buf))) {
				t.Fatalf("buffer %d of %d was written into", i, len(bufs))
			}
		}
		if used != len(b.smalls) {
			t.Errorf("a full batch uses %d bytes of %d", used, len(b.smalls))
		}
	}
}

// TestBatchBounds: the buffers of a batch lie one behind the other in no more slabs than are
// hot, and what is lent is bounded as well. What a batch held is forgotten with it.
func TestBatchBounds(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testBounds(t, 1000, leastLent, mostLent) })
	t.Run("sealed", func(t *testing.T) { testBounds(t, 500, leastSealed, mostSealed) })
}

func testBounds(t *testing.T, size, least, most int) {
	var b batch
	b.init(2, least, most)
	to, x := new(transport.Addr), new(Transaction)
	n := 0
	for ; b.fits(2 + 34 + size); n++ {
		buf, rest := b.frame(34, make([]byte, size), x, 0)
		if len(buf) != 2+34+size || cap(buf) != len(buf) || rest != nil {
			t.Fatalf("a buffer of %d bytes, capacity %d, and %d where they are", len(buf), cap(buf), len(rest))
		}
		if n < maxBatch {
			b.add(to, buf, rest, nil)
		}
	}
	if want := mostHot * (slabSize / (2 + 34 + size)); n != want || len(b.hot) != mostHot {
		t.Errorf("%d frames of %d bytes in %d slabs, want %d", n, size, len(b.hot), want)
	}
	frames := b.frames[:maxBatch]
	b.clear()
	for _, o := range frames {
		if o.To != nil || o.Buf != nil || o.Rest != nil || o.Tail != nil {
			t.Fatal("a batch that was sent holds memory")
		}
	}
	end, lent := make([]byte, least), 0
	for ; b.fits(2 + 34); lent += len(end) {
		buf, rest := b.frame(34, end, x, 0)
		if len(buf) != 2+34 || &rest[0] != &end[0] || len(rest) != len(end) {
			t.Fatalf("a buffer of %d bytes, and %d where they are", len(buf), len(rest))
		}
	}
	if lent != most {
		t.Errorf("%d bytes are lent, want %d", lent, most)
	}
	b.clear()
	if !b.fits(slabSize) {
		t.Error("what was lent is not forgotten")
	}
}
