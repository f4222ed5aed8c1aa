package dgrdma

import (
	"bytes"
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// witness is memory that notes which goroutine applies what: one that waits, or the endpoint's.
type witness struct {
	*Region
	helping  atomic.Bool
	byHelper atomic.Int32
	byOwn    atomic.Int32
}

func (w *witness) Complete(from frame.EndpointID, m *frame.Message) {
	if w.helping.Load() {
		w.byHelper.Add(1)
	} else {
		w.byOwn.Add(1)
	}
	w.Region.Complete(from, m)
}

func (w *witness) all() int32 { return w.byHelper.Load() + w.byOwn.Load() }

// helpPair is a pair for whose b the test's goroutines wait and receive, and a writer to it.
func helpPair(t *testing.T, noHelp bool) (*pair, *witness, func()) {
	region, err := NewRegion(4096)
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{Region: region}
	p := newPair(t, pairConfig{size: 4096, a: Config{NoHelp: true}, b: Config{NoHelp: noHelp, Memory: w}, link: simnet.Link{Latency: 10 * time.Microsecond}})
	return p, w, func() {
		t.Helper()
		if err := p.toB.Write(context.Background(), &Transaction{Completion: Word(8, 1)}); err != nil {
			t.Fatal(err)
		}
	}
}

// await has the calling goroutine wait for something at b, and says whether it came.
func (p *pair) await(ctx context.Context, ready func() bool) bool {
	var w Waiter
	w.Init()
	return p.b.Await(ctx, &w, ready, nil, nil)
}

// TestWaiterReceives checks that a goroutine that waits receives and acknowledges itself, where
// that is welcome, and that the endpoint does again no later than a moment after it left.
func TestWaiterReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w, write := helpPair(t, false)
		defer p.close()
		write()
		go func() {
			for w.all() < 2+20 {
				write()
			}
		}()
		// The receive lock is asked for, and handed over after the next batch.
		if !p.await(t.Context(), func() bool { return w.all() == 2 }) {
			t.Fatal("nothing came")
		}
		w.helping.Store(true)
		if !p.await(t.Context(), func() bool { return w.all() == 2+20 }) {
			t.Fatal("nothing came")
		}
		w.helping.Store(false)
		if w.byHelper.Load() < 19 {
			t.Errorf("the helper applied %d, the endpoint %d", w.byHelper.Load(), w.byOwn.Load())
		}
		own := w.byOwn.Load()
		began := time.Now()
		// No goroutine waits. Of three frames nothing is held back.
		three := &Transaction{Segments: []Segment{{512, pattern(0, 3000)}}, Completion: Word(8, 1)}
		if err := p.toB.Write(t.Context(), three); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took >= ack.Granularity || w.byOwn.Load() != own+1 {
			t.Errorf("without help again: %v, %d applied", took, w.byOwn.Load()-own)
		}
		if s := p.a.Stats(); s.RetransmitsFast+s.RetransmitsTimed > 0 {
			t.Errorf("%d and %d frames were sent again, though none were lost", s.RetransmitsFast, s.RetransmitsTimed)
		}
	})
}

// TestCallerPollingPolicy checks that no goroutine but the endpoint's receives where no other is to, however
// many processors there are.
func TestCallerPollingPolicy(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 2, 3, 8} {
		runtime.GOMAXPROCS(processors)
		for alone := range 8 {
			c := Config{NoHelp: alone&1 != 0, BusyPoll: alone&2 != 0, Manual: alone&4 != 0}
			if got := c.callerPolling(); got != (alone == 0) {
				t.Errorf("%d processors, nohelp=%v busypoll=%v manual=%v: helpful is %v", processors, c.NoHelp, c.BusyPoll, c.Manual, got)
			}
		}
		if n := runtime.GOMAXPROCS(0); n != processors {
			t.Errorf("%d processors, %d before", n, processors)
		}
	}
	few, many := (&Endpoint{callerPolling: true}).Ahead(), (&Endpoint{}).Ahead()
	if few < 1 || many <= few {
		t.Errorf("%d bytes ahead where who posts sends, %d elsewhere", few, many)
	}
	synctest.Test(t, func(t *testing.T) {
		p, w, write := helpPair(t, true)
		defer p.close()
		w.helping.Store(true)
		go func() {
			for range 10 {
				write()
			}
		}()
		// No goroutine rouses the one that waits: it would see what came only while it receives.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		looks := 0
		p.await(ctx, func() bool { looks++; return false })
		if looks > 4 || w.all() != 10 {
			t.Errorf("%d looks, %d applied", looks, w.all())
		}
	})
}

