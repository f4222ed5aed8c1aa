package dgrdma

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// TestCloseEndsProgress checks that Close ends Progress, however long that would wait.
func TestCloseEndsProgress(t *testing.T) {
	for _, wait := range []time.Duration{transport.Forever, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Manual: true}})
			defer p.close()
			ended := make(chan error, 2)
			drive := func() {
				for {
					if _, err := p.a.Progress(wait); err != nil {
						ended <- err
						return
					}
				}
			}
			go drive()
			go drive() // waits for the receive lock
			time.Sleep(time.Second)
			began := time.Now()
			p.a.Close()
			for range 2 {
				if err := <-ended; !errors.Is(err, ErrClosed) {
					t.Errorf("Progress(%v): %v", wait, err)
				}
			}
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("Close took %v beside Progress(%v)", took, wait)
			}
		})
	}
}

// TestProgressWaits checks that Progress waits for as long as was said, also if another goroutine
// receives.
func TestProgressWaits(t *testing.T) {
	for _, manual := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Manual: manual}})
			defer p.close()
			time.Sleep(time.Second)
			for range 20 { // until all is said
				p.a.Progress(0)
				time.Sleep(time.Second)
			}
			began := time.Now()
			n, err := p.a.Progress(300 * time.Millisecond)
			if took := time.Since(began); n == 0 && (took < 300*time.Millisecond || took > 350*time.Millisecond) || err != nil {
				t.Errorf("manual %v: %d, %v after %v", manual, n, err, took)
			}
		})
	}
}
