package dgrdma

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// errNotYet stands for the result of a Wait that has not returned.
var errNotYet = errors.New("still waiting")

// TestWaitersLeave checks that a goroutine that does not wait any more is forgotten, and that one
// that still does is woken.
func TestWaitersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := NewRegion(64)
		if err != nil {
			t.Fatal(err)
		}
		const waiters = 4
		var ends [waiters]context.CancelFunc
		var got [waiters]error
		for i := range waiters {
			var ctx context.Context
			ctx, ends[i] = context.WithCancel(t.Context())
			go func() { got[i] = r.WaitFor(ctx, 8, 1) }()
			synctest.Wait()
		}
		for _, i := range []int{0, 2} {
			ends[i]()
			if synctest.Wait(); !errors.Is(got[i], context.Canceled) {
				t.Errorf("waiter %d: %v", i, got[i])
			}
		}
		got[1], got[3] = errNotYet, errNotYet
		r.Store32(8, 1)
		synctest.Wait()
		if got[1] != nil || got[3] != nil {
			t.Errorf("those that still waited: %v, %v", got[1], got[3])
		}
		if n := r.watch.n.Load(); n != 0 || len(r.watch.list) != 0 {
			t.Errorf("%d wait, %d are in the list, though nobody does", n, len(r.watch.list))
		}
		ends[1]()
		ends[3]()
	})
}

// TestWordOfSeveralEndpoints checks that a goroutine that waits for a word that several endpoints
// may write drives those that no other drives, and sees it at once.
func TestWordOfSeveralEndpoints(t *testing.T) {
	for _, manual := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		synctest.Test(t, func(t *testing.T) {
			const size, latency = 1 << 16, time.Millisecond
			region, err := NewRegion(size)
			if err != nil {
				t.Fatal(err)
			}
			p := newPair(t, pairConfig{
				size: size, link: simnet.Link{Latency: latency},
				a: Config{Manual: manual[0], Memory: region}, b: Config{Manual: manual[1], Memory: region},
			})
			defer p.close()
			for i, c := range []*Conn{p.toA, p.toB} {
				if err := c.Post(write(64, pattern(1, 5000), 0, uint32(7+i))); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if err := region.WaitFor(t.Context(), 0, uint32(7+i)); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 10*latency+helloFirst {
					t.Errorf("manual %v: the word was seen after %v", manual, took)
				}
			}
		})
	}
}

// TestWordOutlivesEndpoints checks that a goroutine that waits for a word waits on when an endpoint
// fails, or is closed, without looking all the time.
func TestWordOutlivesEndpoints(t *testing.T) {
	for _, fails := range []bool{true, false} {
		testWordOutlives(t, fails)
	}
}

func testWordOutlives(t *testing.T, fails bool) {
	t.Helper()
	f := newFeed(t, Config{})
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: new(OpenCPI(false))})
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	wait := func(ctx context.Context) error {
		looks = 0
		word, err := f.mem.Wait(ctx, 8, func(word uint32) bool { looks++; return word == 1 })
		if (word == 1) != (err == nil) || word > 1 {
			t.Errorf("word %d with %v", word, err)
		}
		return err
	}
	brief := func(what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) || looks > 10 {
			t.Errorf("%s: %v after %d looks", what, err, looks)
		}
	}
	if fails {
		f.breaks = errWire
		c.Post(write(0, nil, 0, 1))
		f.e.Progress(0)
		brief("failed")
	}
	go func() {
		time.Sleep(time.Millisecond)
		f.e.Close()
		time.Sleep(time.Millisecond)
		f.mem.Store32(8, 1)
	}()
	if err := wait(t.Context()); err != nil || f.mem.Load32(8) != 1 {
		t.Errorf("closed, and then written: %v, word %d", err, f.mem.Load32(8))
	}
	f.mem.Store32(8, 0)
	brief("closed")
}

// TestPolledEndpointsAreKnownOnce checks that no endpoint is among the polled ones twice, or after its end.
func TestPolledEndpointsAreKnownOnce(t *testing.T) {
	f := newFeed(t, Config{})
	d := &f.mem.polled
	d.add(f.e)
	if all := d.all(); !slices.Equal(all, []*Endpoint{f.e}) {
		t.Errorf("%d polled, want the endpoint", len(all))
	}
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA})
	if err != nil {
		t.Fatal(err)
	}
	var other polledEndpoints
	other.addOf(c)
	if all := other.all(); !slices.Equal(all, []*Endpoint{f.e}) {
		t.Errorf("%d polled, want the connection's endpoint", len(all))
	}
	f.e.Close()
	if n := len(d.all()); n != 0 {
		t.Errorf("%d polled after Close", n)
	}
}

// TestWriteWithoutAnswer checks that a goroutine that waits in Write for an endpoint that ended
// is not told that it was done.
func TestWriteWithoutAnswer(t *testing.T) {
	w := newWriter()
	if err := w.result(); !errors.Is(err, ErrClosed) {
		t.Errorf("not answered: %v", err)
	}
	w.answer(nil)
	if err := w.result(); err != nil {
		t.Errorf("answered: %v", err)
	}
	if err := w.result(); !errors.Is(err, ErrClosed) {
		t.Errorf("not answered again: %v", err)
	}
}

// holder is memory that embeds a region.
type holder struct{ *Region }

// TestRegionInsideAMemory checks that a goroutine that waits for a word of a region drives the endpoint whose memory embeds it,
// until that is closed.
func TestRegionInsideAMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		region, err := NewRegion(1 << 16)
		if err != nil {
			t.Fatal(err)
		}
		p := newPair(t, pairConfig{size: 1 << 16, b: Config{Manual: true, Memory: holder{region}}})
		defer p.close()
		if err := p.toB.Post(write(64, pattern(1, 5000), 0, 7)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := region.WaitFor(ctx, 0, 7); err != nil {
			t.Error(err)
		}
		p.b.Close()
		if n := len(region.polled.all()); n != 0 {
			t.Errorf("%d endpoints are left that a wait would drive", n)
		}
	})
}

// TestWaitersOfWords checks that a goroutine that waits for a word is not woken when another one is
// written.
func TestWaitersOfWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := NewRegion(64)
		if err != nil {
			t.Fatal(err)
		}
		looks, got := 0, errNotYet
		go func() {
			_, got = r.Wait(t.Context(), 8, func(v uint32) bool { looks++; return v == 9 })
		}()
		synctest.Wait()
		before := looks
		for _, other := range []uint32{0, 4, 12, 60} {
			r.Store32(other, 9)
			synctest.Wait()
		}
		if looks != before {
			t.Errorf("looked %d times at a word that was not written", looks-before)
		}
		r.Store32(8, 9)
		if synctest.Wait(); got != nil {
			t.Errorf("not woken: %v", got)
		}
	})
}
