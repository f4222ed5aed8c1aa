package dgrdma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestFindAtSeveralAddresses checks that the next address is asked while those before do not answer, or at once where one cannot be asked;
// that the first answer counts; and for a peer with an id the first answer of that id.
func TestFindAtSeveralAddresses(t *testing.T) {
	dead, other := udpAddr("10.0.0.8:7100"), udpAddr("10.0.0.9:7100")
	six, ether := udpAddr("[fd00::1]:7100"), transport.EtherAddr([6]byte{2})
	for i, x := range slices.Repeat([]struct {
		name    string
		id      frame.EndpointID
		ask     []transport.Addr
		latency time.Duration // to the one that is asked for
		found   frame.EndpointID
		took    time.Duration
		says    string
	}{
		{name: "the first", ask: []transport.Addr{asked, dead}, found: 2, took: 2 * time.Millisecond},
		{name: "the second", ask: []transport.Addr{dead, asked}, found: 2, took: askNext + 2*time.Millisecond},
		{name: "the third", ask: []transport.Addr{dead, dead, asked}, found: 2, took: 2*askNext + 2*time.Millisecond},
		{name: "of those that can be asked", ask: []transport.Addr{six, ether, asked}, found: 2, took: 2 * time.Millisecond},
		{name: "the first, slowly", ask: []transport.Addr{asked, dead}, latency: 400 * time.Millisecond, found: 2, took: 800 * time.Millisecond},
		{name: "the last of many", ask: append(slices.Repeat([]transport.Addr{dead}, 19), asked), found: 2, took: 19*findTime/20 + 2*time.Millisecond},
		{name: "none of too many", ask: append(slices.Repeat([]transport.Addr{dead}, 30), asked), took: findTime, says: "nobody there answers within 3s"},
		{name: "the faster", ask: []transport.Addr{asked, other}, latency: 400 * time.Millisecond, found: 3, took: askNext + 2*time.Millisecond},
		{name: "the one with the id", id: 2, ask: []transport.Addr{other, asked}, found: 2, took: 4 * time.Millisecond},
		{name: "nobody", ask: []transport.Addr{dead, six}, took: findTime, says: "at 10.0.0.8:7100: nobody there answers within 3s; "},
		{name: "nobody, and why", ask: []transport.Addr{dead, six}, took: findTime, says: "; at [fd00::1]:7100: nothing can be sent there from 10.0.0.1:1000"},
		{name: "nobody with the id", id: 9, ask: []transport.Addr{other, asked}, took: 4 * time.Millisecond, says: "at 10.0.0.9:7100: "},
		{name: "nobody to be asked", ask: []transport.Addr{ether}, says: "give the complete string"},
	}, 2) {
		manual := i >= 13
		slack := time.Duration(0)
		if manual {
			slack = 50 * time.Millisecond // the goroutine that drives looks up now and then
		}
		t.Run(fmt.Sprintf("%s manual=%v", x.name, manual), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFindWorld(t, &Config{Manual: manual}, &Config{AcceptAny: true})
				defer w.end()
				if x.latency > 0 {
					w.net.Link(asking, asked, simnet.Link{Latency: x.latency})
					w.net.Link(asked, asking, simnet.Link{Latency: x.latency})
				}
				for _, ends := range [][2]transport.Addr{{asking, other}, {other, asking}} {
					w.net.Link(ends[0], ends[1], simnet.Link{Latency: time.Millisecond})
				}
				c := w.open(other, &Config{ID: 3, AcceptAny: true, Memory: w.region(4096)})
				defer c.Close()
				began := time.Now()
				p, err := w.a.Find(t.Context(), Peer{ID: x.id, Addr: x.ask[0]}, x.ask[1:]...)
				if took := time.Since(began); took < x.took || took > x.took+slack {
					t.Errorf("it took %v, want %v", took, x.took)
				}
				at := map[frame.EndpointID]Peer{2: {ID: 2, Addr: asked, Size: w.b.Size()}, 3: {ID: 3, Addr: other, Size: c.Size()}}[x.found]
				if p != at || (err == nil) != (x.found != 0) {
					t.Errorf("%+v, %v", p, err)
				}
				if err != nil && (!strings.Contains(err.Error(), x.says) || errors.Is(err, ErrPeerDown) != (x.took == findTime) || errors.Is(err, ErrWrongID) != (x.id == 9)) {
					t.Error(err)
				}
				if n := len(w.a.discoveries); n != 0 {
					t.Errorf("%d questions are left", n)
				}
			})
		})
	}
}

