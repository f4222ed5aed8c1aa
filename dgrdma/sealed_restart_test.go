package dgrdma

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestSealedIdle checks that a peer that was started again is found also by a side that sends it nothing but HELLOs, seldom.
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
		time.Sleep(4 * 8 * time.Second)
		if n := len(p.b.Conns()); n != 1 {
			t.Errorf("half a minute later it has %d peers", n)
		}
	})
}

// TestSealedForgedChallenge checks that a forged challenge that comes before the true one costs a
// moment.
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

// TestSealedLateSecond checks that the end of a handshake that was held back until the peer started again is worth nothing.
func TestSealedLateSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held wiretap
		p := newPair(t, pairConfig{a: Config{Keys: ringOf(1)}, b: Config{Keys: ringOf(1)}, link: simnet.Link{Script: func(n int, b []byte) simnet.Verdict {
			if to, _ := frame.IDsOf(b); to != 2 || seal.KindOf(b) != seal.Second {
				return simnet.Deliver()
			}
			held.hear(n, b)
			return simnet.Drop()
		}}})
		defer p.close()
		for _, c := range []*Conn{p.toB, p.toA} {
			if err := c.Write(t.Context(), write(64, []byte("the first life"), 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		p.a.Close()
		p.a = p.open(addrA, &Config{ID: 1, Memory: p.memA, Keys: ringOf(1), OnEvent: p.note})
		p.toA.Reset(0) // before the other side connects, or it ends what that has begun
		p.toB = p.connect(p.a, Peer{ID: 2, Addr: addrB, Size: 1 << 20})
		if err := p.toB.Write(t.Context(), write(64, []byte("the second life"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		if len(held.heard()) == 0 {
			t.Fatal("nothing was held back")
		}
		for _, b := range held.heard() {
			p.net.Inject(addrA, addrB, b)
		}
		time.Sleep(time.Second)
		began := time.Now()
		if err := p.toB.Write(t.Context(), write(64, []byte("on"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// TestSealedForgets checks that no more is kept of peers that were connected to, and are closed, than of those that may be there.
func TestSealedForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Keys: ringOf(1), MaxPeers: 4}, b: Config{Keys: ringOf(1)}})
		defer p.close()
		for i := range uint32(60) {
			c := p.connect(p.a, Peer{ID: frame.EndpointID(100 + i), Addr: simnet.Addr(100 + i)})
			time.Sleep(time.Second)
			c.Close()
			time.Sleep(20 * time.Second)
		}
		if n, _ := p.a.sealed.Pairs(); n > 8 {
			t.Errorf("%d are kept", n)
		}
	})
}

// TestSealedRoom checks that a peer that is down, or long silent, makes room for another one where there is none.
func TestSealedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Keys: ringOf(1)}, b: Config{Keys: ringOf(1), AcceptAny: true, MaxPeers: 3, PeersPerHost: 3}})
		defer p.close()
		for i := range uint32(10) {
			e := p.open(simnet.Addr(100+i), &Config{ID: frame.EndpointID(100 + i), Keys: ringOf(1)})
			if err := p.connect(e, Peer{ID: 2, Addr: addrB, Size: 1 << 20}).Write(t.Context(), write(64, []byte("hello"), 0, 1)); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
			if i%2 == 0 {
				p.net.Link(simnet.Addr(100+i), addrB, simnet.Link{Down: true}) // it cannot say that it goes
				time.Sleep(2 * time.Minute)
			}
			e.Close()
		}
	})
}

// TestSealedKeysAreReadOnce checks that keys that are wiped when the endpoint has them serve on.
func TestSealedKeysAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, own := seal.Key{1}, seal.Key{2}
		ring := &seal.Ring{All: &all, Own: map[uint16]*seal.Key{1: &own, 2: &own}}
		p := newPair(t, pairConfig{})
		defer p.close()
		p.a.Close()
		p.b.Close()
		p.a = p.open(addrA, &Config{ID: 1, Memory: p.memA, Keys: ring})
		own, all = seal.Key{}, seal.Key{}
		clear(ring.Own)
		ring.All = nil
		p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB, Keys: ringOf(2), AcceptAny: true})
		if err := p.connect(p.a, Peer{ID: 2, Addr: addrB, Size: 1 << 20}).Write(t.Context(), write(64, []byte("hello"), 0, 1)); err != nil {
			t.Error(err)
		}
	})
}

// TestSealedChangedKey checks that the error for a peer that comes back with another key says that
// this is so.
func TestSealedChangedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Keys: ringOf(1)}, b: Config{Keys: ringOf(1)}})
		defer p.close()
		for _, again := range []*Config{{Keys: ringOf(2)}, nil} {
			if err := p.toB.Write(t.Context(), write(64, []byte("hello"), 0, 1)); err != nil {
				t.Fatal(err)
			}
			p.b.Close()
			p.toB.Reset(0)
			if again != nil {
				again.ID, again.Memory, again.AcceptAny = 2, p.memB, true
				p.b = p.open(addrB, again)
			}
			err := p.toB.Write(t.Context(), write(64, []byte("hello"), 0, 1))
			if !errors.Is(err, ErrPeerDown) || errors.Is(err, ErrNoKey) != (again != nil) {
				t.Errorf("another key: %v; %v", again != nil, err)
			}
			p.b.Close()
			p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB, Keys: ringOf(1), AcceptAny: true})
			p.toB.Reset(0)
		}
	})
}
