package run

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestAfterBatchAtItsEnd checks that what is called at the end of a batch finds it over, so
// that AfterBatch in it does not wait for another batch.
func TestAfterBatchAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, Config{}, 1)
		m.s.Start(false)
		defer m.close()
		then := false
		m.s.AtBatchEnd(func() { m.s.AfterBatch(func() { then = true }) })
		m.in <- m.items[0]
		synctest.Wait()
		if !then {
			t.Error("what a batch held up waits for the next one, which may not come")
		}
	})
}

// TestAfterBatchOnce checks that a function for the end of a batch that ends at that moment
// is called once: by the caller of AfterBatch, or by the goroutine that applied the batch.
func TestAfterBatchOnce(t *testing.T) {
	m := newScript(t, Config{}, 1)
	m.apply = func(int) (bool, error) { return false, nil }
	var over atomic.Bool
	var batches sync.WaitGroup
	batches.Go(func() {
		for !over.Load() {
			m.s.apply(1)
		}
	})
	var called [100000]atomic.Int32
	for n := range called {
		m.s.AfterBatch(func() { called[n].Add(1) })
	}
	over.Store(true)
	batches.Wait()
	m.s.apply(1)
	for n := range called {
		if times := called[n].Load(); times != 1 {
			t.Fatalf("%d was called %d times", n, times)
		}
	}
	m.close()
}

// TestBatchEndCallsAll checks that functions for the end of a batch are called in order,
// each once.
func TestBatchEndCallsAll(t *testing.T) {
	m := newScript(t, Config{}, 1)
	var called []int
	for n := range 4 {
		m.s.AtBatchEnd(func() { called = append(called, n) })
	}
	m.apply = func(int) (bool, error) {
		m.s.AfterBatch(func() { called = append(called, 4) })
		if len(called) > 0 {
			t.Error("called during a batch")
		}
		return false, nil
	}
	m.s.apply(1)
	if len(called) != 5 {
		t.Errorf("called were %v", called)
	}
	for n := range called {
		if called[n] != n {
			t.Errorf("called were %v", called)
		}
	}
	m.close()
}

// TestBarrierRunsOnce checks that what the end of a batch called is not there any more for
// the goroutine that added it.
func TestBarrierRunsOnce(t *testing.T) {
	var b barrier
	ran := 0
	mine := b.add(func() { ran++ })
	b.run()
	b.add(func() {})
	if ran != 1 || b.remove(mine) {
		t.Errorf("ran %d times, and is there still", ran)
	}
	if !b.waits.Load() {
		t.Error("another's was forgotten")
	}
}

// TestBarrierKeepsOthers checks that taking one function back leaves the others there, and
// that each is called once.
func TestBarrierKeepsOthers(t *testing.T) {
	for gone := range 3 {
		var b barrier
		var ran [3]int
		var added [3]*func()
		for i := range added {
			added[i] = b.add(func() { ran[i]++ })
		}
		if !b.remove(added[gone]) || b.remove(added[gone]) {
			t.Errorf("%d was not there once", gone)
		}
		for range 2 {
			b.run()
		}
		for i, n := range ran {
			if i == gone && n != 0 || i != gone && n != 1 {
				t.Errorf("%d was taken back, and %d called %d times", gone, i, n)
			}
		}
		if b.waits.Load() {
			t.Error("waits is set, and the list is empty")
		}
	}
}
