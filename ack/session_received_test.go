package ack

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// oracle is a ReceivedIDs as a set.
type oracle struct {
	epoch uint32
	got   map[uint32]bool // by distance from epoch
	up    uint32          // the distance up to which all are in got
}

func (o *oracle) upTo() uint32 {
	for o.got[o.up+1] {
		o.up++
		delete(o.got, o.up-1)
	}
	return o.epoch + o.up
}

func (o *oracle) ranges() (s []frame.Range) {
	var all []uint32
	o.upTo()
	for d := range o.got {
		if d != o.up {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b uint32) int { return int(int32(a - b)) })
	for _, d := range all {
		if n := len(s); n > 0 && s[n-1].First+uint32(s[n-1].Count) == o.epoch+d {
			s[n-1].Count++
		} else {
			s = append(s, frame.Range{First: o.epoch + d, Count: 1})
		}
	}
	if len(s) > frame.MostRanges {
		s = append(s[:frame.MostRanges-1:frame.MostRanges-1], s[len(s)-1])
	}
	return s
}

// compare checks w against the oracle.
func (o *oracle) compare(t *testing.T, w *ReceivedIDs) {
	t.Helper()
	if w.UpTo() != o.upTo() {
		t.Fatalf("up to %#x, want %#x", w.UpTo(), o.upTo())
	}
	if got, want := w.AppendRanges(nil), o.ranges(); !slices.Equal(got, want) {
		t.Fatalf("ranges %v, want %v", got, want)
	}
	if got, want := w.Holes(), len(o.ranges()) > 0; got != want {
		t.Fatalf("up to %#x: holes %v, want %v", w.UpTo(), got, want)
	}
}

// arrive gives w a frame, as the receiver of a session does.
func (o *oracle) arrive(t *testing.T, w *ReceivedIDs, id uint32) {
	t.Helper()
	want := Fresh
	switch d := id - o.epoch; {
	case int32(id-o.upTo()) <= 0 || o.got[d]:
		want = Copied
	case int32(id-o.upTo()) > MostAhead:
		want = Beyond
	}
	switch got := w.Check(id); {
	case got != want:
		t.Fatalf("id %#x, up to %#x: %v, want %v", id, o.upTo(), got, want)
	case got == Fresh:
		w.Arrive(0, id, 0)
		o.got[id-o.epoch] = true
	case got == Copied:
		w.ArriveAgain(0, id, 1)
	}
}

// TestReceivedIDs checks a window against a set, over the end of the ids, where frames are lost, reordered and repeated by chance.
func TestReceivedIDs(t *testing.T) {
	for _, epoch := range []uint32{0, 7, 0xFFFFFFFF, 0xFFFFFF00, 0x7FFFFFF0, 0xFFFFFFFF - MostAhead} {
		for _, far := range []uint32{1, 3, 70, 700} {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 1))
			var w ReceivedIDs
			w.Begin(epoch)
			o := oracle{epoch: epoch, got: map[uint32]bool{}}
			for range 500 {
				o.arrive(t, &w, o.upTo()-far/2+r.Uint32N(2*far)+1)
				o.compare(t, &w)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		}
	}
}

// TestReceivedIDsIsExact checks the places at the borders of the window.
func TestReceivedIDsIsExact(t *testing.T) {
	for _, epoch := range []uint32{0, 100, 0xFFFFFFFF, 0x80000000} {
		var w ReceivedIDs
		w.Begin(epoch)
		for id, want := range map[uint32]Arrival{
			epoch: Copied, epoch + 1: Fresh, epoch - 1: Copied, epoch - 1<<31 + 1: Copied,
			epoch + MostAhead: Fresh, epoch + MostAhead + 1: Beyond, epoch + 1<<31 - 1: Beyond,
		} {
			if got := w.Check(id); got != want {
				t.Errorf("epoch %#x, id %#x: %v, want %v", epoch, id, got, want)
			}
		}
		// The furthest frame, and then all others, the last ones first.
		for i := uint32(MostAhead); i > 0; i-- {
			w.Arrive(0, epoch+i, 0)
			if w.Check(epoch+i) != Copied || i > 1 && w.UpTo() != epoch {
				t.Fatalf("epoch %#x, id %d: up to %#x", epoch, i, w.UpTo())
			}
		}
		if w.UpTo() != epoch+MostAhead || w.n != 0 || len(w.AppendRanges(nil)) != 0 {
			t.Errorf("epoch %#x: up to %#x, %d out of order", epoch, w.UpTo(), w.n)
		}
	}
}

