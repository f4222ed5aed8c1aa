package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	. "github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// suppliedPair returns an endpoint with that configuration, connected to another one of
// the same, over a link that loses frames.
func suppliedPair(t *testing.T, cfg Config) (n *simnet.Network, a, b *Endpoint, toB *Conn) {
	t.Helper()
	n = simnet.New(1)
	n.Link(endA, endB, simnet.Link{Latency: endBeat, Loss: 0.05})
	n.Link(endB, endA, simnet.Link{Latency: endBeat, Loss: 0.05})
	region, err := NewRegion(endMemory)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Memory, cfg.ID = region, 1
	a = open(t, n, &cfg)
	cfg.ID = 2
	b = open(t, n, &cfg)
	if _, err := b.Connect(Peer{ID: 1, Addr: endA}); err != nil {
		t.Fatal(err)
	}
	if toB, err = a.Connect(Peer{ID: 2, Addr: endB}); err != nil {
		t.Fatal(err)
	}
	return n, a, b, toB
}

// odd is a controller that says the same, whatever happens.
type odd struct {
	ack.FixedWindow
	window int
	next   func(now ack.Instant) ack.Instant
}

func (o *odd) Window() int { return o.window }

func (o *odd) NextSend(now ack.Instant, _ int) ack.Instant {
	if o.next == nil {
		return now
	}
	return o.next(now)
}

// TestOddController: whatever window a controller of the application's asks for, and
// also if there is none, everything arrives; one that never lets a frame go keeps nobody
// from closing.
func TestOddController(t *testing.T) {
	never := func(ack.Instant) ack.Instant { return math.MaxInt64 }
	for _, c := range []struct {
		name    string
		ctl     func(int) ack.Controller
		arrives bool
	}{
		{"window 0", func(int) ack.Controller { return &odd{} }, true},
		{"window -1", func(int) ack.Controller { return &odd{window: -1} }, true},
		{"least window", func(int) ack.Controller { return &odd{window: math.MinInt} }, true},
		{"largest window", func(int) ack.Controller { return &odd{window: math.MaxInt} }, true},
		{"in the past", func(int) ack.Controller {
			return &odd{window: 10_000, next: func(ack.Instant) ack.Instant { return math.MinInt64 }}
		}, true},
		{"nil", func(int) ack.Controller { return nil }, true},
		{"never", func(int) ack.Controller { return &odd{window: 10_000, next: never} }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, a, b, toB := suppliedPair(t, Config{NewController: c.ctl})
				defer n.Close()
				defer b.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				var answer error
				answers := 0
				if err := toB.PostWith(&Transaction{Segments: []Segment{{8, make([]byte, 30_000)}}, Completion: Word(0, 0)}, func(_ *Transaction, err error) {
					answer = err
					answers++
				}); err != nil {
					t.Fatal(err)
				}
				if err := toB.Write(ctx, &Transaction{Completion: Word(0, 0)}); (err == nil) != c.arrives {
					t.Errorf("Write: %v", err)
				}
				toB.Stats()
				if err := a.Shutdown(ctx); (err == nil) != c.arrives {
					t.Errorf("Shutdown: %v", err)
				}
				if answers != 1 || c.arrives != (answer == nil) || !c.arrives && !isClosed(answer) {
					t.Errorf("answered %d times, with %v", answers, answer)
				}
			})
		})
	}
}

