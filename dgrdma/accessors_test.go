package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestWhatIsSaidOfItself checks that an endpoint and a connection tell what they were made with.
func TestWhatIsSaidOfItself(t *testing.T) {
	f := newFeed(t, Config{GiveUp: 3 * time.Second})
	if f.e.ID() != 2 || f.e.GiveUp() != 3*time.Second || !f.e.Manual() || f.e.LocalAddr() != addrB || f.e.Memory() != f.mem {
		t.Errorf("endpoint %d at %v, given up after %v, manual %v, memory %v", f.e.ID(), f.e.LocalAddr(), f.e.GiveUp(), f.e.Manual(), f.e.Memory())
	}
	prof := Legacy(true)
	peer := Peer{ID: 7, Addr: addrA, Size: 4096, Profile: &prof, As: 5}
	c, err := f.e.Connect(peer)
	if err != nil {
		t.Fatal(err)
	}
	if c.Peer() != peer || c.Name() != (PeerName{7, addrA}) || c.Profile() != prof || c.Memory() != f.mem {
		t.Errorf("connection to %v, %+v, %+v, memory %v", c.Name(), c.Peer(), c.Profile(), c.Memory())
	}
	n := simnet.New(1)
	defer n.Close()
	e, err := New(n.Attach(addrA, simnet.Config{}), &Config{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if e.Manual() {
		t.Error("an endpoint with goroutines is manual")
	}
}
