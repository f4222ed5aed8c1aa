package dgrdma

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestLettersAreUnderWayTogether checks that letters do not wait for each other on a far path, up to
// what a box holds.
func TestLettersAreUnderWayTogether(t *testing.T) {
	const way = 50 * time.Millisecond
	for _, c := range []struct{ letters, size, trips int }{{60, 100, 1}, {128, 64, 1}, {128, 0, 1}, {8, MaxLetter, 1}, {9, MaxLetter, 2}, {129, 1, 2}} {
		synctest.Test(t, func(t *testing.T) {
			p, here, there := posts(t, pairConfig{link: simnet.Link{Latency: way}})
			defer p.close()
			var b mailbox
			began := time.Now()
			var last time.Duration
			for range c.letters {
				l := b.letter(p.toB.Life(), strings.Repeat("x", c.size))
				settled := l.Settled
				l.Settled = func(err error) { settled(err); last = time.Since(began) }
				here.channel(0).Mail(l)
			}
			time.Sleep(time.Duration(2*c.trips-1)*way + way/5)
			synctest.Wait()
			synctest.Wait()
			if n := len(there.came()); n != c.letters {
				t.Errorf("%d of %d letters of %d bytes came after %d trips", n, c.letters, c.size, c.trips)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			b.once(t, nil)
			if most := time.Duration(2*c.trips)*way + way/2; last > most {
				t.Errorf("%d letters of %d bytes took %v, want %v", c.letters, c.size, last, most)
			}
		})
	}
}

// chronicle notes how letters went, in the order in which that became known.
type chronicle struct {
	mu      sync.Mutex
	settled []string
	failed  []string
}

func (c *chronicle) letter(life uint32, text string) Letter {
	return Letter{Life: life, Bytes: []byte(text), Settled: func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.failed = append(c.failed, text)
		} else {
			c.settled = append(c.settled, text)
		}
	}}
}

// texts returns letters of all lengths, each of them with its number.
func texts(r *rand.Rand, n int) (all []string) {
	for i := range n {
		number := fmt.Sprintf("%06d", i)
		all = append(all, number+strings.Repeat("x", r.IntN([]int{1, 60, 200, MaxLetter - 5}[r.IntN(4)])))
	}
	return all
}

// TestLettersInOrder checks that letters are read once and in the order in which they were sent, and
// settled in it, whatever the network does to their frames, also where a letter takes several.
func TestLettersInOrder(t *testing.T) {
	for _, mtu := range []int{200, 1500} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{MTU: mtu}
			bad := simnet.Link{Latency: 5 * time.Millisecond, Loss: 0.1, Duplicate: 0.1, Reorder: 0.3, ReorderBy: 7 * time.Millisecond}
			p, here, there := posts(t, pairConfig{link: bad, a: cfg, b: cfg})
			defer p.close()
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			want := [2][]string{texts(r, 500), texts(r, 500)}
			var got [2]chronicle
			for i := range want[0] {
				here.channel(0).Mail(got[0].letter(p.toB.Life(), want[0][i]))
				there.channel(0).Mail(got[1].letter(p.toA.Life(), want[1][i]))
				if r.IntN(10) == 0 {
					time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
					synctest.Wait()
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			for i, came := range [][]string{there.came(), here.came()} {
				if !slices.Equal(came, want[i]) {
					t.Errorf("seed %d, MTU %d: %d letters of %d came, or not in order", seed, mtu, len(came), len(want[i]))
				}
				if !slices.Equal(got[i].settled, want[i]) {
					t.Errorf("seed %d, MTU %d: %d letters were settled, %d failed, or not in order", seed, mtu, len(got[i].settled), len(got[i].failed))
				}
			}
		})
	}
}

// TestLettersOfAnotherLife checks that letters begin again with the first place of the box after each end
// of a life, whichever letters were under way: those to the new life are all read. No letter is said to be read that
// was not, although one may be acknowledged that waits for others.
func TestLettersOfAnotherLife(t *testing.T) {
	ends := map[string]func(p *pair){
		"reset here":  func(p *pair) { p.toB.Reset(0) },
		"reset there": func(p *pair) { p.toA.Reset(0) },
		"restart": func(p *pair) {
			kill(p.b)
			p.b = p.open(addrB, &Config{ID: 2, Memory: p.memB})
			p.toA = p.connect(p.b, Peer{ID: 1, Addr: addrA})
		},
	}
	for name, end := range ends {
		for seed := range uint64(20) {
			synctest.Test(t, func(t *testing.T) {
				p, here, there := posts(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
				defer p.close()
				r := rand.New(rand.NewPCG(seed, 0))
				bad := simnet.Link{Latency: time.Millisecond, Loss: 0.3, Reorder: 0.5, ReorderBy: 2 * time.Millisecond}
				p.net.Link(addrA, addrB, bad)
				var got chronicle
				before := texts(r, 40)
				for _, text := range before {
					here.channel(0).Mail(got.letter(p.toB.Life(), text))
					time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
					synctest.Wait()
				}
				time.Sleep(time.Duration(r.IntN(8)) * time.Millisecond)
				synctest.Wait()
				end(p)
				if name == "restart" {
					read := there.came()
					there = newShelf("post", 1<<17)
					serve(t, p.b, there)
					there.letters = read
				}
				p.net.Link(addrA, addrB, simnet.Link{Latency: time.Millisecond})
				time.Sleep(5 * time.Second)
				synctest.Wait()
				read := there.came()
				got.mu.Lock()
				if n := len(got.settled) + len(got.failed); n != len(before) || len(got.failed) > 0 && len(read) < len(got.settled) || !slices.Equal(read[:len(got.settled)], got.settled) {
					t.Errorf("%s, seed %d: %d of %d letters were settled, %d of them as read, and %d were", name, seed, n, len(before), len(got.settled), len(read))
				}
				got.mu.Unlock()
				after := texts(r, 200)
				var later mailbox
				for _, text := range after {
					here.channel(0).Mail(later.letter(p.toB.Life(), text))
				}
				time.Sleep(time.Second)
				synctest.Wait()
				later.once(t, nil)
				if came := there.came()[len(read):]; !slices.Equal(came, after) {
					t.Errorf("%s, seed %d: %d of %d letters came to the new life, or not in order", name, seed, len(came), len(after))
				}
			})
		}
	}
}

// TestLettersAcrossNoService checks that letters that failed because the peer had no such service take no place: those
// after it has one are read.
func TestLettersAcrossNoService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		here, there := newShelf("post", 1<<17), newShelf("post", 1<<17)
		serve(t, p.a, here)
		var early, late mailbox
		for range 5 { // before anything is known of the peer, and after
			here.channel(0).Mail(early.letter(p.toB.Life(), "to nowhere"))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		early.once(t, ErrNoService)
		serve(t, p.b, there)
		time.Sleep(time.Second)
		synctest.Wait()
		for range 5 {
			here.channel(0).Mail(late.letter(p.toB.Life(), "letter"))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		late.once(t, nil)
		if n := len(there.came()); n != 5 {
			t.Errorf("%d of 5 letters came", n)
		}
	})
}
