package dgrdma

import (
	"context"
	"testing"
	"time"
)

// TestDialBothFamilies checks that an endpoint without an address of its own reaches peers of IPv4 and of
// IPv6 one after the other, and refuses what is on another wire.
func TestDialBothFamilies(t *testing.T) {
	a, err := Open("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, there := range []string{"udp:127.0.0.1", "udp:[::1]", "udp"} {
		b, err := Open(there, &Config{AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		toB, err := a.Dial(b.URL())
		if err != nil {
			t.Errorf("%s: %v", there, err)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		data := make([]byte, 60_000)
		data[len(data)-1] = 9
		err = toB.Write(ctx, &Transaction{Segments: []Segment{{Addr: 4, Bytes: data}}, Completion: Word(0, 7)})
		if m := b.Memory().(*Region); err != nil || m.Load32(0) != 7 || m.Bytes()[4+len(data)-1] != 9 {
			t.Errorf("%s: %v", there, err)
		}
		back, err := ParsePeer(a.URLTo(toB)) // at the address that the peer sees
		if known := b.Conns(); err != nil || len(known) != 1 || known[0].Peer().Addr.AddrPort() != back.Addr.AddrPort() || back.ID != a.ID() {
			t.Errorf("%s: the peer knows %v, URLTo is %s: %v", there, known, a.URLTo(toB), err)
		}
	}
	if _, err := a.Connect(Peer{ID: 2, Addr: EtherAddr([6]byte{2})}); err == nil {
		t.Error("connected over UDP to an Ethernet address")
	}
	if _, err := a.Connect(Peer{ID: 2}); err == nil {
		t.Error("connected to no address")
	}
}
