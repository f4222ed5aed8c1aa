package udp

import (
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport"
)

// pollsOn fails unless Poll returns many times, with nothing, in spite of what
// happens every 100 microseconds.
func pollsOn(t *testing.T, c *Conn, happens func()) {
	t.Helper()
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-time.After(100 * time.Microsecond):
				happens()
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
}

// TestJunkHoldsNobody (attack A1, SECURITY.md): datagrams that are no frames do not
// prolong the time that Poll waits; who waits has other things to look at.
func TestJunkHoldsNobody(t *testing.T) {
	for _, cfg := range []Config{{}, {NoGRO: true}} {
		for _, size := range []int{0, 1} {
			c := listen(t, "127.0.0.1", cfg)
			stranger, err := net.Dial("udp4", c.LocalAddr().AddrPort().String())
			if err != nil {
				t.Fatal(err)
			}
			defer stranger.Close()
			pollsOn(t, c, func() { stranger.Write(make([]byte, size)) })
			if c.Stats().Foreign == 0 {
				t.Error("the junk did not arrive")
			}
		}
	}
}

// TestErrorsHoldNobody: neither do errors that the network reports, or a stranger in
// its place.
func TestErrorsHoldNobody(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		c, gone := listen(t, ip, Config{}), listen(t, ip, Config{})
		to := gone.LocalAddr()
		gone.Close()
		c.Focus(to)
		batch := []transport.Outgoing{outgoing(to, 1, 50)}
		pollsOn(t, c, func() { c.Send(batch) })
	}
}

// TestManyZones: strangers on many links, as on a machine with many containers, do
// not have an interface looked up for every datagram.
func TestManyZones(t *testing.T) {
	var z zones
	all := func() {
		for scope := range uint32(1000) {
			z.name(1_000_000 + scope)
		}
	}
	all()
	if n := fixture.Allocations(3, all); n != 0 {
		t.Errorf("%v allocations: zones are looked up again", n)
	}
}
