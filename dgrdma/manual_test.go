package dgrdma

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// gated is a wire whose Recv, when it found datagrams, calls a function before it
// returns.
type gated struct {
	*simnet.Conn
	found func()
}

func (g *gated) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	n, err := g.Conn.Recv(dst, wait)
	if n > 0 && g.found != nil {
		g.found()
	}
	return n, err
}

// hookedMemory calls a function in Admit and one in Complete.
type hookedMemory struct {
	*Region
	admit, complete func()
}

func (h *hookedMemory) Admit(src frame.EndpointID, m *frame.Message) ([]byte, error) {
	if h.admit != nil {
		h.admit()
	}
	return h.Region.Admit(src, m)
}

func (h *hookedMemory) Complete(src frame.EndpointID, m *frame.Message) {
	if h.complete != nil {
		h.complete()
	}
	h.Region.Complete(src, m)
}

// manualReceiver is an endpoint without goroutines to which a scripted peer, already in a session
// as life, writes.
func manualReceiver(t *testing.T, n *simnet.Network, mem Memory) (*gated, *Endpoint, *fakePeer) {
	t.Helper()
	wire := &gated{Conn: n.Attach(addrB, simnet.Config{Poison: true})}
	e, err := New(wire, &Config{ID: 2, Memory: mem, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Connect(Peer{ID: 1, Addr: addrA}); err != nil {
		t.Fatal(err)
	}
	s := newStranger(t, n, addrA, 1, 2, addrB)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				e.Progress(0)
				time.Sleep(100 * time.Microsecond)
			}
		}
	}()
	s.greet(life)
	s.recv(10 * time.Millisecond)
	close(stop)
	<-stopped
	return wire, e, s
}

// TestManualCloseTakesTheTurn checks that Close waits for the goroutine that polls, and that
// nothing is placed and no callback runs when it has returned (attack A17, SECURITY.md).
func TestManualCloseTakesTheTurn(t *testing.T) {
	for _, where := range []string{"before the batch", "in Complete"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				region, _ := NewRegion(4096)
				mem := &hookedMemory{Region: region}
				wire, e, s := manualReceiver(t, n, mem)
				var closed, late atomic.Bool
				release := make(chan struct{})
				hold := func() { <-release }
				note := func() { late.Store(late.Load() || closed.Load()) }
				mem.admit, mem.complete = note, note
				if where == "before the batch" {
					wire.found = hold
				} else {
					mem.complete = func() { hold(); note() }
				}
				s.send(7, data(life, 1, 1, 64, pattern(1, 8)))
				polled, over := make(chan struct{}), make(chan struct{})
				go func() { e.Progress(0); close(polled) }()
				synctest.Wait()
				go func() {
					e.Close()
					closed.Store(true)
					close(over)
				}()
				time.Sleep(time.Second)
				if closed.Load() {
					t.Error("Close returned while another goroutine was in Poll")
				}
				close(release)
				<-polled
				<-over
				if late.Load() {
					t.Error("memory was asked after Close")
				}
				if _, err := e.Progress(0); !errors.Is(err, ErrClosed) {
					t.Errorf("Poll after Close: %v, want ErrClosed", err)
				}
			})
		})
	}
}

// TestPollByTwo checks that a second goroutine in Poll returns at once and touches nothing (attack
// A16, SECURITY.md).
func TestPollByTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		region, _ := NewRegion(1 << 16)
		mem := &hookedMemory{Region: region}
		_, e, s := manualReceiver(t, n, mem)
		defer e.Close()
		one, two := pattern(1, 1000), pattern(2, 1000)
		s.send(7, data(life, 1, 1, 64, one))
		mem.admit = func() {
			mem.admit = nil
			s.send(8, data(life+1, 1, 1, 4096, two))
			second := make(chan int)
			go func() {
				n, err := e.Progress(0)
				if err != nil {
					t.Error(err)
				}
				second <- n
			}()
			if n := <-second; n != 0 {
				t.Errorf("a second goroutine took %d datagrams while the first was at it", n)
			}
		}
		for range 2 {
			if n, err := e.Progress(0); n != 1 || err != nil {
				t.Errorf("Poll: %d datagrams, %v", n, err)
			}
		}
		for addr, want := range map[int][]byte{64: one, 4096: two} {
			if got := region.Bytes()[addr : addr+len(want)]; string(got) != string(want) {
				t.Errorf("at %d: not what was written", addr)
			}
		}
		if st := e.Stats(); st.Completions != 2 {
			t.Errorf("%d completions, want 2", st.Completions)
		}
	})
}

