package dgrdma

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// reader is on the path of a pair, and drops nothing: it knows the last question of either side.
type reader struct {
	p    *pair
	mu   sync.Mutex
	last [2][]byte
	stop chan struct{}
	wg   sync.WaitGroup
}

// ends are the addresses of a pair: what last[i] has went from ends[i].
var ends = [2]transport.Addr{addrA, addrB}

// readPath has an attacker read on the path of a pair, which takes that long, and inject something as often as every says.
func readPath(p *pair, latency, every time.Duration, inject func(r *reader, i int, last []byte)) *reader {
	r := &reader{p: p, stop: make(chan struct{})}
	for i, from := range ends {
		p.net.Link(from, ends[1-i], simnet.Link{Latency: latency, Script: func(_ int, b []byte) simnet.Verdict {
			if seal.KindOf(b) == seal.Question {
				r.mu.Lock()
				r.last[i] = bytes.Clone(b)
				r.mu.Unlock()
			}
			return simnet.Deliver()
		}})
	}
	r.wg.Go(func() {
		for {
			select {
			case <-r.stop:
				return
			case <-time.After(every):
			}
			r.mu.Lock()
			last := r.last
			r.mu.Unlock()
			for i, b := range last {
				if b != nil {
					inject(r, i, b)
				}
			}
		}
	})
	return r
}

func (r *reader) close() {
	close(r.stop)
	r.wg.Wait()
}

// TestSealedForgedChallenges checks that an attacker on the path keeps the two sides from nothing, however long the path is, though it
// sends each of them challenges all the time that neither side made, or that the peer made for the same question from other addresses.
func TestSealedForgedChallenges(t *testing.T) {
	n := byte(0)
	forge := func(r *reader, i int, last []byte) {
		swapped := seal.Swapped([4]byte(last))
		b := append(swapped[:], last[4:]...)
		n++
		b[9], b[20] = seal.Challenge.Flags(), n
		r.p.net.Inject(ends[1-i], ends[i], b)
	}
	port := uint32(1000)
	elsewhere := func(r *reader, i int, last []byte) {
		port++
		r.p.net.Link(ends[1-i], simnet.Addr(port), simnet.Link{Script: func(_ int, b []byte) simnet.Verdict {
			c := bytes.Clone(b)
			if seal.KindOf(c) == seal.Challenge {
				go r.p.net.Inject(ends[1-i], ends[i], c)
			}
			return simnet.Drop()
		}})
		r.p.net.Inject(simnet.Addr(port), ends[1-i], last)
	}
	for _, c := range []struct {
		name   string
		every  time.Duration
		inject func(r *reader, i int, last []byte)
		refuse bool
	}{
		{"nobody", time.Hour, func(*reader, int, []byte) {}, false},
		{"forged", 21 * time.Millisecond, forge, true},
		{"forged, more often", time.Millisecond, forge, true},
		{"of other addresses", 21 * time.Millisecond, elsewhere, false},
		{"of other addresses, more often", 500 * time.Microsecond, elsewhere, false},
	} {
		for _, latency := range []time.Duration{5 * time.Millisecond, 30 * time.Millisecond, 107 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				side := Config{Keys: ringOf(1), AcceptAny: true, GiveUp: 10 * time.Second}
				p := newPair(t, pairConfig{a: side, b: side, link: simnet.Link{Down: true}})
				defer p.close()
				r := readPath(p, latency, c.every, c.inject)
				defer r.close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				err := p.toB.Write(ctx, write(64, []byte("hello"), 0, 1))
				took := time.Since(began)
				if err != nil || took > 12*latency+100*time.Millisecond || string(p.memB.Bytes()[64:69]) != "hello" {
					t.Errorf("%s, %v one way: %v after %v", c.name, latency, err, took)
				}
				if n := p.a.Stats().RefusedBy(RefusedSeal); n > 0 && !c.refuse || n == 0 && c.refuse && latency > c.every {
					t.Errorf("%s, %v one way: %d are counted as refused", c.name, latency, n)
				}
			})
		}
	}
}

// TestSealedForgedHint checks that a hint that the peer lost its keys counts only from a sender that has the key, and from that one at once
// when it is silent, too.
func TestSealedForgedHint(t *testing.T) {
	for _, genuine := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, there, _ := sealedPair(t, Config{})
			defer p.close()
			if err := p.toB.Write(t.Context(), write(64, []byte("hello"), 0, 1)); err != nil {
				t.Fatal(err)
			}
			said := there.heard()
			p.net.Link(addrB, addrA, simnet.Link{Down: true})
			if err := p.toB.Post(write(64, []byte("nobody says that it came"), 0, 1)); err != nil {
				t.Fatal(err)
			}
			hint := new(seal.Challenger).Answer(nil, 0, &seal.Key{1}, said[len(said)-1], nil)
			if !seal.Unasked(hint) {
				t.Fatalf("it answers %v", seal.KindOf(said[len(said)-1]))
			}
			if !genuine {
				hint[len(hint)-1] ^= 1
			}
			before := p.a.Stats().RefusedBy(RefusedSeal)
			p.net.Inject(addrB, addrA, hint)
			time.Sleep(time.Second / 2) // half of the silence after which it asks without a hint
			asked := 0
			for _, b := range there.heard()[len(said):] {
				if seal.KindOf(b) == seal.Question {
					asked++
				}
			}
			refused := p.a.Stats().RefusedBy(RefusedSeal) - before
			if (asked > 0) != genuine || (refused == 1) == genuine {
				t.Errorf("genuine: %v; it asked %d times for a key, and refused %d", genuine, asked, refused)
			}
		})
	}
}