// TestFindSealed checks that an endpoint that has the same key for all is found, and that the error says so of one that has another key, or
// none.
func TestFindSealed(t *testing.T) {
	one := &seal.Ring{Own: map[uint16]*seal.Key{2: {1}}}
	for _, x := range []struct {
		name        string
		here, there *seal.Ring
		nobody      bool
		took        time.Duration
		says        string
	}{
		{name: "the same", here: ringOf(1), there: ringOf(1), took: 6 * time.Millisecond},
		{name: "another", here: ringOf(1), there: ringOf(2), took: findTime, says: "at 10.0.0.2:7100: the peer is there, and does not accept our key"},
		{name: "none there", here: ringOf(1), took: findTime, says: "at 10.0.0.2:7100: nobody answers the question for a key"},
		{name: "nobody there", here: ringOf(1), nobody: true, took: findTime, says: "at 10.0.0.2:7100: nobody answers the question for a key"},
		{name: "none here", there: ringOf(1), took: findTime, says: "does it accept peers without a key?"},
		{name: "of the peer alone", here: one, there: ringOf(1), says: "each key here is for one peer"},
		{name: "of others alone", here: ringOf(1), there: one, took: findTime, says: "nobody answers the question for a key"},
	} {
		synctest.Test(t, func(t *testing.T) {
			there := &Config{AcceptAny: true, Keys: x.there}
			if x.nobody {
				there = nil
			}
			w := newFindWorld(t, &Config{Keys: x.here}, there)
			defer w.end()
			began := time.Now()
			p, err := w.a.Find(t.Context(), Peer{Addr: asked})
			if took := time.Since(began); took != x.took {
				t.Errorf("%s: it took %v, want %v", x.name, took, x.took)
			}
			switch {
			case x.says == "" && (err != nil || p.ID != 2):
				t.Errorf("%s: %+v, %v", x.name, p, err)
			case x.says != "" && (err == nil || !strings.Contains(err.Error(), x.says) || errors.Is(err, ErrNoKey) != (x.here != nil) || !errors.Is(err, ErrPeerDown)):
				t.Errorf("%s: %v", x.name, err)
			}
		})
	}
}

// TestFindAtSeveralAddressesEnds checks that a discovery at several addresses ends with its
// context, and with the endpoint.
func TestFindAtSeveralAddressesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFindWorld(t, &Config{}, nil)
		defer w.end()
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled, cancelIt := context.WithCancelCause(t.Context())
		cancelIt(gone)
		if _, err := w.a.Find(cancelled, Peer{Addr: asked}); !errors.Is(err, gone) || !strings.Contains(err.Error(), asked.String()) {
			t.Error(err)
		}
		time.AfterFunc(300*time.Millisecond, func() { cancel(gone) })
		many := make([]transport.Addr, 1000) // of which no more are asked than there is time
		for i := range many {
			many[i] = asked
		}
		if _, err := w.a.Find(ctx, Peer{Addr: asked}, many...); !errors.Is(err, gone) {
			t.Error(err)
		}
		began := time.Now()
		if _, err := w.a.Find(t.Context(), Peer{Addr: asked}, many...); !errors.Is(err, ErrPeerDown) || time.Since(began) != findTime {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		time.AfterFunc(300*time.Millisecond, func() { w.a.Close() })
		if _, err := w.a.Find(t.Context(), Peer{Addr: asked}, many...); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}
