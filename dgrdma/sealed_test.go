package dgrdma

import (
	"bytes"
	"context"
	"crypto/fips140"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

func ringOf(b byte) *seal.Ring { return &seal.Ring{All: &seal.Key{b}} }

// TestSealed checks that what is written arrives, over a network that loses, doubles, reorders and delays, whichever side begins, and both
// at once.
func TestSealed(t *testing.T) {
	for _, faults := range []simnet.Link{
		{},
		{Latency: 5 * time.Millisecond},
		{Loss: 0.3, Duplicate: 0.1, Reorder: 0.1, Latency: time.Millisecond, Jitter: 3 * time.Millisecond},
		{Latency: 1200 * time.Millisecond},
		{Latency: 2300 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Keys: ringOf(1), GiveUp: 30 * time.Second}, b: Config{Keys: ringOf(1), GiveUp: 30 * time.Second}, link: faults})
			defer p.close()
			data := make([]byte, 300_000)
			for i := range data {
				data[i] = byte(i*31) | 1
			}
			began := time.Now()
			for _, c := range []*Conn{p.toB, p.toA} {
				ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
				if err := c.Write(ctx, write(64, data, 0, 1)); err != nil {
					t.Errorf("%+v: %v; %+v", faults, err, c.Stats().Counters)
				}
				cancel()
			}
			t.Logf("%+v: %v", faults, time.Since(began))
			if got := string(p.memB.Bytes()[64 : 64+len(data)]); got != string(data) {
				t.Errorf("%+v: other bytes arrived", faults)
			}
		})
	}
}

// TestSealedTraced checks that a trace sees frames whole, before they are sealed.
func TestSealedTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := bytes.Repeat([]byte("what is to be seen"), 1000)
		var seen []byte
		p := newPair(t, pairConfig{
			a: Config{Keys: ringOf(1), Trace: &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) { seen = append(seen, b[len(b)-min(len(b), 500):]...) }}},
			b: Config{Keys: ringOf(1)},
		})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, data, 0, 1)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p.memB.Bytes()[64:64+len(data)], data) {
			t.Error("other bytes arrived")
		}
		if n := bytes.Count(seen, []byte("what is to be seen")); n < 100 {
			t.Errorf("seen %d times in %d bytes", n, len(seen))
		}
	})
}

// TestSealedOtherKey checks that nothing is taken with another key, or none, and that the side that began says why after GiveUp: that the
// key is another one, if it is. Both count what they refuse then.
func TestSealedOtherKey(t *testing.T) {
	for _, ring := range []*seal.Ring{ringOf(2), nil, {}, {Own: map[uint16]*seal.Key{7: {1}}}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{a: Config{Keys: ringOf(1), GiveUp: 2 * time.Second}, b: Config{Keys: ring, GiveUp: 2 * time.Second}})
			defer p.close()
			began := time.Now()
			err := p.toB.Write(t.Context(), write(64, []byte("not for you"), 0, 1))
			if took := time.Since(began); !errors.Is(err, ErrNoKey) || !errors.Is(err, ErrPeerDown) || took < 2*time.Second || took > 3*time.Second {
				t.Errorf("%v after %v", err, took)
			}
			other := ring != nil && ring.All != nil
			if a, b := p.a.Stats().RefusedBy(RefusedSeal), p.b.Stats().RefusedBy(RefusedSeal); errors.Is(err, errOtherKey) != other || other && (a == 0 || b == 0) {
				t.Errorf("another key: %v; %v; refused %d and %d", other, err, a, b)
			}
			if p.memB.Bytes()[64] != 0 {
				t.Error("it was written")
			}
		})
	}
}

