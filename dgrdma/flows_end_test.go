package dgrdma

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// end waits until all is over, on a network without faults from then on.
func (w *flowsWorld) end() {
	w.setLink(simnet.Link{Rate: 1e9, Latency: 50 * time.Microsecond})
	for range 60 {
		time.Sleep(time.Second)
		if w.sides[0].quiet() && w.sides[1].quiet() {
			break
		}
	}
	w.shutdown()
	w.check()
	for _, s := range w.sides {
		if !s.quiet() {
			w.errorf("side %d is not at rest: %+v", s.i, s.conn.Stats())
		}
		s.e.Close()
	}
	w.writers.Wait()
	w.net.Close()
}

// shutdown has one side send more and shut down: all of it arrives.
func (w *flowsWorld) shutdown() {
	s := w.sides[0]
	if !w.calm {
		return
	}
	for range 10 {
		f := s.out[w.r.IntN(len(s.out))]
		w.post(f, w.pack(f))
		if w.profile.Session && w.r.IntN(2) == 0 {
			w.mail(s)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.e.Shutdown(ctx); err != nil {
		w.errorf("shutdown: %v", err)
	}
}

func (s *flowsSide) quiet() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return !s.conn.tx.pending() && s.conn.tx.unacked.InFlight() == 0
}

func (w *flowsWorld) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := 0
	for _, p := range w.all {
		switch {
		case p.answers != 1:
			w.errorf("%v was answered %d times", p, p.answers)
		case p.err == nil && !p.cancelled && !p.complete:
			w.errorf("%v is done and did not arrive", p)
		case p.err == nil && !p.cancelled:
			if done++; !p.box.gone && !p.whole() {
				w.errorf("%v was there and is not any more", p)
			}
		case p.err != nil && w.calm && !errors.Is(p.err, context.DeadlineExceeded):
			w.errorf("%v: %v", p, p.err)
		}
	}
	for i, l := range w.mails {
		if l.answers != 1 || l.err == nil && l.came != 1 || l.came > 1 {
			w.errorf("letter %d was answered %d times (%v), and came %d times", i+1, l.answers, l.err, l.came)
		}
	}
	if done < len(w.all)/4 && w.calm {
		w.errorf("only %d of %d arrived", done, len(w.all))
	}
}

func runFlowsWorld(t *testing.T, seed uint64, p Profile, calm bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newFlowsWorld(t, seed, p, calm)
		for range 20 + w.r.IntN(100) {
			w.act()
			time.Sleep(time.Duration(w.r.IntN(400)) * time.Microsecond)
		}
		w.end()
	})
}

// TestFlowsWorlds checks that what is done arrived whole and once, and nothing is done twice or
// never, comes early, or in another order than promised, whatever flows, fences, letters, contexts,
// resets and restarts do to one another.
func TestFlowsWorlds(t *testing.T) {
	worlds := 150
	if testing.Short() {
		worlds = fewer(25, 10)
	}
	first := rand.Uint64()
	for i := range uint64(worlds) {
		runFlowsWorld(t, first+i, Native(), i%3 == 0)
	}
}

// TestFlowsOfForeignPeers checks that the same holds with peers that take one transaction after the
// other.
func TestFlowsOfForeignPeers(t *testing.T) {
	worlds := 60
	if testing.Short() {
		worlds = 10
	}
	first := rand.Uint64()
	for i := range uint64(worlds) {
		p := [...]Profile{OpenCPI(false), Legacy(false), OpenCPI(true)}[i%3]
		runFlowsWorld(t, first+i, p, true)
	}
}
