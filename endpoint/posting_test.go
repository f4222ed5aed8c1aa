package endpoint

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestWriteOfPastContext: a write whose context is done already sends nothing, is
// told the cause, and leaves the transaction free.
func TestWriteOfPastContext(t *testing.T) {
	for _, manual := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Manual: manual}, link: simnet.Link{Latency: time.Millisecond}})
			defer p.close()
			x := write(64, pattern(1, 100), 0, 1)
			if err := p.toB.Write(context.Background(), x); err != nil {
				t.Fatal(err)
			}
			why := errors.New("why")
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(why)
			before := p.toB.Stats().FramesSent
			x.CompletionValue = 2
			if err := p.toB.Write(ctx, x); err != why {
				t.Errorf("manual %v: write with a context that is done: %v, want its cause", manual, err)
			}
			time.Sleep(time.Second)
			if st := p.toB.Stats(); st.FramesSent != before || st.Queued != 0 || p.memB.Load32(0) != 1 {
				t.Errorf("manual %v: %d frames left, %d transactions wait", manual, st.FramesSent-before, st.Queued)
			}
			x.CompletionValue = 3
			if err := p.toB.Write(context.Background(), x); err != nil {
				t.Errorf("manual %v: written again: %v", manual, err)
			}
		})
	}
}
