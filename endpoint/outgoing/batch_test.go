package outgoing

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/dgrdma/dgrdma/transport"
)

// small is as long as the longest frame that is sent once and forgotten may be.
const small = 300

// TestBatchOfSmallFrames checks that each frame of a batch has a buffer of its own, with room for
// the longest of those that are sent once, and that what is made for a batch is used by a full one, and again by the next.
func TestBatchOfSmallFrames(t *testing.T) {
	for _, headroom := range []int{0, 14} {
		var b Batch
		b.Init(headroom, small, LendingOf(false, false))
		for round := range 3 {
			var bufs [][]byte
			for !b.IsFull() {
				if n := b.Room(); n != MaxBatch-len(bufs) {
					t.Fatalf("room for %d frames after %d", n, len(bufs))
				}
				buf := b.Small()
				if len(buf) != headroom+small || len(buf) != cap(buf) {
					t.Fatalf("a buffer of %d bytes, which may grow to %d", len(buf), cap(buf))
				}
				copy(buf, bytes.Repeat([]byte{byte(len(bufs))}, len(buf)))
				bufs = append(bufs, buf)
				b.Add(new(transport.Addr), buf, nil, nil)
			}
			used := 0
			for i, buf := range bufs {
				used += len(buf)
				if !bytes.Equal(buf, bytes.Repeat([]byte{byte(i)}, len(buf))) {
					t.Fatalf("buffer %d of %d was written into", i, len(bufs))
				}
			}
			if used != len(b.smalls) || len(bufs) != MaxBatch {
				t.Errorf("a full batch of %d frames uses %d bytes of %d", len(bufs), used, len(b.smalls))
			}
			if b.End() || b.Number() != uint64(round+1) || len(b.Frames()) != 0 {
				t.Errorf("batch %d, of %d frames, of which some were lent", b.Number(), len(b.Frames()))
			}
		}
	}
}

// TestBatchBounds checks that the buffers of a batch lie one after the other in no more slabs than
// are hot, that what is lent is bounded as well, and that what a batch held is forgotten with it.
func TestBatchBounds(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testBounds(t, 1000, LendingOf(false, false), 4096, 1<<20) })
	t.Run("sealed", func(t *testing.T) { testBounds(t, 500, LendingOf(true, false), 512, 1<<18) })
}

func testBounds(t *testing.T, size int, l Lending, least, most int) {
	var b Batch
	b.Init(2, small, l)
	to := new(transport.Addr)
	n := 0
	for ; b.Fits(2 + 34 + size); n++ {
		buf, rest := b.Frame(34, make([]byte, size), 0)
		if len(buf) != 2+34+size || cap(buf) != len(buf) || rest != nil {
			t.Fatalf("a buffer of %d bytes, capacity %d, and %d where they are", len(buf), cap(buf), len(rest))
		}
		if n < MaxBatch {
			b.Add(to, buf, rest, nil)
		}
	}
	if want := mostHot * (slabSize / (2 + 34 + size)); n != want || len(b.hot) != mostHot {
		t.Errorf("%d frames of %d bytes in %d slabs, want %d", n, size, len(b.hot), want)
	}
	frames := b.Frames()[:MaxBatch]
	b.End()
	for _, o := range frames {
		if o.To != nil || o.Buf != nil || o.Rest != nil || o.Tail != nil {
			t.Fatal("a batch that was sent holds memory")
		}
	}
	if len(b.hot) != 0 || b.hot[:1][0] != nil {
		t.Errorf("%d slabs are kept for what was sent", len(b.hot))
	}
	end, lent := make([]byte, least), 0
	for ; b.Fits(2 + 34); lent += len(end) {
		buf, rest := b.Frame(34, end, 0)
		if len(buf) != 2+34 || &rest[0] != &end[0] || len(rest) != len(end) {
			t.Fatalf("a buffer of %d bytes, and %d where they are", len(buf), len(rest))
		}
	}
	if lent != most {
		t.Errorf("%d bytes are lent, want %d", lent, most)
	}
	if !b.End() || !b.Fits(slabSize) {
		t.Error("what was lent is not forgotten")
	}
}

// TestFramesOfABatch checks that a batch has the frames that were added, in their order.
func TestFramesOfABatch(t *testing.T) {
	var b Batch
	b.Init(0, small, LendingOf(false, false))
	var want []transport.Outgoing
	for i := range byte(MaxBatch) {
		o := transport.Outgoing{To: new(transport.Addr), Buf: []byte{i}, Rest: []byte{i, 1}, Tail: []byte{i, 2}}
		want = append(want, o)
		b.Add(o.To, o.Buf, o.Rest, o.Tail)
	}
	if !reflect.DeepEqual(b.Frames(), want) {
		t.Errorf("%d other frames", len(b.Frames()))
	}
}

// TestBuffersOfABatch checks that buffers lie one after the other, and that one that does not fit into what is left of a slab
// begins another one.
func TestBuffersOfABatch(t *testing.T) {
	var b Batch
	b.Init(0, small, LendingOf(false, false))
	var last []byte
	for i, size := range []int{1, 100, 1400, slabSize - 1501, 5, slabSize - 5, slabSize} {
		buf := b.Buffer(size)
		if len(buf) != size || cap(buf) != size {
			t.Fatalf("a buffer of %d bytes, capacity %d, want %d", len(buf), cap(buf), size)
		}
		first, used := i == 0 || i == 4 || i == 6, b.hot[len(b.hot)-1].used
		if &b.hot[len(b.hot)-1].mem[used-size] != &buf[0] || first != (used == size) {
			t.Errorf("buffer %d, of %d bytes, is elsewhere: %d are used", i, size, used)
		}
		for j := range last {
			if last[j] != 1 {
				t.Fatalf("buffer %d was written into", i-1)
			}
		}
		for j := range buf {
			buf[j] = 1
		}
		last = buf
	}
	if b.Fits(1) {
		t.Error("a byte more fits into full slabs")
	}
}
