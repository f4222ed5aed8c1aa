package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestRandomInterleavings checks that whatever happens at the same time, no two goroutines
// hold one lock, everything queued is served, each deadline is noticed, and each answer
// delivered.
func TestRandomInterleavings(t *testing.T) {
	inModes(t, 300, 60, func(t *testing.T, mode mode, seed uint64) { interleave(t, mode, seed, false) })
}

// TestRandomInterleavingsOfBlockedSends is TestRandomInterleavings over a transport that
// blocks the holder of the send lock, now and then, for longer than a claim lasts (N1).
func TestRandomInterleavingsOfBlockedSends(t *testing.T) {
	inModes(t, 100, 30, func(t *testing.T, mode mode, seed uint64) { interleave(t, mode, seed, true) })
}

// inModes tests in each mode with so many seeds, or fewer in a short run.
func inModes(t *testing.T, seeds, short int, test func(t *testing.T, mode mode, seed uint64)) {
	first := uint64(time.Now().UnixNano())
	t.Logf("seed %d", first)
	if testing.Short() {
		seeds = short
	}
	for i := range seeds {
		seed := first + uint64(i)
		for _, mode := range modes {
			fixture.Bubble(t, fmt.Sprintf("%s, seed %d", mode.name, seed), func(t *testing.T) { test(t, mode, seed) })
		}
	}
}

// interleave has some goroutines do at random all that can be done with a scheduler.
func interleave(t *testing.T, mode mode, seed uint64, blocks bool) {
	m := newModel(t, mode.cfg, 1+int(seed%7))
	longest := time.Duration(0)
	if blocks {
		longest = 2 * claimLimit
		m.blocks = func() {
			if rand.IntN(4) == 0 {
				time.Sleep(rand.N(longest))
			}
		}
	}
	// Yielding is what interleaves: time of a bubble passes only when all wait.
	m.slow = func() {
		for range rand.IntN(3) {
			runtime.Gosched()
		}
	}
	stop := make(chan struct{})
	pollers := m.begin(mode, stop)
	var actors sync.WaitGroup
	for a := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(a)))
		actors.Go(func() {
			var w Waiter
			w.Init()
			for range 60 {
				i := m.items[r.IntN(len(m.items))]
				switch r.IntN(8) {
				case 0, 1:
					m.want(i, true)
				case 2, 3:
					m.in <- i
				case 4:
					m.arm(i, time.Duration(r.IntN(3000))*time.Microsecond)
				case 5:
					m.s.Progress(time.Duration(r.IntN(3)) * time.Microsecond)
				case 6:
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(500))*time.Microsecond)
					was := i.doneSoFar()
					m.s.Await(ctx, &w, func() bool { return i.doneSoFar() > was }, nil, nil)
					cancel()
				case 7:
					began := m.batches.Load()
					m.s.AfterBatch(func() {
						// Another one may begin while f is called.
						if now := m.applying.Load(); now != 0 && now <= began {
							t.Error("after a batch, within that batch")
						}
					})
				}
				if r.IntN(4) == 0 {
					time.Sleep(time.Duration(r.IntN(200)) * time.Microsecond)
				}
			}
		})
	}
	actors.Wait()
	time.Sleep(20*time.Millisecond + 1000*longest) // longer than any deadline, and than all that is blocked
	synctest.Wait()
	m.check()
	close(stop)
	pollers.Wait()
	m.close()
	synctest.Wait()
}