// TestOddEntropy: random numbers that are always the same delay nobody.
func TestOddEntropy(t *testing.T) {
	for _, same := range []uint32{0, 7, math.MaxUint32} {
		t.Run(fmt.Sprint(same), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, a, b, toB := suppliedPair(t, Config{Entropy: func() uint32 { return same }})
				defer n.Close()
				defer b.Close()
				defer a.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 3 {
					if err := toB.Write(ctx, &Transaction{Segments: []Segment{{8, make([]byte, 30_000)}}, Completion: Word(0, 0)}); err != nil {
						t.Error(err)
					}
					if err := toB.Reset(0); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestSuppliedDoesNotReturn: a NewController or Entropy that panics or ends the goroutine
// leaves a connection that could not be made unmade, and fails the endpoint when a
// connection begins anew: everything pending is answered, and Close returns (attack A8,
// SECURITY.md).
func TestSuppliedDoesNotReturn(t *testing.T) {
	for _, which := range []string{"NewController", "Entropy"} {
		for _, goexit := range []bool{false, true} {
			for _, down := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/goexit=%v/down=%v", which, goexit, down), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var armed atomic.Bool
						var entropy atomic.Uint32
						spring := func(at string) {
							if at != which || !armed.Load() {
								return
							}
							if goexit {
								runtime.Goexit()
							}
							panic("sprung")
						}
						n, a, b, toB := suppliedPair(t, Config{
							GiveUp:        time.Second,
							NewController: func(int) ack.Controller { spring("NewController"); return &ack.FixedWindow{} },
							Entropy:       func() uint32 { spring("Entropy"); return entropy.Add(1) },
						})
						defer n.Close()
						defer b.Close()
						if err := toB.Write(t.Context(), &Transaction{Completion: Word(0, 0)}); err != nil {
							t.Fatal(err)
						}
						n.Link(endB, endA, simnet.Link{Down: true})
						var answers atomic.Int32
						var answer atomic.Value
						post := func() error {
							return toB.PostWith(&Transaction{Completion: Word(0, 0)}, func(_ *Transaction, err error) {
								answers.Add(1)
								answer.Store(err)
							})
						}
						if err := post(); err != nil {
							t.Fatal(err)
						}
						if down {
							time.Sleep(2 * time.Second)
						}
						armed.Store(true)
						returned := false
						survive(func() {
							a.Connect(Peer{ID: 3, Addr: endB})
							returned = true
						})
						if err := a.Stats().Err; returned || err != nil || len(a.Conns()) != 1 {
							t.Errorf("Connect returned: %v, %v, %d connections", returned, err, len(a.Conns()))
						}
						survive(func() {
							toB.Reset(0)
							returned = true
						})
						time.Sleep(endBeat)
						if err := a.Stats().Err; returned || !errors.Is(err, ErrCallback) {
							t.Errorf("Reset returned: %v, %v", returned, err)
						}
						if err := toB.Post(&Transaction{Completion: Word(0, 0)}); !errors.Is(err, ErrCallback) {
							t.Errorf("Post: %v, want ErrCallback", err)
						}
						if err := a.Close(); err != nil {
							t.Error(err)
						}
						err, _ := answer.Load().(error)
						if answers.Load() != 1 || err == nil {
							t.Errorf("answered %d times, with %v", answers.Load(), err)
						}
					})
				})
			}
		}
	}
}

// survive runs f on a goroutine of its own, which recovers, and waits for its end.
func survive(f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { recover() }()
		f()
	}()
	<-over
}

// TestConnectAfterFailure: an endpoint that has failed says so when a connection is to be
// made, or else answers what is posted there before Close.
func TestConnectAfterFailure(t *testing.T) {
	other := OpenCPI(false)
	for i, profile := range []*Profile{nil, nil, &other, &other} {
		manual := i%2 == 1
		synctest.Test(t, func(t *testing.T) {
			fail := false
			n, a, b, toB := suppliedPair(t, Config{Manual: manual, NewController: func(int) ack.Controller {
				if fail {
					runtime.Goexit()
				}
				return nil
			}})
			defer n.Close()
			defer b.Close()
			defer a.Close()
			fail = true
			survive(func() { toB.Reset(0) })
			fail = false
			time.Sleep(endBeat)
			c, err := a.Connect(Peer{ID: 3, Addr: endB, Profile: profile})
			if err == nil {
				over := false
				err = c.PostWith(&Transaction{Completion: Word(0, 0)}, func(_ *Transaction, err error) { over = errors.Is(err, ErrCallback) })
				for range 10 {
					time.Sleep(endBeat)
					if manual {
						a.Progress(0)
					}
				}
				if !over {
					t.Errorf("manual=%v: a post was not answered", manual)
				}
			}
			if err != nil && !errors.Is(err, ErrCallback) {
				t.Errorf("manual=%v: %v, want ErrCallback", manual, err)
			}
		})
	}
}
