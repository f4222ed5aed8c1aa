package budget

import (
	"sync"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) { fixture.Run(m) }

// world is a budget, and the functions that wait for the end of a batch.
type world struct {
	Budget
	batch []func()
}

func newWorld(limit int64) *world {
	w := &world{}
	w.Init(limit, func(f func()) { w.batch = append(w.batch, f) })
	return w
}

// share returns a share whose wakes and shrinks are counted.
func (w *world) share(p *Peer) (s *Share, wakes, shrinks *int) {
	s, wakes, shrinks = new(Share), new(int), new(int)
	s.Init(&w.Budget, p, func() { *wakes++ }, func() { *shrinks++ })
	return s, wakes, shrinks
}

func (w *world) endBatch() {
	for _, f := range w.batch {
		f()
	}
	w.batch = nil
}

// TestPeersShare checks that a peer gets no more than it leaves for others, and that what it
// gives back can be had again.
func TestPeersShare(t *testing.T) {
	w := newWorld(1000)
	var a, b Peer
	first, _, _ := w.share(&a)
	same, _, _ := w.share(&a)
	other, _, _ := w.share(&b)
	for _, c := range []struct {
		s    *Share
		n    int64
		want bool
	}{{first, 501, false}, {first, 300, true}, {same, 201, false}, {same, 200, true}, {same, 1, false}, {same, 0, true}, {other, 251, false}, {other, 250, true}} {
		if fits := c.s.Fits(c.n); fits != c.want {
			t.Errorf("%d bytes fit: %v", c.n, fits)
		}
		if ok := c.s.Charge(c.n); ok != c.want {
			t.Errorf("%d bytes are charged: %v", c.n, ok)
		}
	}
	if w.Used() != 750 || a.Used() != 500 || b.Used() != 250 {
		t.Errorf("%d bytes are charged, %d and %d of the peers", w.Used(), a.Used(), b.Used())
	}
	first.Uncharge(300)
	if !same.Charge(100) {
		t.Error("what was given back cannot be had")
	}
}

// TestClosedShare checks that a closed share has nothing charged, whatever is charged and
// uncharged after Close or at the same time.
func TestClosedShare(t *testing.T) {
	for range 200 {
		w := newWorld(1 << 20)
		var p Peer
		s, _, _ := w.share(&p)
		var all sync.WaitGroup
		all.Go(func() {
			for range 50 {
				if s.Charge(10) {
					s.Uncharge(10)
				}
			}
			s.Charge(10)
		})
		all.Go(s.Close)
		all.Wait()
		s.Uncharge(10)
		if s.Charge(1) {
			t.Error("bytes are charged after Close")
		}
		s.SetGrown(true)
		if w.Used() != 0 || p.Used() != 0 || len(w.grown) != 0 {
			t.Fatalf("%d bytes are charged after Close, %d of the peer; %d may shrink", w.Used(), p.Used(), len(w.grown))
		}
	}
}

// TestWait checks that links that wait are woken once for each batch in which bytes are
// uncharged, and no other ones.
func TestWait(t *testing.T) {
	w := newWorld(1000)
	var a, b Peer
	s, wakes, _ := w.share(&a)
	other, others, _ := w.share(&b)
	other.Charge(400)
	other.Uncharge(1)
	w.endBatch()
	s.Wait()
	s.Wait()
	if w.Waiting() != 1 || w.Waits() != 1 || *wakes != 0 {
		t.Errorf("%d links wait, after %d waits and %d wakes", w.Waiting(), w.Waits(), *wakes)
	}
	other.Uncharge(1)
	other.Uncharge(1)
	if len(w.batch) != 1 {
		t.Errorf("%d functions wait for the end of the batch", len(w.batch))
	}
	w.endBatch()
	other.Uncharge(1)
	w.endBatch()
	s.StopWaiting()
	s.StopWaiting()
	other.Uncharge(1)
	w.endBatch()
	if *wakes != 2 || *others != 0 || w.Waiting() != 0 || len(w.waiting) != 0 {
		t.Errorf("woken %d times, another link %d times; %d wait", *wakes, *others, w.Waiting())
	}
}

// TestShrink checks that a link that begins to wait has the links shrink that can, and again
// when a link says that it can.
func TestShrink(t *testing.T) {
	w := newWorld(1000)
	var p Peer
	s, wakes, _ := w.share(&p)
	big, _, shrinks := w.share(&p)
	big.SetGrown(true)
	big.CanShrink()
	if len(w.batch) != 0 {
		t.Error("no link waits, and one is to be woken")
	}
	s.Wait()
	s.Wait()
	if *shrinks != 1 {
		t.Errorf("shrunk %d times", *shrinks)
	}
	big.CanShrink()
	w.endBatch()
	s.Wait()
	if *shrinks != 2 || *wakes != 1 {
		t.Errorf("shrunk %d times, woken %d times", *shrinks, *wakes)
	}
	big.SetGrown(false)
	big.CanShrink()
	w.endBatch()
	s.Wait()
	if *shrinks != 2 {
		t.Errorf("shrunk %d times, once without anything to shrink", *shrinks)
	}
}
