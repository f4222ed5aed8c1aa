package dgrdma

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestPeerDownFailsEveryPostOnce checks that a peer that goes down fails every post once
// (DGRDMA-030).
func TestPeerDownFailsEveryPostOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, pattern(1, 100), 0, 1)); err != nil {
			t.Fatal(err)
		}
		p.net.Link(addrA, addrB, simnet.Link{Down: true})
		var calls atomic.Int32
		start := time.Now()
		for range 50 {
			tx := write(64, pattern(1, 50_000), 0, 1)
			tx.Done = func(_ *Transaction, err error) {
				calls.Add(1)
				var pe *PeerError
				if !errors.Is(err, ErrPeerDown) || !errors.As(err, &pe) || pe.ID != 2 || !pe.Timeout() {
					t.Errorf("done with %v", err)
				}
			}
			if err := p.toB.Post(tx); err != nil {
				t.Fatal(err)
			}
		}
		<-p.toB.Done()
		synctest.Wait()
		if d := time.Since(start); d < 9*time.Second || d > 12*time.Second {
			t.Errorf("given up after %v, want about 10s", d)
		}
		if calls.Load() != 50 {
			t.Errorf("%d of 50 posts answered", calls.Load())
		}
		if err := p.toB.Post(write(0, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
			t.Errorf("post to a dead peer: %v", err)
		}
		if p.count(PeerDown, RefusedNone) != 1 {
			t.Error("no event, or several")
		}
		// The link comes back: after Reset everything works again.
		p.net.Link(addrA, addrB, simnet.Link{Latency: time.Millisecond})
		if err := p.toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		if err := p.toB.Write(context.Background(), write(64, pattern(9, 5000), 0, 77)); err != nil {
			t.Fatal(err)
		}
		if p.memB.Load32(0) != 77 {
			t.Error("nothing arrived after Reset")
		}
	})
}

// TestBlackoutShorterThanGiveUpIsSurvived checks that what is written in both directions during a
// blackout shorter than GiveUp arrives after it.
func TestBlackoutShorterThanGiveUpIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, pattern(1, 100), 0, 1)); err != nil {
			t.Fatal(err)
		}
		for _, to := range []transport.Addr{addrA, addrB} {
			from := addrA
			if to == addrA {
				from = addrB
			}
			p.net.Link(from, to, simnet.Link{Down: true})
		}
		time.AfterFunc(9*time.Second, func() {
			p.net.Link(addrA, addrB, simnet.Link{})
			p.net.Link(addrB, addrA, simnet.Link{})
		})
		var wg sync.WaitGroup
		for _, c := range []*Conn{p.toA, p.toB} {
			wg.Go(func() {
				if err := c.Write(context.Background(), write(64, pattern(2, 500_000), 0, 2)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// kill ends an endpoint as the end of its process does: no peer hears of it.
func kill(e *Endpoint) {
	e.transport.Close()
	e.Close()
}

// restartB replaces endpoint b, which is killed, by a new one at the same address.
func (p *pair) restartB(cfg Config) {
	p.t.Helper()
	kill(p.b)
	p.memB = p.region(int(p.memB.Size()))
	cfg.ID, cfg.Memory = 2, p.memB
	if cfg.OnEvent == nil {
		cfg.OnEvent = p.note
	}
	p.b = p.open(addrB, &cfg)
	p.toA = p.connect(p.b, Peer{ID: 1, Addr: addrA, Size: p.memA.Size()})
}

// TestPureReceiverRestartMidTransaction checks that a transaction is done only if one life of the
// receiver holds all of it (DGRDMA-041). The receiver dies after k of 10 frames and comes back
// empty.
func TestPureReceiverRestartMidTransaction(t *testing.T) {
	for k := range 12 {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{})
			defer p.close()
			if err := p.toB.Write(context.Background(), write(64, pattern(1, 100), 0, 1)); err != nil {
				t.Fatal(err)
			}
			// Only the first k frames of the transaction arrive.
			p.net.Link(addrA, addrB, simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
				if i >= k {
					return simnet.Drop()
				}
				return simnet.Deliver()
			}})
			old := p.memB
			result := make(chan error, 1)
			go func() { result <- p.toB.Write(context.Background(), write(64, pattern(2, 14_000), 0, 2)) }()
			time.Sleep(3 * time.Millisecond)
			p.net.Link(addrA, addrB, simnet.Link{})
			p.restartB(Config{})
			err := <-result
			if err == nil && old.Load32(0) != 2 && p.memB.Load32(0) != 2 {
				t.Errorf("k=%d: done, but no life of the receiver has it", k)
			}
			if err != nil && !errors.Is(err, ErrPeerRestarted) {
				t.Errorf("k=%d: %v", k, err)
			}
			// If nothing was pending, the restart is noticed only now.
			err = p.toB.Write(context.Background(), write(64, pattern(3, 14_000), 0, 3))
			if errors.Is(err, ErrPeerRestarted) {
				err = p.toB.Write(context.Background(), write(64, pattern(3, 14_000), 0, 3))
			}
			if err != nil {
				t.Errorf("k=%d: after the restart: %v", k, err)
			}
			if p.memB.Load32(0) != 3 {
				t.Errorf("k=%d: the new life did not get it", k)
			}
		})
	}
}