// TestSealedRefusedSaysWhy checks that a peer that cannot agree on a key with an endpoint is refused there for that reason and no other,
// under its id, whether it knows that of the endpoint or asks for it.
func TestSealedRefusedSaysWhy(t *testing.T) {
	for _, x := range []struct {
		name string
		ring *seal.Ring
		why  Reason
	}{
		{"no keys", nil, RefusedSealed},
		{"another key", ringOf(2), RefusedSeal},
		{"a key for another peer", &seal.Ring{Own: map[uint16]*seal.Key{7: {1}}}, RefusedSeal},
	} {
		for _, asks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, asks: %v", x.name, asks), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newFindWorld(t, &Config{Keys: ringOf(1), GiveUp: 2 * time.Second}, &Config{Keys: x.ring})
					defer w.end()
					w.b.AcceptAny(true)
					var err error
					if asks {
						_, err = w.a.Find(t.Context(), Peer{Addr: asked})
					} else {
						c := w.connect(w.a, Peer{ID: 2, Addr: asked, Size: 1 << 20})
						err = c.Write(t.Context(), write(64, []byte("not for you"), 0, 1))
					}
					if !errors.Is(err, ErrNoKey) {
						t.Error(err)
					}
					for why, n := range w.b.Stats().Refused {
						if (n > 0) != (Reason(why) == x.why) {
							t.Errorf("%v: %d", Reason(why), n)
						}
					}
					w.mu.Lock()
					defer w.mu.Unlock()
					for _, e := range w.events {
						if e.Kind == FrameRefused && e.Peer.Addr == asking && e.Peer.ID != 1 {
							t.Errorf("refused for %v: %v", e.Reason, e.Peer)
						}
					}
				})
			})
		}
	}
}

// wiretap records what is sent over a link.
type wiretap struct {
	mu  sync.Mutex
	all [][]byte
}

func (w *wiretap) hear(_ int, b []byte) simnet.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, bytes.Clone(b))
	return simnet.Deliver()
}

func (w *wiretap) heard() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// sealedPair is a pair of which all is recorded.
func sealedPair(t *testing.T, b Config) (p *pair, there, back *wiretap) {
	there, back = new(wiretap), new(wiretap)
	b.Keys = ringOf(1)
	p = newPair(t, pairConfig{a: Config{Keys: ringOf(1)}, b: b})
	p.net.Link(addrA, addrB, simnet.Link{Script: there.hear})
	p.net.Link(addrB, addrA, simnet.Link{Script: back.hear})
	return p, there, back
}

// TestSealedSaysNothing checks that nothing that is written is on the wire, nor any frame that is
// not sealed.
func TestSealedSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, there, back := sealedPair(t, Config{})
		defer p.close()
		secret := bytes.Repeat([]byte("attack at dawn; "), 400)
		if err := p.toB.Write(t.Context(), write(64, secret, 0, 1)); err != nil {
			t.Fatal(err)
		}
		for _, b := range append(there.heard(), back.heard()...) {
			if seal.KindOf(b) == seal.Plain || bytes.Contains(b, secret[:16]) {
				t.Errorf("on the wire: %x", b)
			}
		}
	})
}

// TestSealedReplay checks that nothing is applied of all that was recorded in one life, and that the connection goes on, though it comes
// again and again, to both, from either, in this life and in the next.
func TestSealedReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, there, back := sealedPair(t, Config{AcceptAny: true})
		if err := p.toB.Write(t.Context(), write(64, []byte("the first life"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		replay := func() {
			for _, b := range slices.Concat(there.heard(), back.heard()) {
				p.net.Inject(addrA, addrB, b)
				p.net.Inject(addrB, addrA, b)
			}
			time.Sleep(time.Millisecond)
		}
		clear(p.memB.Bytes())
		check := func(when string) {
			t.Helper()
			replay()
			for i, b := range p.memB.Bytes() {
				if b != 0 {
					t.Fatalf("%s: byte %d was written", when, i)
				}
			}
			if err := p.toB.Write(t.Context(), write(64, []byte("on"), 0, 1)); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			clear(p.memB.Bytes())
		}
		check("at once")
		p.toB.Reset(0)
		check("behind a Reset")
		time.Sleep(time.Hour)
		check("much later")
		p.b.Close()
		p.memB = p.region(1 << 20)
		p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB, Keys: ringOf(1), AcceptAny: true, OnEvent: p.note})
		p.toB.Reset(0)
		check("in the next life")
		p.close()
	})
}