// TestReceivedIDsOfManyRuns checks that of more runs than an acknowledgement holds the lowest are told, and the highest.
func TestReceivedIDsOfManyRuns(t *testing.T) {
	var w ReceivedIDs
	w.Begin(10)
	o := oracle{epoch: 10, got: map[uint32]bool{}}
	for i := uint32(2); i < 400; i += 3 {
		o.arrive(t, &w, 10+i)
		o.arrive(t, &w, 11+i)
	}
	o.compare(t, &w)
	if s := w.AppendRanges(nil); len(s) != frame.MostRanges || s[frame.MostRanges-1] != (frame.Range{First: 10 + 398, Count: 2}) {
		t.Errorf("%d ranges, the last is %v", len(s), s[len(s)-1])
	}
}

// TestReceivedIDsEcho checks what is told of the frame that arrived last.
func TestReceivedIDsEcho(t *testing.T) {
	var w ReceivedIDs
	w.Begin(99)
	if e := w.Echo(0); e != (Echo{ID: 99, Delay: time.Hour}) {
		t.Errorf("before the first frame: %+v", e)
	}
	w.Arrive(5, 101, 2)
	if e := w.Echo(9); e != (Echo{ID: 101, Copy: 2, Delay: 4}) {
		t.Errorf("%+v", e)
	}
	w.ArriveAgain(7, 100, 3)
	if e := w.Echo(9); e != (Echo{ID: 100, Copy: 3, Again: true, Delay: 2}) {
		t.Errorf("a copy: %+v", e)
	}
}

// TestReceivedIDsMemory checks that frames in order need no memory, and that those out of order need the same again.
func TestReceivedIDsMemory(t *testing.T) {
	var w ReceivedIDs
	w.Begin(0)
	id := uint32(0)
	in := func(n uint32) {
		for range n {
			id++
			w.Arrive(0, id, 0)
		}
	}
	if n := fixture.Allocations(10, func() { in(1000) }); n != 0 || w.ahead != nil {
		t.Errorf("%v allocations in order", n)
	}
	ranges := make([]frame.Range, 0, frame.MostRanges)
	swap := func() {
		w.Arrive(0, id+2, 0)
		ranges = w.AppendRanges(ranges[:0])
		w.Arrive(0, id+1, 0)
		id += 2
	}
	swap()
	if n := fixture.Allocations(100, swap); n != 0 {
		t.Errorf("%v allocations out of order", n)
	}
	w.Arrive(0, id+2, 0)
	if w.Trim(); w.ahead == nil {
		t.Fatal("it forgot a frame")
	}
	w.Begin(id) // with a frame out of order
	if w.Check(id+2) != Fresh || len(w.AppendRanges(nil)) != 0 {
		t.Error("a session began with a frame of the one before")
	}
	if w.Trim(); w.ahead != nil {
		t.Error("it keeps memory for nothing")
	}
}

// TestAheadMemory checks that sessions share memory for frames out of order, that none has a frame of another, and that little is kept.
func TestAheadMemory(t *testing.T) {
	var m AheadMemory
	sessions := make([]ReceivedIDs, 2*mostSpare)
	for i := range sessions {
		w := &sessions[i]
		w.Share(&m)
		w.Begin(uint32(i))
		w.Arrive(0, uint32(i)+2, 0)
		if i%2 == 1 {
			w.Begin(uint32(i)) // the session ends with a frame missing
		} else {
			w.Arrive(0, uint32(i)+1, 0)
		}
	}
	for i := range sessions {
		sessions[i].Trim()
	}
	if len(m.spare) != mostSpare {
		t.Errorf("memory of %d sessions is kept, want %d", len(m.spare), mostSpare)
	}
	for i := range sessions {
		w := &sessions[i]
		w.Begin(0)
		w.Arrive(0, 3, 0)
		for id := uint32(1); id < MostAhead; id++ {
			if want := id == 3; (w.Check(id) == Copied) != want {
				t.Fatalf("session %d: id %d arrived: %v", i, id, !want)
			}
		}
	}
	if len(m.spare) != 0 {
		t.Errorf("memory of %d sessions is not used", len(m.spare))
	}
}

