package endpoint

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// TestPlacesOfAHost: a host has as many learned peers as it may, whoever of them goes and
// comes, and however many of its peers the program connected to.
func TestPlacesOfAHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3
		e, w := openSelecting(t, Config{AcceptAny: true, MaxPeers: 40, PeersPerHost: most})
		defer e.Close()
		w.here = udpAddr("10.0.0.2:7100")
		at := func(port int) transport.Addr { return udpAddr(fmt.Sprintf("10.0.0.1:%d", port)) }
		for i := range most + 1 {
			if _, err := e.Connect(Peer{ID: 7, Addr: at(100 + i)}); err != nil {
				t.Fatal(err)
			}
		}
		port := 1000
		fill := func(n int) {
			t.Helper()
			for range n {
				port++
				w.introduce(t, at(port), 9, 5)
			}
			w.hello(at(port+1), 9, frame.Hello{Life: 5})
			for _, s := range w.frames(time.Millisecond) {
				if s.to == at(port+1) {
					t.Errorf("room for another one of a host that has %d", most)
				}
			}
		}
		fill(most)
		for _, gone := range [][]int{{0}, {2}, {1}, {0, 1}, {1, 2}, {2, 1}, {0, 1, 2}, {2, 1, 0}} {
			var there []*Conn
			for _, c := range e.Conns() {
				if c.learned.Load() {
					there = append(there, c)
				}
			}
			if len(there) != most {
				t.Fatalf("%d are learned, want %d", len(there), most)
			}
			for _, i := range gone {
				there[i].Close()
			}
			fill(len(gone))
		}
	})
}