// TestRestartAtEveryWindowPosition checks that nothing of the new life is taken for an old
// duplicate, wherever the old life's ids were.
func TestRestartAtEveryWindowPosition(t *testing.T) {
	for _, first := range []frame.Seq{1, 500, 16383, 16384, 20000, 32767, 32768, 40000, 65000, 65535} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{b: Config{FirstFrame: first}})
			defer p.close()
			for i := range 3 {
				if err := p.toA.Write(context.Background(), write(64, pattern(i, 5000), 0, uint32(i+1))); err != nil {
					t.Fatal(err)
				}
			}
			p.restartB(Config{FirstFrame: 1})
			for i := range 20 {
				if err := p.toA.Write(context.Background(), write(64, pattern(i, 3000), 0, uint32(100+i))); err != nil {
					t.Fatal(first, err)
				}
				if p.memA.Load32(0) != uint32(100+i) {
					t.Fatalf("first %d: done, but not written", first)
				}
			}
			if p.count(PeerRestarted, RefusedNone) != 1 {
				t.Errorf("first %d: the restart was not reported once", first)
			}
		})
	}
}

// TestLateFramesOfAnOldLife checks that copies of everything the old life sent that arrive after
// the restart change nothing.
func TestLateFramesOfAnOldLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		p.net.Link(addrB, addrA, simnet.Link{HoldBack: 1, HoldFor: time.Second})
		for i := range 20 {
			if err := p.toA.Write(context.Background(), write(64, pattern(i, 5000), 0, uint32(i+1))); err != nil {
				t.Fatal(err)
			}
		}
		p.net.Link(addrB, addrA, simnet.Link{})
		p.restartB(Config{})
		for i := range 20 {
			if err := p.toA.Write(context.Background(), write(64, pattern(i, 5000), 0, uint32(1000+i))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if p.memA.Load32(0) != 1019 {
			t.Error("an old life wrote")
		}
		if n := p.count(PeerRestarted, RefusedNone); n != 1 {
			t.Errorf("%d restarts reported, want 1", n)
		}
	})
}

// TestKeepOldLifeWaitsForReset checks that an endpoint with KeepOldLife does not hear a peer that
// restarted until Reset.
func TestKeepOldLifeWaitsForReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{KeepOldLife: true}})
		defer p.close()
		if err := p.toA.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		p.restartB(Config{GiveUp: time.Second})
		if err := p.toA.Write(context.Background(), write(64, nil, 0, 2)); !errors.Is(err, ErrPeerDown) {
			t.Fatalf("a new life was heard without Reset: %v", err)
		}
		p.toB.Reset(0)
		p.toA.Reset(0)
		if err := p.toA.Write(context.Background(), write(64, nil, 0, 3)); err != nil || p.memA.Load32(0) != 3 {
			t.Errorf("after Reset: %v", err)
		}
	})
}

