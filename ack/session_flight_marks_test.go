package ack

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// heeding is a controller that heeds marks, if on.
type heeding struct {
	FixedWindow
	off    bool
	marked int
}

func (h *heeding) HeedsMarks() bool          { return !h.off }
func (h *heeding) OnMarked(_ Instant, n int) { h.marked += n }

func newHeeding(f *Flight, epoch uint32) *heeding {
	h := &heeding{}
	f.Init(0, FlightConfig{Epoch: epoch, Window: 100, Marks: true, MinRTO: flightRTO, MaxRTO: time.Second, AckDelay: time.Millisecond, AckEvery: 2, GiveUp: time.Minute}, h)
	return h
}

// TestMarksOfAnHonestPeer checks that no network has an honest peer taken for one that does not tell the truth: one that loses, doubles and reorders frames and
// acknowledgements, also where some acknowledgements are piggybacked and tell no marks, over the end of the ids. In the end all marks are known, but those of frames whose last acknowledgement told none.
func TestMarksOfAnHonestPeer(t *testing.T) {
	for _, epoch := range []uint32{0, 0xFFFFFFFF - 300, 0x7FFFFFFF - 300} {
		for _, loss := range []float64{0, .01, .2} {
			for _, jitter := range []time.Duration{0, 100 * time.Microsecond, 5 * time.Millisecond} {
				seed := rand.Uint64()
				w := newFlightWorld(t, seed, epoch, 100)
				h := newHeeding(&w.f, epoch)
				w.delay = func() time.Duration {
					if w.r.Float64() < loss {
						return -1
					}
					return time.Millisecond + time.Duration(w.r.Int64N(int64(jitter+1)))
				}
				w.batch = time.Duration(w.r.Int64N(int64(200 * time.Microsecond)))
				w.marks, w.piggybacks = .05, .3
				w.send(2000)
				switch s := w.f.Marks(); {
				case s == MarksFailed && loss > .1 && w.f.marks.failed == mostMarkTests:
					continue // so much was lost that frames with marks seemed to be, in both tests
				case s == MarksFailed || loss < .1 && s != MarksWork:
					t.Errorf("seed %d, loss %v, jitter %v: marks are %v, told %+v, %+v", seed, loss, jitter, s, w.told, w.f.marks)
				}
				if got := w.f.TakeMarks(); got.Failed || got.Marked != h.marked || got.Marked > int(w.told.Congested) || got.Marked < int(w.told.Congested)-40 || got.Marked == 0 {
					t.Errorf("seed %d: %+v, the controller knows of %d, %d arrived", seed, got, h.marked, w.told.Congested)
				}
				if again := w.f.TakeMarks(); again != (MarkNews{}) {
					t.Errorf("%+v again", again)
				}
			}
		}
	}
}

// markSteps is a peer by hand: ids count from 1.
type markSteps struct {
	t   *testing.T
	f   Flight
	ctl *heeding
	now Instant
}

func newMarkSteps(t *testing.T) *markSteps {
	s := &markSteps{t: t}
	s.ctl = newHeeding(&s.f, 0)
	return s
}

func (s *markSteps) send(n int) {
	for range n {
		s.f.Track(s.now, 1000)
	}
}

// ack acknowledges up to an id, with marks.
func (s *markSteps) ack(upTo uint32, capable, congested uint32) {
	s.t.Helper()
	s.now = s.now.Add(time.Millisecond)
	a := Acknowledgement{UpTo: upTo, HasEcho: true, Echo: Echo{ID: upTo, Delay: time.Hour}, Marks: frame.Marks{Capable: capable, Congested: congested}}
	if _, ok := s.f.AppendAcked(nil, s.now, &a); !ok {
		s.t.Fatal("refused")
	}
	s.f.EndBatch(s.now)
}

func (s *markSteps) want(m MarkState, on bool) {
	s.t.Helper()
	if s.f.Marks() != m || s.f.Marking() != on {
		s.t.Errorf("marks are %q, frames leave with them: %v, want %q, %v", s.f.Marks(), s.f.Marking(), m, on)
	}
}

// timeout lets the next timeout pass, and sends again what is lost.
func (s *markSteps) timeout() {
	s.t.Helper()
	at, armed := s.f.Deadline()
	for armed && s.f.Lost() == 0 {
		s.now = at
		s.f.Expire(s.now, s.now)
		at, armed = s.f.Deadline()
	}
	for id, ok := s.f.NextLost(s.now); ok; id, ok = s.f.NextLost(s.now) {
		s.f.Resend(s.now, id)
	}
}

