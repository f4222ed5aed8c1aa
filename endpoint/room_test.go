package endpoint

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestRoomOfWhoGaveUp: a place in the queue that somebody was told of who did not wait any
// more is another one's.
func TestRoomOfWhoGaveUp(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Queue: 1}, link: simnet.Link{Latency: 10 * time.Millisecond}})
			defer p.close()
			p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1))
			began := time.Now()
			p.toB.Write(t.Context(), write(64, []byte("data"), 0, 1))
			took := time.Since(began)
			if err := p.toB.Post(write(64, []byte("data"), 0, 1)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), took)
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() { p.toB.Write(ctx, write(64, []byte("data"), 0, 2)) })
			time.Sleep(time.Microsecond)
			wg.Go(func() {
				long, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := p.toB.Write(long, write(64, []byte("data"), 0, 3)); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
		})
	}
}
