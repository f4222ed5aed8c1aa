package endpoint

import (
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestProfileWithoutRoom: frames too short for one message are an error of
// Connect, not a panic of Post.
func TestProfileWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		e, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for _, size := range []int{1, 20, 40} {
			prof := OpenCPI(false)
			prof.MaxFrame = size
			c, err := e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
			if err == nil {
				t.Errorf("frames of %d bytes were accepted", size)
				c.Close()
			}
		}
	})
}

// TestWireTooNarrow: an endpoint has no longer frames than its wire, whatever it is told to.
func TestWireTooNarrow(t *testing.T) {
	if _, err := (&Config{ID: 1, MTU: 1500}).withDefaults(transport.Caps{MTU: settings.LeastFrame - 1}); err == nil {
		t.Error("a wire whose frames have no room for data will do")
	}
	for _, most := range []int{1400, frame.MaxData, 1 << 20} {
		cfg, err := (&Config{ID: 1, MTU: frame.MaxData}).withDefaults(transport.Caps{MTU: most})
		if want := min(most, frame.MaxData); err != nil || cfg.MTU != want {
			t.Errorf("frames of %d bytes, want %d: %v", cfg.MTU, want, err)
		}
	}
}

// TestProfileNames: each preset is known by the name that it has.
func TestProfileNames(t *testing.T) {
	for _, name := range settings.Profile.Words {
		for _, udp := range []bool{false, true} {
			if p, err := ProfileByName(name, udp); err != nil || p.Name != name {
				t.Errorf("%q is %q: %v", name, p.Name, err)
			}
		}
	}
}
