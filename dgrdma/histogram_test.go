package dgrdma

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestHistogramBounds checks that a histogram counts each time at the place of its bounds, and sums
// the times.
func TestHistogramBounds(t *testing.T) {
	for _, c := range []struct {
		d  time.Duration
		at int
	}{
		{math.MinInt64, 0}, {-1, 0}, {0, 0}, {1, 0}, {1024, 0}, {1025, 1}, {2048, 1}, {2049, 2}, {time.Millisecond, 10},
		{HistogramBound(HistogramBounds - 1), HistogramBounds - 1}, {HistogramBound(HistogramBounds-1) + 1, HistogramBounds}, {math.MaxInt64, HistogramBounds},
	} {
		var h Histogram
		h.note(c.d, 1)
		if h.Counts[c.at] != 1 || h.Count() != 1 || h.Sum != max(c.d, 0) {
			t.Errorf("%d ns: %+v, want it at %d", c.d, h, c.at)
		}
		if h.note(1000, 3); h.Counts[0] < 3 || h.Count() != 4 || h.Sum != max(c.d, 0)+3000 {
			t.Errorf("%d ns, and 1000 three times: %+v", c.d, h)
		}
	}
}

// only fails unless n times are counted, all of them in places that times from least
// to most have.
func only(t *testing.T, name string, h *Histogram, n uint64, least, most time.Duration) {
	t.Helper()
	for i, k := range h.Counts {
		if k > 0 && (HistogramBound(i) < least || i > 0 && HistogramBound(i-1) >= most) {
			t.Errorf("%s: %d of up to %v, want %v to %v", name, k, HistogramBound(i), least, most)
		}
	}
	if h.Count() != n || h.Sum < time.Duration(n)*least || h.Sum > time.Duration(n)*most {
		t.Errorf("%s: %d in %v, want %d of %v to %v", name, h.Count(), h.Sum, n, least, most)
	}
}

// TestTimes checks that the times of a transaction, and what its frames show, are those of the
// network: over one with a round trip of 10 ms, that is what each takes. Of those in the queue, the
// wait there is left out, and what a closed connection counted stays.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 10 * time.Millisecond
		p := newPair(t, pairConfig{link: simnet.Link{Latency: trip / 2}})
		defer p.close()
		late := p.toB.profile.AckDelay + time.Millisecond
		for range 20 {
			if err := p.toB.Write(context.Background(), write(4096, pattern(1, 5000), 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		s := p.a.Stats()
		only(t, "completion", &s.Completion, s.TransactionsDone, trip, trip+late)
		if n := s.RoundTrip.Count(); n < 20 {
			t.Errorf("%d round trips of 20 transactions", n)
		}
		only(t, "round trip", &s.RoundTrip, s.RoundTrip.Count(), trip, trip+late)
		if s := p.b.Stats(); s.Completion.Count() != 0 {
			t.Errorf("who only received: %+v", s.Completion)
		}

		// More than a window of 1024 frames: the last ones wait for the first.
		over := make(chan error, 4)
		for range 4 {
			tx := write(4096, pattern(1, 900_000), 0, 1)
			tx.Done = func(_ *Transaction, err error) { over <- err }
			if err := p.toB.Post(tx); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			if err := <-over; err != nil {
				t.Fatal(err)
			}
		}
		before := p.a.Stats()
		if before.Completion.Count() != before.TransactionsDone || before.TransactionsDone != 24 {
			t.Errorf("%d times of %d transactions", before.Completion.Count(), before.TransactionsDone)
		}
		p.toB.Close()
		if after := p.a.Stats(); after.Times != before.Times {
			t.Errorf("after the connection was closed: %+v, before %+v", after.Times, before.Times)
		}
	})
}

// TestRoundTripIsOfFramesSentOnce checks that what was sent again, or was acknowledged before,
// tells no round trip.
func TestRoundTripIsOfFramesSentOnce(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	const trip = time.Millisecond
	r.posts(8)
	q := r.flying[0]
	r.now = r.now.Add(trip)
	r.acknowledges(0)
	r.batch(ack.Range{Start: q, Count: 1})
	r.posts(8)
	r.waits()
	r.now = r.now.Add(trip)
	r.acknowledges(0)
	if h := &r.c.tx.times.RoundTrip; h.Count() != 1 || h.Sum != trip {
		t.Errorf("%d round trips of %v, want one of %v", h.Count(), h.Sum, trip)
	}
	if n := r.c.tx.counters; n.TransactionsDone != 2 || n.RetransmitsTimed != 1 {
		t.Errorf("counted %+v", n)
	}
}