// TestMarkTruth checks what a peer may tell of marks, and what it may not.
func TestMarkTruth(t *testing.T) {
	for name, x := range map[string]struct {
		tell   func(s *markSteps)
		state  MarkState
		marked int
	}{
		"all":                         {func(s *markSteps) { s.ack(5, 5, 0) }, MarksWork, 0},
		"some congested":              {func(s *markSteps) { s.ack(5, 3, 2); s.ack(10, 5, 5) }, MarksWork, 5},
		"more, which came":            {func(s *markSteps) { s.ack(5, 10, 0) }, MarksWork, 0},
		"more than left":              {func(s *markSteps) { s.ack(5, 11, 0) }, MarksFailed, 0},
		"congested more than left":    {func(s *markSteps) { s.ack(5, 5, 6) }, MarksFailed, 0},
		"less than acknowledged":      {func(s *markSteps) { s.ack(5, 4, 0) }, MarksFailed, 0},
		"none":                        {func(s *markSteps) { s.ack(5, 0, 0) }, MarksFailed, 0},
		"shrinking":                   {func(s *markSteps) { s.ack(5, 5, 2); s.ack(8, 7, 1) }, MarksFailed, 2},
		"ECT(0) becomes CE":           {func(s *markSteps) { s.ack(5, 5, 0); s.ack(8, 4, 4) }, MarksFailed, 0},
		"nothing new, less":           {func(s *markSteps) { s.ack(5, 5, 2); s.ack(5, 4, 1) }, MarksWork, 2},
		"late, less":                  {func(s *markSteps) { s.ack(5, 5, 2); s.ack(3, 1, 0) }, MarksWork, 2},
		"nothing new, more":           {func(s *markSteps) { s.ack(5, 5, 0); s.ack(5, 6, 2) }, MarksWork, 2},
		"nothing is told any more":    {func(s *markSteps) { s.ack(5, 5, 0); s.ack(6, 0, 0) }, MarksFailed, 0},
		"far more, around the number": {func(s *markSteps) { s.ack(5, 1<<31, 1<<31) }, MarksFailed, 0},
	} {
		s := newMarkSteps(t)
		s.send(10)
		x.tell(s)
		if got := s.f.TakeMarks(); s.f.Marks() != x.state || s.f.Marking() == (x.state == MarksFailed) || got != (MarkNews{x.marked, x.state == MarksFailed}) || s.ctl.marked != x.marked {
			t.Errorf("%s: %q, %+v, the controller knows of %d", name, s.f.Marks(), got, s.ctl.marked)
		}
		s.ack(10, 10, 0)
		if got := s.f.TakeMarks(); x.state == MarksFailed && got != (MarkNews{}) {
			t.Errorf("%s: %+v after that", name, got)
		}
	}
}

// TestMarksOfFramesWithout checks that only frames count that left with a mark, where the controller changes its mind.
func TestMarksOfFramesWithout(t *testing.T) {
	s := newMarkSteps(t)
	s.ctl.off = true
	s.ack(0, 0, 0)
	s.send(5)
	s.want(MarksUnused, false)
	s.ctl.off = false
	s.ack(3, 0, 0)
	s.want(MarksTested, true)
	s.send(5)
	s.ack(5, 0, 0)
	s.want(MarksTested, true)
	s.ack(7, 2, 0)
	s.want(MarksWork, true)
	s.ctl.off = true
	s.ack(8, 3, 0)
	s.want(MarksUnused, false)
	s.send(3)
	s.ack(12, 5, 0)
	s.ctl.off = false
	s.ack(13, 5, 0)
	s.want(MarksWork, true)
	s.send(1)
	if s.ack(14, 5, 0); s.f.Marks() != MarksFailed {
		t.Errorf("one came without its mark: %q", s.f.Marks())
	}
}

// TestMarksAreDropped checks that frames leave without marks after timeouts: at once where none was ever acknowledged, and for good after two tests in
// a row.
func TestMarksAreDropped(t *testing.T) {
	s := newMarkSteps(t)
	s.send(1)
	s.want(MarksTested, true)
	s.timeout()
	s.want(MarksPaused, false)
	s.send(1)
	s.ack(2, 0, 0) // of the copy without
	s.want(MarksTested, true)
	s.send(1)
	s.timeout()
	s.want(MarksPaused, false)
	s.ack(3, 0, 0)
	s.want(MarksFailed, false)
	if got := s.f.TakeMarks(); got != (MarkNews{Failed: true}) {
		t.Errorf("%+v", got)
	}

	// Where they worked, it takes more, and another test that succeeds.
	s = newMarkSteps(t)
	s.send(2)
	s.ack(1, 1, 0)
	for range markTimeouts - 1 {
		s.timeout()
		s.want(MarksWork, true)
	}
	s.timeout()
	s.want(MarksPaused, false)
	s.ack(2, 2, 0) // of one of the copies with
	s.want(MarksTested, true)
	s.send(1)
	s.ack(3, 3, 0)
	s.want(MarksWork, true)
	if s.f.marks.failed != 0 {
		t.Errorf("%d tests count that failed before", s.f.marks.failed)
	}
}

// TestNoMarks checks that a transport without marks has none, nor a controller that does not heed them.
func TestNoMarks(t *testing.T) {
	var f Flight
	f.Init(0, FlightConfig{Window: 100}, &heeding{})
	if f.Marking() || f.Marks() != MarksUnused || f.Marks().String() != "" {
		t.Error("the transport has none")
	}
	f.Init(0, FlightConfig{Window: 100, Marks: true}, &FixedWindow{})
	if f.Marking() || f.Marks() != MarksUnused {
		t.Error("the controller does not heed them")
	}
}
