package dgrdma_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	. "github.com/dgrdma/dgrdma/dgrdma"
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

// TestOddController checks that everything arrives, whatever window a controller of the
// application's asks for, and also if there is none; and that one that never lets a frame go keeps
// no goroutine from closing.
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

// TestOddEntropy checks that random numbers that are always the same delay no peer.
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

// TestConnectAfterFailure checks that an endpoint that has failed says so when a connection is to
// be made.
func TestConnectAfterFailure(t *testing.T) {
	other := OpenCPI(false)
	for i, profile := range []*Profile{nil, nil, &other, &other} {
		manual := i%2 == 1
		synctest.Test(t, func(t *testing.T) {
			n, a, b, _ := suppliedPair(t, Config{Manual: manual})
			defer b.Close()
			defer a.Close()
			n.Close()
			if manual {
				a.Progress(0)
			}
			<-a.Done()
			if _, err := a.Connect(Peer{ID: 3, Addr: endB, Profile: profile}); err == nil || !errors.Is(err, a.Err()) {
				t.Errorf("manual=%v: %v, want %v", manual, err, a.Err())
			}
		})
	}
}
