package dgrdma

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestKeepAlive checks that an endpoint that has nothing to send to a peer that is gone without a
// word finds that it timed out, be it connected to or learned, and that none does without
// KeepAlive.
func TestKeepAlive(t *testing.T) {
	const after, giveUp = 3 * time.Second, 2 * time.Second
	for _, on := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			p := &pair{t: t, net: n}
			cfg := Config{GiveUp: giveUp, OnEvent: p.note}
			if on {
				cfg.KeepAlive = after
			}
			client, server := cfg, cfg
			client.ID, client.Memory = 1, p.region(4096)
			server.ID, server.AcceptAny = 2, true // and no memory: it admits nothing
			a, b := p.open(addrA, &client), p.open(addrB, &server)
			defer b.Close()
			defer a.Close()
			c := p.connect(a, Peer{ID: 2, Addr: addrB})
			time.Sleep(time.Second)
			if st := c.Stats(); st.Theirs == 0 {
				t.Fatalf("they do not know each other: %+v", st)
			}
			n.Link(addrA, addrB, simnet.Link{Down: true})
			n.Link(addrB, addrA, simnet.Link{Down: true})
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := c.WaitFor(ctx, 64, 1)
			took := time.Since(began)
			synctest.Wait()
			downs := p.count(PeerDown, 0)
			switch {
			case !on && (!errors.Is(err, context.DeadlineExceeded) || downs > 0):
				t.Errorf("without it: %v, %d peers down", err, downs)
			case on && (!errors.Is(err, ErrPeerDown) || errors.Is(err, ErrPeerClosed) || took < giveUp || took > after+giveUp+helloMost):
				t.Errorf("Wait returned %v after %v", err, took)
			case on:
				time.Sleep(after)
				if downs := p.count(PeerDown, 0); downs != 2 {
					t.Errorf("%d sides noticed it", downs)
				}
			}
		})
	}
}

// TestKeepAliveOfTheLiving checks that a peer that is there answers, however much the network
// loses, and that none is asked that is heard anyway, or that is of another kind.
func TestKeepAliveOfTheLiving(t *testing.T) {
	t.Run("loss", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			link := simnet.Link{Latency: time.Millisecond, Loss: 0.4}
			cfg := Config{KeepAlive: time.Second}
			p := newPair(t, pairConfig{link: link, a: cfg, b: cfg})
			defer p.close()
			time.Sleep(time.Hour)
			if a, b := p.toB.Err(), p.toA.Err(); a != nil || b != nil {
				t.Errorf("%v, %v", a, b)
			}
		})
	})
	t.Run("quiet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{KeepAlive: time.Second}})
			defer p.close()
			time.Sleep(20 * time.Second)
			before := p.a.Stats().FramesSent
			time.Sleep(100 * time.Second)
			if n := p.a.Stats().FramesSent - before; n < 95 || n > 105 {
				t.Errorf("%d questions in 100 s, one a second is wanted", n)
			}
		})
	})
	t.Run("busy", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{KeepAlive: time.Second}})
			defer p.close()
			time.Sleep(20*time.Second + time.Second/2) // half a second after a question
			before := p.a.Stats().FramesSent
			for i := range 100 {
				if err := p.toB.Write(t.Context(), write(64, nil, 0, uint32(i))); err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Millisecond)
			}
			if n := p.a.Stats().FramesSent - before; n != 100 {
				t.Errorf("%d frames for 100 transactions", n)
			}
		})
	})
	t.Run("foreign", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			p := &pair{t: t, net: n}
			profile := FPGA()
			e := p.open(addrA, &Config{ID: 1, KeepAlive: time.Second, Profile: &profile})
			defer e.Close()
			c := p.connect(e, Peer{ID: 2, Addr: addrB})
			time.Sleep(time.Minute)
			if st := e.Stats(); st.FramesSent > 0 || c.Err() != nil {
				t.Errorf("%d frames sent; %v", st.FramesSent, c.Err())
			}
		})
	})
}

// TestKeepAliveWithoutAPeer checks that a peer that never came times out, and so does one that died
// after a Reset; no sooner than one that is silent; and that it is taken when it comes.
func TestKeepAliveWithoutAPeer(t *testing.T) {
	const after, giveUp = 3 * time.Second, 2 * time.Second
	for _, reset := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := &Config{}
			if !reset {
				b = nil
			}
			memory, _ := NewRegion(4096)
			w := newFindWorld(t, &Config{Memory: memory, KeepAlive: after, GiveUp: giveUp}, b)
			defer w.end()
			c := w.connect(w.a, Peer{ID: 2, Addr: asked})
			if reset {
				w.connect(w.b, Peer{ID: 1, Addr: asking})
				time.Sleep(time.Second)
				kill(w.b)
				c.Reset(0)
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := c.WaitFor(ctx, 64, 1)
			if took := time.Since(began); !errors.Is(err, ErrPeerDown) || took < giveUp || took > after+giveUp+helloMost {
				t.Errorf("reset %v: after %v: %v", reset, took, err)
			}
			w.b = w.open(asked, &Config{ID: 2})
			back := w.connect(w.b, Peer{ID: 1, Addr: asking})
			if err := back.Write(t.Context(), write(0, nil, 64, 1)); err != nil || c.Err() != nil {
				t.Errorf("reset %v: when it comes: %v, %v", reset, err, c.Err())
			}
		})
	}
}

// TestKeepAliveOfAQuestion checks that the endpoint asks which endpoint is at an address as long as
// a goroutine waits for the answer.
func TestKeepAliveOfAQuestion(t *testing.T) {
	const giveUp = 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		w := newFindWorld(t, &Config{KeepAlive: giveUp / 10, GiveUp: giveUp}, nil)
		defer w.end()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * giveUp / 2)
				began := time.Now()
				if _, err := w.a.Find(t.Context(), Peer{Addr: asked}); !strings.Contains(err.Error(), "nobody there answers") || time.Since(began) != giveUp {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		}
		all.Wait()
	})
}
