package run

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestQueueDuringSend checks that an item that is queued while another goroutine takes all
// that is listed is served by one of the two (rule 4).
func TestQueueDuringSend(t *testing.T) {
	m := newModel(t, Config{}, 2)
	m.unanswered = true
	defer m.close()
	const rounds = 20000
	var round atomic.Int64
	var both sync.WaitGroup
	for n, i := range m.items {
		both.Go(func() {
			for k := range int64(rounds) {
				round.Add(1)
				for round.Load() < 4*k+2 { // the other is here too
					runtime.Gosched()
				}
				m.queue(i, true)
				round.Add(1)
				for round.Load() < 4*k+4 {
					runtime.Gosched()
				}
				if n == 0 && m.s.pending.Load() { // in place of a poller
					m.s.serve()
				}
				if n == 0 && (m.items[0].doneSoFar() != int(k+1) || m.items[1].doneSoFar() != int(k+1)) {
					t.Errorf("round %d: %d and %d were served", k, m.items[0].doneSoFar(), m.items[1].doneSoFar())
					round.Store(5 * rounds)
					return
				}
			}
		})
	}
	both.Wait()
}
