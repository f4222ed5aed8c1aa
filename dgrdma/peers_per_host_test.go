package dgrdma

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// TestHostWhosePeersAreGone checks that a host whose places are taken by peers that are long gone,
// as programs are that came, wrote and ended, has them again for others; and that one whose peers
// are there has not (attack A10, SECURITY.md).
func TestHostWhosePeersAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{MaxPeers: 40, PeersPerHost: 4})
		defer e.Close()
		// One after the other, each from a port of its own.
		port := func(i int) transport.Addr { return udpAddr(fmt.Sprintf("10.0.0.1:%d", 1000+i)) }
		for i := range 20 {
			w.introduce(t, port(i), frame.EndpointID(10+i), uint32(5+i))
			time.Sleep(time.Hour)
		}
		if n := len(e.Conns()); n != 4 {
			t.Errorf("%d peers of a host, want 4", n)
		}
		for i := range 4 {
			w.introduce(t, port(40+i), 9, 5)
		}
		w.frames(time.Second)
		for i := range 20 {
			w.shake(port(60+i), 9, frame.Handshake{Kind: frame.HandshakeHello, Sender: 5})
			if welcomed(w.frames(time.Second), port(60+i)) {
				t.Fatal("a host has more peers than places")
			}
		}
		w.introduce(t, udpAddr("10.0.0.2:1"), 9, 5)
		time.Sleep(time.Minute)
		w.introduce(t, port(100), 9, 5)
	})
}
