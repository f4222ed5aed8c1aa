package endpoint

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// witness is memory that notes who applies what: a helper or the endpoint.
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

// helpPair is a pair whose b is helped by the test, and a writer to it.
func helpPair(t *testing.T, help HelpMode) (*pair, *witness, func()) {
	region, err := NewRegion(4096)
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{Region: region}
	p := newPair(t, pairConfig{size: 4096, a: Config{Help: HelpNever}, b: Config{Help: help, Memory: w}, link: simnet.Link{Latency: 10 * time.Microsecond}})
	return p, w, func() {
		t.Helper()
		if err := p.toB.Write(context.Background(), &Transaction{CompletionAddr: 8, CompletionValue: 1}); err != nil {
			t.Fatal(err)
		}
	}
}

// engage helps b until the turn to receive was borrowed once.
func (p *pair) engage(t *testing.T, w *witness, write func()) {
	t.Helper()
	was := w.all()
	p.b.Help(func() bool { return w.all() > was }) // asks
	write()
	select {
	case <-p.b.HelpWanted():
	case <-time.After(time.Second):
		t.Fatal("help was asked for and is not wanted")
	}
}

// engagedPair is a helpPair whose b is helped already.
func engagedPair(t *testing.T) (*pair, *witness, func()) {
	t.Helper()
	p, w, write := helpPair(t, HelpAlways)
	write()
	p.engage(t, w, write)
	return p, w, write
}

// TestHelp: who waits receives and acknowledges itself, and no later than a
// moment after it left, the endpoint does again.
func TestHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w, write := engagedPair(t)
		defer p.close()
		own := w.byOwn.Load()
		written := make(chan struct{})
		go func() {
			for range 20 {
				write()
			}
			close(written)
		}()
		w.helping.Store(true)
		p.b.Help(func() bool { return w.byHelper.Load() == 20 })
		w.helping.Store(false)
		<-written
		if w.byOwn.Load() != own || w.byHelper.Load() != 20 {
			t.Fatalf("the helper applied %d, the endpoint %d; want 20 and 0", w.byHelper.Load(), w.byOwn.Load()-own)
		}
		began := time.Now()
		write() // nobody helps
		if took := time.Since(began); took > 2*idleTurn+time.Millisecond || w.byOwn.Load() != own+1 {
			t.Errorf("without help again: %v, %d applied", took, w.byOwn.Load()-own)
		}
	})
}

// TestHelpEnds: the endpoint receives at once when the helper knows of others who
// wait, and when nothing comes while it helps.
func TestHelpEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w, write := engagedPair(t)
		defer p.close()
		p.b.Help(func() bool { return true })
		p.b.HelpEnds()
		began := time.Now()
		write()
		if took := time.Since(began); took >= idleTurn/2 {
			t.Errorf("after HelpEnds: %v", took)
		}
		p.engage(t, w, write)
		began = time.Now()
		p.b.Help(func() bool { return false })
		if took := time.Since(began); took != helpPatience {
			t.Errorf("a helper without anything to do stayed %v, want %v", took, helpPatience)
		}
		began = time.Now()
		write()
		if took := time.Since(began); took >= idleTurn/2 {
			t.Errorf("after a helper in vain: %v", took)
		}
	})
}

// TestHelpRests: who stays away for long each time is not a help, and is told so by
// not being wanted for a while.
func TestHelpRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, w, write := engagedPair(t)
		defer p.close()
		for range mostLuck {
			p.b.Help(func() bool { return true })
			time.Sleep(longAbsence)
		}
		if left := p.b.receiving.pauses.Load(); left <= 0 {
			t.Fatal("a helper that is always away is still wanted")
		}
		for p.b.receiving.pauses.Load() > 0 {
			p.b.Help(func() bool { t.Error("helped in a pause"); return true })
		}
		time.Sleep(2 * idleTurn)
		p.engage(t, w, write)
	})
}

// TestHelpNever: Help returns at once.
func TestHelpNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []Config{{Help: HelpNever}, {Help: HelpAlways, BusyPoll: true}, {Help: HelpAlways, Manual: true}} {
			if c.helpful() {
				t.Errorf("help=%v busypoll=%v manual=%v is helpful", c.Help, c.BusyPoll, c.Manual)
			}
		}
		p, _, write := helpPair(t, HelpNever)
		defer p.close()
		write()
		p.b.Help(func() bool { t.Error("helped"); return true })
		p.b.HelpEnds()
		write()
	})
}

// TestCloseWhileHelped: Close waits for the helper, who returns.
func TestCloseWhileHelped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, _ := engagedPair(t)
		var left atomic.Bool
		go func() {
			p.b.Help(func() bool { return false })
			left.Store(true)
		}()
		synctest.Wait()
		p.b.Close()
		synctest.Wait()
		if !left.Load() {
			t.Error("a helper is left behind")
		}
		p.b.Help(func() bool { t.Error("helped after Close"); return true })
		p.close()
	})
}

// TestCopied: from Copied on the bytes may be changed, whatever is sent again.
func TestCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100_000
		p := newPair(t, pairConfig{size: 1 << 20, link: simnet.Link{Loss: 0.2, Latency: time.Millisecond}})
		defer p.close()
		for _, n := range []int{0, 1, 1000, size} {
			data := pattern(n, n)
			want := bytes.Clone(data)
			copies, done := 0, make(chan error, 1)
			x := &Transaction{
				Segments: []Segment{{0, data[:n/2]}, {uint32(n / 2), data[n/2:]}}, CompletionAddr: 1<<20 - 4, CompletionValue: 7,
				Copied: func(*Transaction) {
					copies++
					clear(data)
				},
			}
			if err := p.toB.PostWith(x, func(_ *Transaction, err error) {
				if copies != 1 {
					t.Errorf("%d bytes: Copied was called %d times before Done", n, copies)
				}
				done <- err
			}); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(p.memB.Bytes()[:n], want) {
				t.Errorf("%d bytes: not those that were posted", n)
			}
		}
	})
}

// TestHelpIsBounded: a helper whose caller waits for something else, too, sees it
// though datagrams that are none of its business come all the time; and returns
// after a while if it was not told of that (attack A1, SECURITY.md).
func TestHelpIsBounded(t *testing.T) {
	const each, limit = time.Millisecond, 5 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		p, w, write := engagedPair(t)
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
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		began := time.Now()
		p.b.Help(func() bool { return ctx.Err() != nil })
		if took := time.Since(began); took < limit || took > limit+each {
			t.Errorf("a helper saw the end of %v after %v", limit, took)
		}
		began = time.Now()
		p.b.Help(func() bool { return time.Since(began) > time.Minute })
		if took := time.Since(began); took < helpMost || took > helpMost+each {
			t.Errorf("a helper that waits for ever stayed %v, want %v", took, helpMost)
		}
		own := w.byOwn.Load()
		began = time.Now()
		write()
		if took := time.Since(began); took >= idleTurn/2 || w.byOwn.Load() != own+1 {
			t.Errorf("after it left, the endpoint received after %v", took)
		}
	})
}
