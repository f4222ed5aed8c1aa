package outgoing

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// transaction is what frames have messages of.
type transaction struct{ name string }

// flight is a connection's frames in flight, in a window, with the batch that they leave in.
type flight struct {
	InFlight[transaction]
	sent  ack.Flight
	batch Batch
}

func newFlight(l Lengths) *flight {
	f := new(flight)
	f.batch.Init(0, small, LendingOf(false, false))
	f.sent.Init(0, ack.FlightConfig{Epoch: 1<<32 - 1000, Window: 10_000}, &ack.FixedWindow{})
	f.Init(l, &f.batch)
	f.Follow(&f.sent)
	f.batch.End() // so that no frame seems to be in the batch
	return f
}

// keep keeps a frame, and returns its id.
func (f *flight) keep(buf []byte, t *transaction) uint32 {
	id := f.sent.Track(0, len(buf))
	f.Keep(id, buf, t, 1)
	return id
}

// TestFramesLieSideBySide checks that frames that are kept lie side by side as they were made, whatever their
// length, that one too long for a slab has its own memory, and that none is left when all are acknowledged.
func TestFramesLieSideBySide(t *testing.T) {
	for _, full := range []int{200, 1490, 9000, slabSize, slabSize + 1} {
		for _, spare := range []int{0, 4} {
			f := newFlight(Lengths{Full: full + spare, Spare: spare, Least: 60})
			var ids []uint32
			var last []byte
			for i := range 100 {
				n := []int{8, full, 60, full / 2, 57}[i%5]
				before := f.slab
				id := f.keep(f.Buffer()[:n], nil)
				ids = append(ids, id)
				o := f.At(id)
				b := o.Bytes()
				if !o.IsKept() || len(b) != n || cap(b) < n+spare {
					t.Fatalf("a frame of %d bytes is one of %d, with room for %d", n, len(b), cap(b))
				}
				after := unsafe.Pointer(unsafe.SliceData(last))
				if f.slab == before && unsafe.Pointer(&b[0]) != unsafe.Add(after, max(len(last)+spare, 60)) {
					t.Errorf("frame %d begins elsewhere than the one before it ends", i)
				}
				last = b
			}
			if longest := f.Longest(); longest != full {
				t.Errorf("the longest has %d bytes, want %d", longest, full)
			}
			for _, id := range ids {
				f.Discard(f.At(id))
			}
			if n := f.Memory(); n != 0 {
				t.Errorf("frames of %d bytes: %d bytes of memory are left", full, n)
			}
		}
	}
}

// TestSlabsAreFilled checks that frames lie in as little memory as they can, and that what is given
// back of one slab leaves the others alone.
func TestSlabsAreFilled(t *testing.T) {
	for _, full := range []int{slabSize + 100, slabSize/2 + 1, 100, slabSize / 3, slabSize / 2, 40_000, slabSize} {
		f := newFlight(Lengths{Full: full})
		inSlabs := make(map[*slab]int)
		var all []uint32
		each := max(1, slabSize/full)
		mark := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, full/2) }
		for i := range 3*each + 1 {
			buf := f.Buffer()
			if len(buf) != full || cap(buf) != full {
				t.Fatalf("%d bytes, and up to %d, for %d", len(buf), cap(buf), full)
			}
			all = append(all, f.keep(buf, nil))
			copy(buf, mark(i))
			inSlabs[f.slab]++
		}
		if len(inSlabs) != 4 || f.Memory() != 4*max(full, slabSize) {
			t.Errorf("%d frames of %d bytes take %d slabs of %d bytes, want 4", len(all), full, len(inSlabs), f.Memory())
		}
		for i, id := range all {
			if o := f.At(id); !bytes.HasPrefix(o.Bytes(), mark(i)) || len(o.Bytes()) != full {
				t.Fatalf("frame %d of %d bytes is another one", i, full)
			}
		}
		last := f.slab
		for _, id := range all[:len(all)-1] {
			f.Discard(f.At(id))
		}
		if f.slab != last || last.held != 1 || last.used != full {
			t.Errorf("the last of %d frames of %d bytes went with the others", len(all), full)
		}
		if f.Discard(f.At(all[len(all)-1])); f.slab != nil {
			t.Errorf("frames of %d bytes: memory is left", full)
		}
	}
}

