package endpoint

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestKeepAlive: a peer that is gone without a word is given up by who has nothing to send to it,
// be it connected to or learned, and by nobody without KeepAlive.
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

// TestKeepAliveOfTheLiving: one that is there answers, however much the network loses, and nobody
// asks who is heard anyway, or who is of another kind.
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

// TestKeepAliveWhoStoodStill: a process that was stopped amid its questions begins to ask anew.
func TestKeepAliveWhoStoodStill(t *testing.T) {
	const giveUp = 10 * time.Second
	at := func(d time.Duration) ack.Instant { return ack.Instant(time.Hour + d) }
	heard := at(0)
	var k keepAlive
	for s := range 9 {
		k.asked(at(time.Duration(s+1)*time.Second), heard)
	}
	if k.over(at(10*time.Second), heard, giveUp) {
		t.Error("given up before its time")
	}
	again := k // which was stopped
	if k.asked(at(10*time.Second), heard); !k.over(at(11*time.Second), heard, giveUp) {
		t.Error("not given up")
	}
	if k.over(at(11*time.Second), at(11*time.Second), giveUp) {
		t.Error("given up though it was heard")
	}
	if again.over(at(time.Minute), heard, giveUp) {
		t.Error("given up by who was stopped")
	}
	for s := range 10 {
		now := at(time.Minute + time.Duration(s)*time.Second)
		if again.over(now, heard, giveUp) {
			t.Errorf("given up %d s after it was stopped", s)
		}
		again.asked(now, heard)
	}
	if !again.over(at(time.Minute+giveUp), heard, giveUp) {
		t.Error("never given up by who was stopped once")
	}
}

// TestKeepAliveOfNobody: a peer that never came is given up, and so is one that died behind a
// Reset; no sooner than one that is silent; and it is taken when it comes.
func TestKeepAliveOfNobody(t *testing.T) {
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

// TestKeepAliveOfAQuestion: who is at an address is asked as long as somebody waits for the answer.
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

// TestKeepAliveWhoIsLate: a process that was late with its questions, and asks one when a peer may be given up, waits for the
// answer to that one.
func TestKeepAliveWhoIsLate(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{KeepAlive: 20 * time.Millisecond, GiveUp: time.Second})
	r.believe(7)
	var first ack.Instant
	for k := &r.c.tx.kind.(*nativeSending).alive; k.asks < leastAsked-1; {
		if r.serve(); k.asks == 1 && first == 0 {
			first = k.last
		}
		r.now = max(r.now, r.diary.at)
		r.expire()
	}
	r.now = first.Add(time.Second)
	r.c.tx.wake(r.now) // as for what was posted; before anybody looks for what is overdue
	r.last = "a late question"
	r.serve()
	r.check()
	if r.c.tx.err != nil {
		t.Fatalf("given up with the question: %v", r.c.tx.err)
	}
	r.now = max(r.now, r.diary.at)
	if r.expire(); !errors.Is(r.c.tx.err, ErrPeerDown) {
		t.Errorf("a pause after the last question: %v", r.c.tx.err)
	}
}
