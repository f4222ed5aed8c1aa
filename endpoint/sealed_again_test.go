package endpoint

import (
	"testing"
	"testing/synctest"
	"time"
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
