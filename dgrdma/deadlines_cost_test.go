package dgrdma

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
)

// TestDeadlinesOfManyPeers checks that peers that make the endpoint wait for something at moments
// of their choice, with each of their frames, cost little more when there are many (attack A5,
// SECURITY.md).
func TestDeadlinesOfManyPeers(t *testing.T) {
	const frames, rounds = 2000, 3
	cost := func(peers int) (least time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			e, w := openForgery(t, Config{MaxPeers: peers, PeersPerHost: peers})
			defer e.Close()
			addr := func(i int) transport.Addr { return udpAddr(fmt.Sprintf("10.0.0.1:%d", 1000+i%peers)) }
			for i := range peers {
				w.introduce(t, addr(i), 9, uint32(5+i))
			}
			for round := range rounds {
				began := processorTime()
				for i := range frames {
					// Another epoch of the peer's, which is asked again and again.
					w.shake(addr(i), 9, frame.Handshake{Kind: frame.HandshakeHello, Sender: uint32(1<<20 + round*frames + i)})
					time.Sleep(50 * time.Microsecond)
				}
				if d := (processorTime() - began) / frames; round == 0 || d < least {
					least = d
				}
			}
		})
		return least
	}
	few, many := cost(16), cost(4000)
	t.Logf("%v for a frame with 16 peers, %v with 4000", few, many)
	if fixture.Race {
		return // it makes what does not stay in a cache cost many times as much
	}
	// A look at each of the peers would take 80 microseconds.
	if many > 6*few+20*time.Microsecond {
		t.Errorf("a frame costs %v with 4000 peers, %v with 16", many, few)
	}
}

// processorTime is what the process took so far: time stands still in a bubble.
func processorTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
