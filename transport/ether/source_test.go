package ether_test

import (
	"bytes"
	"net"
	"testing"

	"github.com/mdlayher/ethernet"

	"github.com/dgrdma/dgrdma/transport/ether"
)

// TestSourceOfMany checks that a frame whose source is a group, every machine or none is dropped and counted, as an answer would
// go there (F4). What comes after it from an interface is taken.
func TestSourceOfMany(t *testing.T) {
	inBothModes(t, func(t *testing.T, ring bool) {
		cable(t, 1500)
		a, b := listen(t, ether.Config{Interface: "d0"}), listen(t, ether.Config{Interface: "d1", NoRing: !ring, NoXDP: !ring})
		in := inject(t, "d0")
		for n, source := range []net.HardwareAddr{
			{255, 255, 255, 255, 255, 255}, {1, 0, 0x5e, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 1}, {3, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0},
		} {
			for range 2 { // also the same again
				in.send(t, &ethernet.Frame{Source: source, Destination: hardware(b), EtherType: ether.EtherType, Payload: frame(1, 60, 7)})
			}
			want := frame(1, 60, byte(20+n))
			send(t, a, b.LocalAddr(), want)
			if got := collect(t, b, 1)[0]; !bytes.Equal(got.Data, want) || got.From != a.LocalAddr() {
				t.Fatalf("from %v: received %.20x from %v", source, got.Data, got.From)
			}
			if s := b.Stats(); s.Foreign != uint64(2*(n+1)) {
				t.Errorf("from %v: %d are counted, want %d", source, s.Foreign, 2*(n+1))
			}
		}
	})
}