// TestResetFailsWhatIsPending checks that Reset fails what is pending with ErrReset, and that what
// is posted after it is written before it is done.
func TestResetFailsWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: 5 * time.Millisecond}})
		defer p.close()
		if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		go func() { result <- p.toB.Write(context.Background(), write(64, pattern(2, 100_000), 0, 2)) }()
		time.Sleep(time.Millisecond)
		p.toB.Reset(0)
		if err := <-result; !errors.Is(err, ErrReset) {
			t.Errorf("pending: %v", err)
		}
		// Acknowledgements of the old life are still under way.
		for i := range 5 {
			if err := p.toB.Write(context.Background(), write(64, pattern(i, 3000), 0, uint32(10+i))); err != nil {
				t.Fatal(err)
			}
			if p.memB.Load32(0) != uint32(10+i) {
				t.Error("done, but not written")
			}
		}
		if err := p.toA.Write(context.Background(), write(64, nil, 0, 3)); err != nil {
			t.Errorf("other direction: %v", err)
		}
	})
}

// TestCloseAnswersEveryPostOnce checks that Close at any moment answers every post once, while
// several goroutines post.
func TestCloseAnswersEveryPostOnce(t *testing.T) {
	for round := range 50 {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{link: simnet.Link{Latency: 100 * time.Microsecond, Loss: 0.1}})
			defer p.close()
			var posted, answered atomic.Int32
			var closed atomic.Bool
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for {
						tx := write(64, pattern(g, 5000), 0, 1)
						tx.Done = func(_ *Transaction, err error) {
							answered.Add(1)
							if closed.Load() {
								t.Error("Done after Close returned")
							}
							if err != nil && !errors.Is(err, net.ErrClosed) {
								t.Error(err)
							}
						}
						switch err := p.toB.Post(tx); {
						case err == nil:
							posted.Add(1)
						case errors.Is(err, ErrQueueFull):
						case errors.Is(err, net.ErrClosed):
							return
						default:
							t.Error(err)
							return
						}
						time.Sleep(20 * time.Microsecond)
					}
				})
			}
			time.Sleep(time.Duration(round) * 77 * time.Microsecond)
			if err := p.a.Close(); err != nil {
				t.Error(err)
			}
			closed.Store(true)
			wg.Wait()
			if posted.Load() != answered.Load() {
				t.Errorf("%d posted, %d answered", posted.Load(), answered.Load())
			}
			if err := p.a.Close(); err != nil {
				t.Error("second Close:", err)
			}
		})
	}
}

// TestShutdownDrains checks that Shutdown returns when all that was posted is done, and that
// nothing can be posted then.
func TestShutdownDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond, Loss: 0.05}})
		defer p.close()
		var done atomic.Int32
		for i := range 50 {
			tx := write(uint32(4096+1000*i), pattern(i, 1000), uint32(4*i), 1)
			tx.Done = func(_ *Transaction, err error) {
				if err == nil {
					done.Add(1)
				}
			}
			if err := p.toB.Post(tx); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.a.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		if done.Load() != 50 {
			t.Errorf("%d of 50 done", done.Load())
		}
		if err := p.toB.Post(write(0, nil, 0, 1)); !errors.Is(err, ErrClosed) {
			t.Errorf("post after Shutdown: %v", err)
		}
	})
}

// TestShutdownGivesUpWithItsContext checks that Shutdown returns when its context ends, and that
// what is pending then fails with ErrClosed.
func TestShutdownGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Down: true}})
		defer p.close()
		var got error
		tx := write(0, nil, 0, 1)
		tx.Done = func(_ *Transaction, err error) { got = err }
		if err := p.toB.Post(tx); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := p.a.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v", err)
		}
		if !errors.Is(got, ErrClosed) {
			t.Errorf("pending: %v", got)
		}
	})
}

