package dgrdma

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestTransactionIDWrap checks that transaction ids pass 2^32.
func TestTransactionIDWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Entropy: func() uint32 { return 1<<32 - 5 }}})
		defer p.close()
		for i := range 20 {
			if err := p.toB.Write(context.Background(), write(64, pattern(i, 4000), 0, uint32(i+1))); err != nil {
				t.Fatal(err)
			}
			if p.memB.Load32(0) != uint32(i+1) {
				t.Fatal("done, but not written")
			}
		}
	})
}

// TestLargestTransaction checks that a transaction of 65535 messages passes, and one of 65536 does
// not (DGRDMA-003).
func TestLargestTransaction(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 90 MB; the full run has it")
	}
	synctest.Test(t, func(t *testing.T) {
		const perFrame = (1490-frame.SessionHeaderSize)&^7 - frame.MessageHeaderSize
		size := perFrame * frame.MaxMessages
		p := newPair(t, pairConfig{size: 4096 + size, link: simnet.Link{Latency: 20 * time.Microsecond, Loss: 0.01}})
		defer p.close()
		all := pattern(3, size+1)
		early := atomic.Bool{}
		stop := make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				if p.memB.Load32(0) == 1 && p.memB.Bytes()[4096+size-1] != all[size-1] {
					early.Store(true)
				}
			}
		}()
		if err := p.toB.Post(write(4096, all, 0, 1)); !errors.Is(err, ErrBounds) {
			t.Errorf("one byte too many for the memory: %v", err)
		}
		if err := p.toB.Write(context.Background(), write(4096, all[:size], 0, 1)); err != nil {
			t.Fatal(err)
		}
		close(stop)
		if string(p.memB.Bytes()[4096:]) != string(all[:size]) {
			t.Error("memory differs")
		}
		if early.Load() {
			t.Error("completed early")
		}
		tooLarge := &Transaction{Segments: []Segment{{4096, all[:size-1]}, {0, all[:8]}}, Completion: Word(0, 0)}
		if err := p.toB.Post(tooLarge); !errors.Is(err, ErrTooLarge) {
			t.Errorf("65536 messages: %v", err)
		}
	})
}