// TestSealedReflected checks that an endpoint agrees on no key with itself: what it says comes back to it as if the peer had said it.
func TestSealedReflected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{
			a: Config{Keys: ringOf(1), GiveUp: 3 * time.Second, AcceptAny: true}, b: Config{Keys: ringOf(1)},
			link: simnet.Link{Loss: 1}, // until the true peer is gone
		})
		defer p.close()
		back := func(_ int, b []byte) simnet.Verdict {
			c := bytes.Clone(b)
			go p.net.Inject(addrB, addrA, c)
			swapped := seal.Swapped([4]byte(c))
			d := append(swapped[:], c[4:]...)
			go p.net.Inject(addrB, addrA, d)
			return simnet.Drop()
		}
		p.net.Link(addrA, addrB, simnet.Link{Script: back})
		p.b.Close()
		c := p.connect(p.a, Peer{ID: 1, As: 1, Addr: addrB})
		for _, c := range []*Conn{c, p.toB} {
			if err := c.Write(t.Context(), write(64, []byte("hello me"), 0, 1)); !errors.Is(err, ErrNoKey) {
				t.Errorf("%v: %v", c, err)
			}
		}
		time.Sleep(time.Second)
	})
}

// TestSealedRestarts checks that two sides find together, and what was said to be done was written, though either side starts again, and
// again, over a network that loses much.
func TestSealedRestarts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	fixture.Bubble(t, fmt.Sprintf("seed %d", seed), func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		p := newPair(t, pairConfig{a: Config{Keys: ringOf(1)}, b: Config{Keys: ringOf(1)}, link: simnet.Link{Loss: 0.2, Duplicate: 0.05, Reorder: 0.05, Latency: time.Millisecond}})
		for i := range 60 {
			switch rnd.IntN(3) {
			case 0:
				p.b.Close()
				p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB, Keys: ringOf(1), OnEvent: p.note})
				p.toA = p.connect(p.b, Peer{ID: 1, Addr: addrA, Size: 1 << 20})
			case 1:
				p.a.Close()
				p.a = p.open(addrA, &Config{ID: 1, Memory: p.memA, Keys: ringOf(1), OnEvent: p.note})
				p.toB = p.connect(p.a, Peer{ID: 2, Addr: addrB, Size: 1 << 20})
			}
			data := bytes.Repeat([]byte{byte(i) + 1}, 1+rnd.IntN(5000))
			began := time.Now()
			for tries := 0; ; tries++ {
				clear(p.memB.Bytes())
				err := p.toB.Write(t.Context(), write(64, data, 0, 1))
				if err == nil {
					break
				}
				if tries > 20 || !errors.Is(err, ErrPeerRestarted) && !errors.Is(err, ErrPeerClosed) && !errors.Is(err, ErrReset) {
					t.Fatalf("round %d after %v: %v", i, time.Since(began), err)
				}
				p.toB.Reset(0)
			}
			if !bytes.Equal(p.memB.Bytes()[64:64+len(data)], data) {
				t.Fatalf("round %d: said to be written, and is not", i)
			}
			// Where a HELLO is lost of a side that has nothing to send, sealed or not, the next one leaves that much later.
			if took := time.Since(began); took > 2*8*time.Second {
				t.Errorf("round %d took %v", i, took)
			}
		}
		p.close()
	})
}

// TestSealedWhereItIsForbidden checks that an endpoint with keys is not made where Go's cryptography panics for what a handshake takes:
// else the sender of a question could end the process of the endpoint that answers it.
func TestSealedWhereItIsForbidden(t *testing.T) {
	if !fips140.Enforced() {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "GODEBUG=fips140=only")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	n := simnet.New(1)
	defer n.Close()
	if e, err := New(n.Attach(addrA, simnet.Config{}), &Config{ID: 1, Keys: ringOf(1)}); err == nil {
		e.Close()
		t.Error("it is made")
	} else if !strings.Contains(err.Error(), "GODEBUG") {
		t.Error(err)
	}
}