// TestConnCloseFromDone checks that one connection that is closed inside a callback leaves the
// endpoint and the others alone.
func TestConnCloseFromDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		result := make(chan error, 2)
		first := write(0, nil, 0, 1)
		first.Done = func(_ *Transaction, err error) {
			p.toB.Close()
			result <- err
		}
		if err := p.toB.Post(first); err != nil {
			t.Fatal(err)
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
		if err := p.toB.Post(write(0, nil, 0, 1)); !errors.Is(err, ErrClosed) {
			t.Errorf("post: %v", err)
		}
		again := p.connect(p.a, Peer{ID: 2, Addr: addrB})
		if err := again.Write(context.Background(), write(0, nil, 0, 7)); err != nil || p.memB.Load32(0) != 7 {
			t.Errorf("connected again: %v", err)
		}
	})
}

// TestCancelled checks that a context that ends while the transaction waits cancels it.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Down: true}})
		defer p.close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		tx := write(0, nil, 0, 1)
		if err := p.toB.Write(ctx, tx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		p.net.Link(addrA, addrB, simnet.Link{})
		p.net.Link(addrB, addrA, simnet.Link{})
		tx.Completion = Word(tx.Completion.Addr(), 2)
		if err := p.toB.Write(context.Background(), tx); err != nil || p.memB.Load32(0) != 2 {
			t.Errorf("used again: %v, word %d", err, p.memB.Load32(0))
		}
		if got := p.b.Stats().Completions; got != 1 {
			t.Errorf("%d completions, want 1", got)
		}
	})
}

// TestAcceptAny checks that peers are learned from their handshake, and bounded.
func TestAcceptAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		mem, _ := NewRegion(4096)
		var up atomic.Int32
		server, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2, Memory: mem, AcceptAny: true, MaxPeers: 3,
			OnEvent: func(e Event) {
				if e.Kind == PeerUp {
					up.Add(1)
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		for i := range 5 {
			id := frame.EndpointID(10 + i)
			e, err := New(n.Attach(simnet.Addr(uint32(id)), simnet.Config{}), &Config{ID: id, GiveUp: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			c, err := e.Connect(Peer{ID: 2, Addr: addrB})
			if err != nil {
				t.Fatal(err)
			}
			err = c.Write(context.Background(), write(64, pattern(i, 8), uint32(4*i), 1))
			if (i < 3) != (err == nil) {
				t.Errorf("peer %d of at most 3: %v", i, err)
			}
		}
		if up.Load() != 3 || len(server.Conns()) != 3 {
			t.Errorf("%d up, %d connections", up.Load(), len(server.Conns()))
		}
	})
}

// TestUnknownSourcesDoNotExhaustAcceptAny checks that handshakes that unknown sources do not finish take
// no room, and that idle peers make some after a while.
func TestUnknownSourcesDoNotExhaustAcceptAny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		mem, _ := NewRegion(4096)
		server, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2, Memory: mem, AcceptAny: true, MaxPeers: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		for i := range 4 {
			addr := simnet.Addr(uint32(50 + i))
			s := newStranger(t, n, addr, frame.EndpointID(50+i), 2, addrB)
			s.send(1, msg{Message: frame.Message{Txn: 7, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion}})
		}
		for i := range 8 {
			id := frame.EndpointID(10 + i)
			e, err := New(n.Attach(simnet.Addr(uint32(id)), simnet.Config{}), &Config{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			c, err := e.Connect(Peer{ID: 2, Addr: addrB})
			if err != nil {
				t.Fatal(err)
			}
			if i == 4 {
				time.Sleep(61 * time.Second) // the first four have gone silent
			}
			if err := c.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
				t.Errorf("peer %d: %v", i, err)
			}
			e.Close()
		}
	})
}

// TestTransportFailureEndsEverything checks that a wire that breaks by itself ends everything.
func TestTransportFailureEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		tc := n.Attach(addrA, simnet.Config{})
		e, err := New(&breaking{Conn: tc}, &Config{ID: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		c, err := e.Connect(Peer{ID: 2, Addr: addrB, Profile: func() *Profile { p := OpenCPI(false); return &p }()})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(context.Background(), write(0, nil, 0, 1)); !errors.Is(err, errWire) {
			t.Errorf("write: %v", err)
		}
	})
}