// TestSlabOfTheBatchAtHand checks that what waits for the batch that is being sent is not freed
// before that has left, and what left with an earlier one at once.
func TestSlabOfTheBatchAtHand(t *testing.T) {
	f := newFlight(Lengths{Full: 100})
	o := f.place(f.Buffer()[:50])
	f.Batched()
	mem := f.slab
	f.Discard(o)
	if f.ReleaseSent(); mem.held != 1 || f.slab != mem || f.Memory() != slabSize {
		t.Error("freed while it is being sent")
	}
	f.batch.End()
	if f.ReleaseSent(); mem.held != 0 || mem.used != 0 || f.slab != nil || f.Memory() != 0 {
		t.Errorf("not freed when it was sent: %d held, %d used, %d bytes", mem.held, mem.used, f.Memory())
	}
	o = f.place(f.Buffer()[:50])
	f.Batched()
	f.batch.End()
	mem = f.slab
	if f.Discard(o); mem.held != 0 || f.slab != nil || f.Memory() != 0 {
		t.Errorf("not freed when it was sent long ago: %d held, %d bytes", mem.held, f.Memory())
	}
}

// TestSlabsOfSeveralBatches checks that the memory of frames that were acknowledged while they were being sent is free after their batch, once for
// each, and counts until then.
func TestSlabsOfSeveralBatches(t *testing.T) {
	f := newFlight(Lengths{Full: slabSize})
	for round := range 3 {
		var all []*Frame[transaction]
		for range 3 {
			all = append(all, f.place(f.Buffer()))
		}
		f.Batched()
		for _, o := range all {
			f.Discard(o)
		}
		if n := f.Memory(); n != 3*slabSize {
			t.Errorf("batch %d: %d bytes of memory hold three frames that are being sent", round, n)
		}
		f.batch.End()
		if f.ReleaseSent(); f.Memory() != 0 || len(f.leaving) != 0 || f.leaving[:3][2] != nil {
			t.Errorf("batch %d: %d bytes of memory, %d slabs wait", round, f.Memory(), len(f.leaving))
		}
	}
}

// place keeps a frame and returns it.
func (f *flight) place(buf []byte) *Frame[transaction] { return f.At(f.keep(buf, nil)) }

// TestFramesThatAreMadeAgain checks that of a frame that is made again only its part is remembered, that it holds no memory, and that
// frames that do not fit a slab are none of those.
func TestFramesThatAreMadeAgain(t *testing.T) {
	f := newFlight(Lengths{Full: slabSize})
	x := &transaction{"x"}
	p := Part{Segment: 3, Offset: 1 << 20, Index: 65_535}
	id := f.sent.Track(0, 1400)
	f.Note(id, x, &p, 1414)
	o := f.At(id)
	if o.IsKept() || o.First != x || o.N != 1 || o.Length != 1414 || o.Part != p || f.Memory() != 0 || f.Longest() != 1414 {
		t.Errorf("%+v, %d bytes of memory", o, f.Memory())
	}
	if f.Batched(); !f.MayRemake() {
		t.Error("frames as long as a slab are kept")
	}
	f.Discard(o)
	if *o != (Frame[transaction]{}) || len(f.leaving) > 0 {
		t.Errorf("forgotten: %+v, and %d slabs wait", o, len(f.leaving))
	}
	if f := newFlight(Lengths{Full: slabSize + 1}); f.MayRemake() {
		t.Error("longer frames than a slab are made again")
	}
}

