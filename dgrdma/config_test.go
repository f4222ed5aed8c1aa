package dgrdma

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dgrdma/dgrdma/transport"
)

// TestEntropyOneAtATime checks that connections that draw at the same time do so one after the other: so a
// generator that serves one goroutine does.
func TestEntropyOneAtATime(t *testing.T) {
	var drawing, together atomic.Int32
	cfg, err := (&Config{ID: 1, Entropy: func() uint32 {
		if drawing.Add(1) > 1 {
			together.Add(1)
		}
		defer drawing.Add(-1)
		runtime.Gosched()
		return 7
	}}).withDefaults(transport.Caps{MTU: 1490})
	if err != nil {
		t.Fatal(err)
	}
	var drawers sync.WaitGroup
	for range 8 {
		drawers.Go(func() {
			for range 1000 {
				cfg.Entropy()
			}
		})
	}
	drawers.Wait()
	if together.Load() != 0 {
		t.Errorf("%d draws began while another one was under way", together.Load())
	}
}
