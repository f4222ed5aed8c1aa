package sched

import (
	"testing"
	"testing/synctest"
)

// TestAfterBatchAtItsEnd: what waits for the end of a batch finds it over, so that what
// it waits for next need not wait for another batch.
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

// TestBarrierRunsOnce: what the end of a batch called is not called by who asked for it.
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