// TestShortFramesTakeLittle checks that a short frame of a connection that has none in flight takes no slab, and that it goes
// into the slab of those that are.
func TestShortFramesTakeLittle(t *testing.T) {
	f := newFlight(Lengths{Full: 1500, Spare: 4, Least: 60})
	for _, size := range []int{20, 200} {
		buf := f.Little(size)
		room := max(size+4, 60)
		if len(buf) != size || cap(buf) != room || f.Memory() != room {
			t.Errorf("a frame of %d bytes is one of %d, with room for %d, in %d", size, len(buf), cap(buf), f.Memory())
		}
		f.Discard(f.place(buf))
		if f.Memory() != 0 {
			t.Errorf("%d bytes are kept", f.Memory())
		}
	}
	f.keep(f.Buffer()[:1000], nil)
	f.keep(f.Little(20), nil)
	if f.Memory() != slabSize {
		t.Errorf("%d bytes of memory, want a slab", f.Memory())
	}
	for f.slab.has(204) {
		f.keep(f.Little(20), nil)
	}
	if buf := f.Little(200); len(buf) != 200 || cap(buf) != 204 || f.Memory() != slabSize+204 {
		t.Errorf("%d bytes of memory, want a slab and a frame that does not fit it", f.Memory())
	}
}

// TestPlacesFollowTheWindow checks that each frame in flight is found under its id when the window gets longer, also where there were ids
// of no frames.
func TestPlacesFollowTheWindow(t *testing.T) {
	f := newFlight(Lengths{Full: 100})
	names := map[uint32]*transaction{}
	for i := range 2000 {
		if i%7 == 3 {
			f.sent.Track(0, 10) // of no frame that is kept
			continue
		}
		x := &transaction{}
		names[f.keep(f.Buffer()[:50], x)] = x
	}
	if f.Places() != f.sent.Capacity() || f.Places() < 2000 {
		t.Errorf("%d places, the window has %d", f.Places(), f.sent.Capacity())
	}
	for id, x := range names {
		if o := f.At(id); o.First != x || o.N != 1 {
			t.Fatalf("frame %d is %+v", id, o)
		}
	}
	if f.Clear(); f.Memory() != 0 || f.Longest() != 0 {
		t.Errorf("%d bytes of memory of frames that are forgotten, the longest of %d", f.Memory(), f.Longest())
	}
	if f.Rest(); f.Places() != 0 {
		t.Errorf("%d places are left", f.Places())
	}
}

// TestIdsWithoutFrames checks that a frame is found under its own id alone when the window got longer by ids of no frames than it
// had places.
func TestIdsWithoutFrames(t *testing.T) {
	f := newFlight(Lengths{Full: 100})
	x := &transaction{}
	first := f.keep(f.Buffer()[:50], x)
	before := f.Places()
	for range 5 * before {
		f.sent.Track(0, 10)
	}
	f.keep(f.Buffer()[:50], nil)
	for id := first; id != f.sent.Next()-1; id++ {
		if o := f.At(id); o.IsKept() != (id == first) || (o.First == x) != (id == first) {
			t.Errorf("frame %d, of %d places before, is %+v", id-first, before, o)
		}
	}
}

// TestNoAllocation checks that a frame takes no memory of its own.
func TestNoAllocation(t *testing.T) {
	if fixture.Race {
		t.Skip("the race detector drops memory of pools")
	}
	f := newFlight(Lengths{Full: 1500})
	f.keep(f.Buffer()[:1400], nil)
	id := f.sent.Next() - 1
	data := make([]byte, 5000)
	if n := fixture.Allocations(1000, func() {
		f.Keep(id, f.Buffer()[:1400], nil, 1)
		f.Discard(f.At(id))
		f.Note(id, nil, &Part{}, 1400)
		f.Discard(f.At(id))
		f.batch.Frame(34, data, 4)
		f.batch.Frame(34, data[:1000], 4)
		f.batch.Add(nil, nil, nil, nil)
		f.batch.End()
	}); n > 0 {
		t.Errorf("%v allocations for two frames", n)
	}
}
