package dgrdma

import (
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestWhereDoneRuns checks that Done runs on the endpoint's own goroutines, on one that drives it
// or waits, or in Close, as package dgrdma says under Callbacks; and never in Post, not even where
// posting and sending complete the transaction.
func TestWhereDoneRuns(t *testing.T) {
	kinds := map[string]Profile{"native": Native(), "never acknowledges": OpenCPI2()}
	modes := map[string]Config{"plain": {NoHelp: true}, "lending": {}, "manual": {Manual: true}}
	for kind, profile := range kinds {
		for mode, cfg := range modes {
			t.Run(kind+" "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg.Profile = &profile
					p := newPair(t, pairConfig{a: cfg, b: Config{Profile: &profile}, link: simnet.Link{Latency: 10 * time.Microsecond}})
					defer p.close()
					var where atomic.Value
					w := new(Waiter)
					w.Init()
					post := func(c *Conn) {
						t.Helper()
						where.Store("")
						x := write(64, pattern(1, 64), 0, 1)
						x.Done = func(*Transaction, error) {
							where.Store(whoRuns())
							w.Rouse()
						}
						if err := c.Post(x); err != nil {
							t.Fatal(err)
						}
					}
					was := func(want ...string) {
						t.Helper()
						if got := where.Load().(string); !slices.Contains(want, got) {
							t.Errorf("Done ran in %q, want one of %q", got, want)
						}
					}
					for range 20 { // for a goroutine that waits to receive
						post(p.toB)
						if !p.a.Await(t.Context(), w, func() bool { return where.Load() != "" }, nil, nil) {
							t.Fatal("never done")
						}
						was(map[string][]string{"plain": {"own"}, "lending": {"own", "Await"}, "manual": {"Await"}}[mode]...)
					}
					post(p.toB)
					for range 100 {
						p.a.Progress(0)
						time.Sleep(time.Millisecond)
					}
					was(map[string][]string{"plain": {"own"}, "lending": {"own", "Progress"}, "manual": {"Progress"}}[mode]...)

					// To a peer that is not there: only the end completes it, unless to send it
					// does.
					toAbsent := p.connect(p.a, Peer{ID: 3, Addr: simnet.Addr(3)})
					post(toAbsent)
					if profile.NoAcks && mode != "manual" {
						synctest.Wait()
						was("own")
						return
					}
					p.a.Close()
					was("Close")
				})
			})
		}
	}
}

// whoRuns says what the calling goroutine is, or is in.
func whoRuns() string {
	buf := make([]byte, 1<<16)
	stack := string(buf[:runtime.Stack(buf, false)])
	for _, at := range []struct{ call, name string }{
		{").post(", "Post"}, {").Await(", "Await"}, {").Progress(", "Progress"}, {"(*Endpoint).Close(", "Close"},
		{"created by github.com/dgrdma/dgrdma/endpoint/run.", "own"},
	} {
		if strings.Contains(stack, at.call) {
			return at.name
		}
	}
	return stack
}
