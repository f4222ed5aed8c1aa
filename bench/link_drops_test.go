package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestServerDrops: who asks hears what the server's endpoint counts, the server's line has what came to that during its
// link, and an older server refuses.
func TestServerDrops(t *testing.T) {
	fixture.NoGoroutineLeft(t)
	there, err := link.Open("udp:127.0.0.1?sockbuf=4096", nil) // two frames do not fit
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	here := openHost(t)
	if _, err := there.Listen("something else", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ServerDrops(t.Context(), here, there.URL()); !errors.Is(err, link.ErrRefused) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := make(chan LinkRun, 1)
	s, err := ServeLinks(ctx, there, func(r LinkRun) { ran <- r })
	if err != nil {
		t.Fatal(err)
	}
	ask := func() uint64 {
		t.Helper()
		n, err := ServerDrops(t.Context(), here, there.URL())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for long := 20 * time.Millisecond; ; long *= 2 {
		before := ask()
		_, load, err := DialLink(t.Context(), here, there.URL(), LinkPlan{Buffers: 16, Size: 1 << 20}, nil)
		if err != nil {
			t.Fatal(err)
		}
		load.Start(long)
		if err := errors.Join(load.Over(t.Context()), load.Drain(t.Context()), <-s.Ended()); err != nil {
			t.Fatal(err)
		}
		after, r := ask(), <-ran
		if most := there.Endpoint().Stats().Transport.KernelDrops; after < before || after > most || r.KernelDrops > after-before {
			t.Fatalf("%d dropped, and then %d, of %d; in the link %d", before, after, most, r.KernelDrops)
		}
		if r.KernelDrops > 0 {
			return
		}
	}
}
