package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestLivePeerIsNotGivenUp checks that a peer whose frames come is not given up, though most of what is sent to it is lost: each
// transaction is a frame, and some of them are lost for longer than the time to give up.
func TestLivePeerIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{GiveUp: time.Second}, b: Config{GiveUp: time.Second}})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		p.net.Link(addrA, addrB, simnet.Link{Loss: 0.7})
		over, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for n := uint32(1); ; n++ {
				select {
				case <-over:
					return
				case <-time.After(5 * time.Millisecond):
				}
				if err := p.toA.Post(write(64, nil, 0, n)); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		longest := time.Duration(0)
		for n := range uint32(1000) {
			began := time.Now()
			if err := p.toB.Write(t.Context(), write(64, nil, 0, n)); err != nil {
				t.Errorf("after %v: %v", time.Since(began), err)
				break
			}
			longest = max(longest, time.Since(began))
		}
		if longest < time.Second {
			t.Errorf("no frame was late for longer than %v", longest)
		}
		close(over)
		<-ended
	})
}
