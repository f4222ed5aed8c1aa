package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestWaitOfAConnection checks that Wait of a connection returns for a word that its peer writes,
// and for its end, whichever way that comes.
func TestWaitOfAConnection(t *testing.T) {
	const giveUp, later = 4 * time.Second, 100 * time.Millisecond
	never := func(uint32) bool { return false }
	for _, c := range []struct {
		name  string
		ready func(uint32) bool
		then  func(p *pair)
		want  error
		after time.Duration
		most  time.Duration // beyond that
	}{
		{"the word", func(w uint32) bool { return w == 7 }, func(p *pair) { p.toA.Post(write(64, nil, 0, 7)) }, nil, later, time.Millisecond},
		{"closed", never, func(p *pair) { p.b.Close() }, ErrPeerClosed, later, time.Millisecond},
		{"killed, and written to", never, func(p *pair) {
			kill(p.b)
			p.toB.Post(&Transaction{})
		}, ErrPeerDown, later + giveUp, 500 * time.Millisecond},
		{"we close the connection", never, func(p *pair) { p.toB.Close() }, ErrClosed, later, 0},
		{"we close the endpoint", never, func(p *pair) { p.a.Close() }, ErrClosed, later, 0},
		{"reset", func(w uint32) bool { return w == 8 }, func(p *pair) {
			p.toB.Reset(0)
			time.AfterFunc(later, func() { p.toA.Post(write(64, nil, 0, 8)) })
		}, nil, 2 * later, time.Millisecond},
	} {
		for _, manual := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/manual=%v", c.name, manual), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPair(t, pairConfig{link: simnet.Link{Latency: 100 * time.Microsecond}, a: Config{GiveUp: giveUp, Manual: manual}})
					defer p.close()
					if err := p.toB.Write(t.Context(), write(64, nil, 0, 1)); err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					time.AfterFunc(later, func() { c.then(p) })
					_, err := p.toB.Wait(t.Context(), 0, c.ready)
					if took := time.Since(began); !errors.Is(err, c.want) || took < c.after || took > c.after+c.most+20*time.Millisecond {
						t.Errorf("%v after %v, want %v after %v", err, took, c.want, c.after)
					}
				})
			})
		}
	}
}

// TestWaitLooksFirst checks that a word that is there wins over a context that is done and a
// connection that has failed.
func TestWaitLooksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		if err := p.toA.Write(t.Context(), write(64, nil, 0, 3)); err != nil {
			t.Fatal(err)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.toB.WaitFor(done, 0, 4); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p.b.Close()
		time.Sleep(time.Second)
		if err := p.toB.WaitFor(done, 0, 3); err != nil {
			t.Error(err)
		}
		if err := p.toB.WaitFor(t.Context(), 0, 4); !errors.Is(err, ErrPeerClosed) {
			t.Error(err)
		}
		if err := p.toB.WaitFor(t.Context(), 1<<20-2, 4); !errors.Is(err, ErrBounds) {
			t.Error(err)
		}
	})
}

// TestWaitNeedsARegion checks that Wait of a connection needs memory that is a region.
func TestWaitNeedsARegion(t *testing.T) {
	f := newFeed(t, Config{Memory: noMemory{}})
	if err := f.native().WaitFor(t.Context(), 0, 1); err != errNoRegion {
		t.Error(err)
	}
}

// TestStringsAreShort checks that String names a thing, as it is printed in passing, and shows
// nothing of its contents.
func TestStringsAreShort(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	region, _ := NewRegion(4096)
	for want, what := range map[string]any{
		"connection to peer 1 at " + addrA.String(): c, "region of 4096 bytes": region, "region of 0 bytes": new(Region),
	} {
		if got := fmt.Sprintf("%v", what); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got, want := fmt.Sprintf("%+v", Event{Kind: PeerUp, Conn: c, Peer: c.Name()}), "peer up: peer 1 at "+addrA.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