// windowStep is how frames arrive in a step of a test.
type windowStep struct {
	kind uint8  // one; some, the first ones first; some, the last ones first; all that are missing; a session begins
	at   uint16 // the first one, from 32 before the cumulative acknowledgement
	n    uint8  // how many, in steps of 1 to 3
}

// take has frames arrive, as the receiver of a session does.
func (o *oracle) take(t *testing.T, w *ReceivedIDs, s windowStep) {
	t.Helper()
	first, n, step := o.upTo()+uint32(s.at)-32, uint32(s.n/3), uint32(s.n%3+1)
	switch s.kind % 16 {
	case 0, 1, 2, 3:
		o.arrive(t, w, first)
	case 4, 5, 6:
		for i := range n {
			o.arrive(t, w, first+i*step)
		}
	case 7, 8, 9:
		for i := range n {
			o.arrive(t, w, first+(n-1-i)*step)
		}
	case 10, 11, 12, 13:
		for id, end := o.upTo()+1, o.upTo()+uint32(s.at)%MostAhead; id != end+1; id++ {
			if w.Check(id) == Fresh {
				o.arrive(t, w, id)
			}
		}
	case 14:
		w.Trim()
	case 15:
		epoch := o.upTo() + uint32(s.at)
		w.Begin(epoch)
		*o = oracle{epoch: epoch, got: map[uint32]bool{}}
	}
	o.compare(t, w)
}

// TestReceivedIDsGoesRound checks a window against a set while each place of it is used for one id after the other, where runs of frames are lost and
// arrive in either order.
func TestReceivedIDsGoesRound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, epoch := range []uint32{0, 0xFFFFFFFF - 2*MostAhead, 0x7FFFFFFF - 2*MostAhead} {
		var w ReceivedIDs
		w.Begin(epoch)
		o := oracle{epoch: epoch, got: map[uint32]bool{}}
		for o.up < 5*MostAhead {
			at := uint16(r.IntN(400))
			if r.IntN(10) == 0 {
				at = uint16(r.IntN(MostAhead + 100))
			}
			o.take(t, &w, windowStep{uint8(r.IntN(14)), at, uint8(r.IntN(256))})
		}
	}
}

// FuzzReceivedIDs checks a window against a set, with ids that the input chooses.
func FuzzReceivedIDs(f *testing.F) {
	f.Add(uint32(0), []byte{0, 2, 0, 0, 0, 1, 0, 0})
	f.Add(uint32(0xFFFFFFFE), []byte{0, 35, 0, 0, 0, 33, 0, 0, 4, 200, 3, 255, 8, 0, 64, 255, 10, 255, 63, 0, 5, 255, 63, 255})
	f.Add(uint32(0x7FFFFFF0), []byte{7, 100, 1, 254, 10, 255, 63, 0, 14, 0, 0, 0, 7, 100, 1, 253, 15, 9, 0, 0, 7, 100, 1, 254})
	f.Fuzz(func(t *testing.T, epoch uint32, steps []byte) {
		var w ReceivedIDs
		w.Begin(epoch)
		o := oracle{epoch: epoch, got: map[uint32]bool{}}
		for i := 0; i+3 < len(steps) && i < 240; i += 4 {
			o.take(t, &w, windowStep{steps[i], uint16(steps[i+1]) | uint16(steps[i+2])<<8, steps[i+3]})
		}
	})
}

func BenchmarkReceivedIDs(b *testing.B) {
	b.Run("in order", func(b *testing.B) {
		var w ReceivedIDs
		for i := range b.N {
			if id := uint32(i) + 1; w.Check(id) == Fresh {
				w.Arrive(0, id, 0)
			}
		}
	})
	b.Run("one lost, 1000 after it, acknowledged", func(b *testing.B) {
		ranges := make([]frame.Range, 0, frame.MostRanges)
		var w ReceivedIDs
		id := uint32(0)
		for range b.N {
			for i := uint32(2); i <= 1000; i++ {
				w.Arrive(0, id+i, 0)
			}
			ranges = w.AppendRanges(ranges[:0])
			w.Arrive(0, id+1, 0)
			id += 1000
		}
	})
}
