package endpoint

import (
	"bytes"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestSealedIdle: a peer that was started again is found also by who sends it nothing but introductions, seldom.
func TestSealedIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Keys: ringOf(1)}, b: Config{Keys: ringOf(1)}})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, []byte("the first life"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		p.b.Close()
		time.Sleep(time.Second)
		if err := p.toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB, Keys: ringOf(1), AcceptAny: true, OnEvent: p.note})
		time.Sleep(4 * helloIdle)
		if n := len(p.b.Conns()); n != 1 {
			t.Errorf("half a minute later it has %d peers", n)
		}
	})
}

// TestSealedForgedChallenge: a forged challenge that comes before the true one costs a moment.
func TestSealedForgedChallenge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		p.a.Close()
		p.b.Close()
		var forged atomic.Bool
		p.net.Link(addrB, addrA, simnet.Link{Latency: time.Millisecond, Script: func(_ int, b []byte) simnet.Verdict {
			if forged.Load() || seal.KindOf(b) != seal.Challenge {
				return simnet.Deliver()
			}
			forged.Store(true)
			c := bytes.Clone(b)
			c[len(c)-13] ^= 1 // within the challenge
			go p.net.Inject(addrB, addrA, c)
			return simnet.Drop()
		}})
		p.a = p.open(addrA, &Config{ID: 1, Memory: p.memA, Keys: ringOf(1), OnEvent: p.note})
		p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB, Keys: ringOf(1), AcceptAny: true, OnEvent: p.note})
		p.toB = p.connect(p.a, Peer{ID: 2, Addr: addrB, Size: 1 << 20})
		began := time.Now()
		if err := p.toB.Write(t.Context(), write(64, []byte("hello"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 500*time.Millisecond || !forged.Load() {
			t.Errorf("it took %v; forged: %v", took, forged.Load())
		}
	})
}
