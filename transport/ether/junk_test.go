package ether_test

import (
	"testing"
	"time"

	"github.com/mdlayher/ethernet"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/ether"
)

// TestJunkHoldsNobody (attack A1, SECURITY.md): Ethernet frames that hold none of ours
// do not prolong the time that Poll waits; who waits has other things to look at.
func TestJunkHoldsNobody(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		c := listen(t, ether.Config{Interface: "d1", NoRing: !ring, NoXDP: !ring})
		in := inject(t, "d0")
		end, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-end:
					return
				case <-time.After(100 * time.Microsecond):
					in.send(t, &ethernet.Frame{Destination: hardware(c), EtherType: ether.EtherType})
				}
			}
		}()
		defer func() { close(end); <-done }()
		const times, wait = 5, 100 * time.Millisecond
		overdue := time.AfterFunc(10*times*wait, func() { c.Close() })
		defer overdue.Stop()
		for range times {
			if n, err := c.Recv(make([]transport.Datagram, 4), wait); n != 0 || err != nil {
				t.Fatalf("waiting for %v, and no longer: %d, %v", wait, n, err)
			}
		}
		if c.Stats().Foreign == 0 {
			t.Error("the junk did not arrive")
		}
	})
}
