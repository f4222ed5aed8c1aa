package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestNoMoreOpenThanAPeerTakes checks that no more small transactions, many of which fit a frame,
// are under way than the kind of peer can have incomplete (DGRDMA-039; quirks F6, D1-12, L2).
func TestNoMoreOpenThanAPeerTakes(t *testing.T) {
	for _, x := range []struct {
		prof Profile
		most int
	}{{FPGA(), 32}, {OpenCPI(false), 256}, {Legacy(false), 1}} {
		withFakePeer(t, Config{}, x.prof, func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
			post := func() {
				t.Helper()
				if err := c.Post(write(64, pattern(1, 16), 0, 1)); err != nil {
					t.Fatal(err)
				}
			}
			post()
			first := s.recv(time.Millisecond)
			b := s.encode(1)
			frame.PutAck(b, first[0].Seq, 1) // a card has to show itself
			s.raw(b)
			s.recv(time.Millisecond)
			for range x.most + 16 {
				post()
			}
			frames, open := 0, map[uint32]bool{}
			for _, f := range s.recv(time.Millisecond) {
				frames++
				for cur := f.Cursor(); cur.Next(); {
					open[cur.Msg.Txn] = true
				}
			}
			if len(open) != x.most || x.most > 1 && frames >= x.most {
				t.Errorf("%s: %d transactions in %d frames, want %d in fewer", x.prof.Name, len(open), frames, x.most)
			}
		})
	}
}
