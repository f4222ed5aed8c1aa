package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestDestination checks that frames are for the id of the peer, or for our own where the peer
// takes them so (quirk D2-1).
func TestDestination(t *testing.T) {
	for _, profile := range []Profile{FPGA(), OpenCPI2()} {
		withFakePeer(t, Config{}, profile, func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
			want := frame.EndpointID(1)
			if profile.OwnDestination {
				want = 2
			}
			if err := c.Post(write(64, pattern(1, 16), 0, 1)); err != nil {
				t.Fatal(err)
			}
			if sent := s.recv(time.Millisecond); len(sent) != 1 || sent[0].Dst != want || sent[0].Src != 2 {
				t.Errorf("%s: %+v, want one to %d", profile.Name, sent, want)
			}
		})
	}
}
