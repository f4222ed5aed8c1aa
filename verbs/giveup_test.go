package verbs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/mpa"
)

// TestSilence: a peer is given up when it has done nothing for the time that it has, of what was asked of it or sent to it, and while this
// side could see that.
func TestSilence(t *testing.T) {
	const giveUp = 8 * time.Second // a look each second
	traffic := func(came, taken uint64, untaken int) mpa.Traffic {
		return mpa.Traffic{Came: came, Taken: taken, Untaken: untaken}
	}
	for _, c := range []struct {
		name string
		each time.Duration
		sees func(n int) sight
		over int // with which look; 0: not within a hundred
	}{
		{"nothing to do", time.Second, func(int) sight { return sight{} }, 0},
		{"does not answer", time.Second, func(int) sight { return sight{asks: 3} }, 1 + 8},
		{"does not take", time.Second, func(int) sight { return sight{Traffic: traffic(5, 7, 100)} }, 1 + 8},
		{"begins to be asked", time.Second, func(n int) sight { return sight{asks: min(n/10, 1)} }, 10 + 8},
		{"is heard, but does not answer", time.Second, func(n int) sight { return sight{Traffic: traffic(uint64(n), 0, 0), asks: 1} }, 0},
		{"takes slowly what is before a request", time.Second, func(n int) sight { return sight{Traffic: traffic(0, uint64(n), 1000-n), asks: 1} }, 0},
		{"its machine takes at once what its program does not", time.Second, func(n int) sight { return sight{Traffic: traffic(0, uint64(n), 0), asks: 1} }, 1 + 8},
		{"was heard once", time.Second, func(n int) sight { return sight{Traffic: traffic(uint64(min(n, 20)), 0, 0), asks: 1} }, 20 + 8},
		{"is given up by who is seldom awake", time.Minute, func(int) sight { return sight{asks: 1} }, 1 + 4},
	} {
		now := time.Unix(1000, 0)
		s := newSilence(giveUp, now)
		if s.every != time.Second {
			t.Fatalf("it looks every %v", s.every)
		}
		over := 0
		for n := 1; n <= 100 && over == 0; n++ {
			if now = now.Add(c.each); s.look(now, c.sees(n)) {
				over = n
			}
		}
		if over != c.over {
			t.Errorf("%s: over with look %d, not %d", c.name, over, c.over)
		}
	}
	// Who was stopped, alone, looks once more before it gives the peer up.
	now := time.Unix(1000, 0)
	s := newSilence(giveUp, now)
	for range 8 {
		now = now.Add(time.Second)
		s.look(now, sight{asks: 1})
	}
	if now = now.Add(time.Hour); s.look(now, sight{asks: 1}) {
		t.Error("over as soon as this side goes on")
	}
	if now = now.Add(time.Second); !s.look(now, sight{asks: 1}) {
		t.Error("not over a look later")
	}
	s.long, s.seen = 8*time.Second, sight{Traffic: traffic(0, 0, 12), asks: 3}
	const says = "the peer is silent: nothing has come from it for 8s; requests that it has not answered: 3, bytes that it does not take: 12; is its program stopped, or its machine or the network down?"
	if err := s.why(); !errors.Is(err, ErrSilent) || !strings.HasPrefix(err.Error(), says) {
		t.Error(err)
	}
}
