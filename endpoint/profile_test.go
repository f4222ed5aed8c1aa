package endpoint

import (
	"testing"
	"testing/synctest"

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