// TestManualWaitersDrive checks that Write and Shutdown of an endpoint without goroutines end,
// though no goroutine polls: for the acknowledgement, for room in the queue, for the end of the
// context, and for the end of a peer (attack A17, SECURITY.md).
func TestManualWaitersDrive(t *testing.T) {
	const latency = 300 * time.Microsecond
	const lookingFor = 2 * time.Millisecond // datagrams, and for nothing else in that time
	manual := func(t *testing.T, cfg Config) *pair {
		cfg.Manual = true
		return newPair(t, pairConfig{a: cfg, link: simnet.Link{Latency: latency}})
	}
	within := func(t *testing.T, limit time.Duration, f func()) {
		t.Helper()
		began := time.Now()
		f()
		if took := time.Since(began); took > limit {
			t.Errorf("took %v, want at most %v", took, limit)
		}
	}
	cases := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"write", func(t *testing.T) {
			p := manual(t, Config{})
			defer p.close()
			for i := range 5 {
				// The first waits for the handshake, too.
				within(t, 10*latency+helloFirst, func() {
					if err := p.toB.Write(context.Background(), write(64, pattern(i, 50_000), 0, uint32(i+1))); err != nil {
						t.Error(err)
					}
				})
			}
			if got := p.memB.Load32(0); got != 5 {
				t.Errorf("word %d, want 5", got)
			}
		}},
		{"room", func(t *testing.T) {
			p := manual(t, Config{Queue: 1})
			defer p.close()
			done := false
			x := write(64, pattern(1, 100), 0, 1)
			x.Done = func(*Transaction, error) { done = true }
			if err := p.toB.Post(x); err != nil {
				t.Fatal(err)
			}
			if err := p.toB.Write(context.Background(), write(64, pattern(1, 100), 0, 2)); err != nil || !done {
				t.Errorf("%v; the one before it is done: %v", err, done)
			}
		}},
		{"context", func(t *testing.T) {
			p := manual(t, Config{})
			defer p.close()
			p.net.Link(addrA, addrB, simnet.Link{Down: true})
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			within(t, 50*time.Millisecond+lookingFor, func() {
				if err := p.toB.Write(ctx, write(64, nil, 0, 1)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}},
		{"peer down", func(t *testing.T) {
			p := manual(t, Config{GiveUp: 300 * time.Millisecond})
			defer p.close()
			if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); err != nil {
				t.Fatal(err)
			}
			p.net.Link(addrA, addrB, simnet.Link{Down: true})
			within(t, 400*time.Millisecond, func() {
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				defer cancel() // begun: it is not taken back
				if err := p.toB.Write(ctx, write(64, nil, 0, 1)); !errors.Is(err, ErrPeerDown) {
					t.Error(err)
				}
			})
		}},
		{"shutdown", func(t *testing.T) {
			p := manual(t, Config{})
			defer p.close()
			done := 0
			for i := range 20 {
				x := write(uint32(4096+1000*i), pattern(i, 1000), 0, 1)
				x.Done = func(_ *Transaction, err error) {
					if err == nil {
						done++
					}
				}
				if err := p.toB.Post(x); err != nil {
					t.Fatal(err)
				}
			}
			within(t, 20*latency+helloFirst, func() {
				if err := p.a.Shutdown(context.Background()); err != nil || done != 20 {
					t.Errorf("%v, %d of 20 done", err, done)
				}
			})
		}},
		{"several", func(t *testing.T) {
			p := manual(t, Config{Queue: 3})
			defer p.close()
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for i := range 10 {
						if err := p.toB.Write(context.Background(), write(uint32(4096*(g+1)), pattern(i, 2000), uint32(4*g), uint32(i+1))); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Go(func() { // and one that polls
				for range 100 {
					p.a.Progress(0)
					time.Sleep(latency / 3)
				}
			})
			within(t, time.Second, wg.Wait)
			for g := range 4 {
				if got := p.memB.Load32(uint32(4 * g)); got != 10 {
					t.Errorf("word %d is %d, want 10", g, got)
				}
			}
		}},
		{"a word", func(t *testing.T) {
			p := manual(t, Config{})
			defer p.close()
			go func() {
				for i := range uint32(5) {
					p.toA.Write(context.Background(), write(64, pattern(1, 5000), 0, i+1))
				}
			}()
			within(t, 20*latency+helloFirst, func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if err := p.memA.WaitFor(ctx, 0, 5); err != nil {
					t.Error(err)
				}
			})
		}},
		{"a word of two endpoints", func(t *testing.T) {
			region, _ := NewRegion(1 << 16)
			p := newPair(t, pairConfig{size: 1 << 16, a: Config{Manual: true, Memory: region}, b: Config{Manual: true, Memory: region}})
			defer p.close()
			if err := p.toB.Post(write(64, pattern(1, 5000), 0, 7)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := region.WaitFor(ctx, 0, 7); err != nil {
				t.Error(err)
			}
		}},
		{"a word that nobody writes", func(t *testing.T) {
			p := manual(t, Config{})
			defer p.close()
			time.AfterFunc(20*time.Millisecond, func() { p.a.Close() })
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			within(t, 50*time.Millisecond+lookingFor, func() {
				if err := p.memA.WaitFor(ctx, 0, 5); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}},
		{"closed meanwhile", func(t *testing.T) {
			p := manual(t, Config{})
			defer p.close()
			p.net.Link(addrA, addrB, simnet.Link{Down: true})
			time.AfterFunc(time.Millisecond, func() { p.a.Close() })
			if err := p.toB.Write(context.Background(), write(64, nil, 0, 1)); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { synctest.Test(t, c.run) })
	}
}
