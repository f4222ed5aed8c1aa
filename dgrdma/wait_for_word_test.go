package dgrdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestWatch checks that a goroutine that waits for a word is woken by completions, at any
// alignment, and by data of four bytes (quirk F15).
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		for i, tx := range []*Transaction{
			write(64, pattern(1, 100), 256, 0x01020304),
			write(64, pattern(1, 100), 261, 0x01020304),
			{Segments: []Segment{{264, []byte{4, 3, 2, 1}}}},
		} {
			addr := []uint32{256, 261, 264}[i]
			got := make(chan error, 1)
			go func() { got <- p.memB.WaitFor(context.Background(), addr, 0x01020304) }()
			synctest.Wait()
			if err := p.toB.Write(context.Background(), tx); err != nil {
				t.Fatal(err)
			}
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := p.memB.WaitFor(ctx, 512, 9); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a word nobody writes: %v", err)
		}
		if err := p.memB.WaitFor(ctx, uint32(p.memB.Size()-3), 9); !errors.Is(err, ErrBounds) {
			t.Errorf("a word outside: %v", err)
		}
		if err := p.memB.WaitFor(ctx, 256, 0x01020304); err != nil {
			t.Errorf("a word that is there, with a context that is done: %v", err)
		}
	})
}