// TestWaiterForAWordReceives checks that a goroutine that waits for a word of the memory receives
// as well.
func TestWaiterForAWordReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w, write := helpPair(t, false)
		defer p.close()
		go func() {
			for range 10 {
				write()
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		looks := 0
		w.Wait(ctx, 16, func(uint32) bool { looks++; return false })
		if looks < 5 || w.all() != 10 {
			t.Errorf("%d looks, %d applied", looks, w.all())
		}
	})
}

// TestCloseWhileWaitedFor checks that Close waits for the goroutine that waits and receives, and
// that this one returns.
func TestCloseWhileWaitedFor(t *testing.T) {
	for _, cfg := range []Config{{}, {NoHelp: true}, {Manual: true}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{b: cfg})
			defer p.close()
			var left atomic.Bool
			go func() {
				p.await(context.Background(), never)
				left.Store(true)
			}()
			time.Sleep(time.Second)
			p.b.Close()
			synctest.Wait()
			if !left.Load() {
				t.Errorf("%+v: who waited is left behind", cfg)
			}
			if p.await(context.Background(), never) {
				t.Error("what never is so was seen after Close")
			}
		})
	}
}

// TestCopied checks that the bytes may be changed from Copied on, whatever is sent again; and that
// Packed says no more than that they were sent.
func TestCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100_000
		p := newPair(t, pairConfig{size: 1 << 20, link: simnet.Link{Loss: 0.2, Latency: time.Millisecond}})
		defer p.close()
		for _, n := range []int{0, 1, 1000, size} {
			for _, kept := range []bool{true, false} {
				data := pattern(n, n)
				want := bytes.Clone(data)
				calls, sent, done := 0, uint64(0), make(chan error, 1)
				x := &Transaction{
					Segments: []Segment{{0, data[:n/2]}, {uint32(n / 2), data[n/2:]}}, Completion: Word(1<<20-4, 7),
				}
				called := func(x *Transaction) {
					calls++
					if sent = x.unpacked(); kept {
						clear(data)
					}
				}
				if kept {
					x.Copied = called
				} else {
					x.Packed = called
				}
				if err := p.toB.PostWith(x, func(_ *Transaction, err error) {
					if calls != 1 || sent != 0 {
						t.Errorf("%d bytes, kept=%v: called %d times before Done, with %d bytes in no frame", n, kept, calls, sent)
					}
					done <- err
				}); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(p.memB.Bytes()[:n], want) {
					t.Errorf("%d bytes, kept=%v: not those that were posted", n, kept)
				}
			}
		}
	})
}

// unpacked returns how many bytes of a transaction are in no frame yet.
func (t *Transaction) unpacked() (n uint64) {
	for i := t.segment; int(i) < len(t.Segments); i++ {
		n += uint64(len(t.Segments[i].Bytes))
	}
	return n - uint64(t.offset)
}

// TestWaitIsBounded checks that a goroutine that waits sees the end of its context though datagrams
// that are none of its business come all the time (attack A1, SECURITY.md).
func TestWaitIsBounded(t *testing.T) {
	const each, limit = time.Millisecond, 5 * time.Millisecond
	for _, cfg := range []Config{{}, {Manual: true}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{b: cfg})
			defer p.close()
			junk := p.net.Attach(simnet.Addr(9), simnet.Config{})
			to, stop := addrB, make(chan struct{})
			defer close(stop)
			go func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(each):
						junk.Send([]transport.Outgoing{{To: &to, Buf: make([]byte, 40)}})
					}
				}
			}()
			for range 20 { // the receive lock is handed over at some time
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				began := time.Now()
				p.await(ctx, never)
				if took := time.Since(began); took < limit || took > limit+each {
					t.Errorf("%+v: the end of %v was seen after %v", cfg, limit, took)
				}
				cancel()
			}
		})
	}
}