var errWire = errors.New("wire cut")

type breaking struct{ *simnet.Conn }

func (b *breaking) Send([]transport.Outgoing) (int, error) { return 0, errWire }

// TestCloseDuringInlineTurn checks that Close returns, and nothing is answered before, while a
// caller of Post is still inside the transport.
func TestCloseDuringInlineTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		tc := &blocking{Conn: n.Attach(addrA, simnet.Config{}), closed: make(chan struct{})}
		prof := OpenCPI(false)
		e, err := New(tc, &Config{ID: 1, Profile: &prof})
		if err != nil {
			t.Fatal(err)
		}
		c, err := e.Connect(Peer{ID: 2, Addr: addrB})
		if err != nil {
			t.Fatal(err)
		}
		tx := write(0, nil, 0, 1)
		var answer error
		tx.Done = func(_ *Transaction, err error) {
			if tc.sending.Load() {
				t.Error("answered while the transport still reads the frame")
			}
			answer = err
		}
		posted := make(chan error)
		go func() { posted <- c.Post(tx) }()
		synctest.Wait()
		if !tc.sending.Load() {
			t.Fatal("Post did not send inline")
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-posted; err != nil {
			t.Error(err)
		}
		if !errors.Is(answer, ErrClosed) {
			t.Errorf("answered with %v", answer)
		}
	})
}

// blocking is a wire whose Send returns only when it is closed.
type blocking struct {
	*simnet.Conn
	closed  chan struct{}
	sending atomic.Bool
}

func (b *blocking) Send([]transport.Outgoing) (int, error) {
	b.sending.Store(true)
	<-b.closed
	for range 1000 { // time stands still while Close waits for a mutex
		runtime.Gosched()
	}
	b.sending.Store(false)
	return 0, net.ErrClosed
}

func (b *blocking) Close() error {
	close(b.closed)
	return b.Conn.Close()
}

// TestPostWithLockThatDoneTakes checks that Done never runs inside Post, which may be called with a
// lock that Done takes.
func TestPostWithLockThatDoneTakes(t *testing.T) {
	for _, prof := range []Profile{Native(), OpenCPI2()} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Profile: &prof}, b: Config{Profile: &prof}})
			defer p.close()
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 100 {
				wg.Add(1)
				tx := write(64, pattern(1, 100), 0, 1)
				tx.Done = func(*Transaction, error) {
					mu.Lock()
					defer mu.Unlock()
					wg.Done()
				}
				mu.Lock()
				err := p.toB.Post(tx)
				mu.Unlock()
				if err != nil {
					t.Fatal(err)
				}
			}
			wg.Wait()
		})
	}
}

// TestAcceptingEndpointRestarts checks that an endpoint that learns its peers, and connects to
// none, asks the peer that sends it data that it cannot place; else the sender would learn of the
// restart only when it times out.
func TestAcceptingEndpointRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		open := func() *Endpoint {
			mem, err := NewRegion(4096)
			if err != nil {
				t.Fatal(err)
			}
			b, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2, Memory: mem, AcceptAny: true})
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		a, err := New(n.Attach(addrA, simnet.Config{}), &Config{ID: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		toB, err := a.Connect(Peer{ID: 2, Addr: addrB})
		if err != nil {
			t.Fatal(err)
		}
		b := open()
		if err := toB.Write(context.Background(), write(64, pattern(1, 100), 0, 1)); err != nil {
			t.Fatal(err)
		}
		kill(b)
		b = open()
		defer b.Close()
		began := time.Now()
		err = toB.Write(context.Background(), write(64, pattern(1, 100), 0, 2))
		if took := time.Since(began); !errors.Is(err, ErrPeerRestarted) || took > time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		if err := toB.Write(context.Background(), write(64, pattern(1, 100), 0, 3)); err != nil {
			t.Error(err)
		}
	})
}
