package dgrdma

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestPeerThatNeverAnswered checks that the error of a peer that timed out and was never heard says
// so, and names an old endpoint string before anything else; that of one that was heard, and is
// silent or begins no session, does not. Both are ErrPeerDown.
func TestPeerThatNeverAnswered(t *testing.T) {
	const never, anyMore, kind = "peer never answered; perhaps its endpoint string is an old one, with another id or port", "does not answer any more", "needs its profile"
	for _, c := range []struct {
		name    string
		profile Profile
		speaks  func(s *fakePeer)
		says    []string
		not     string
	}{
		{"nobody", Native(), nil, []string{"asking for a session: " + never, kind, "or takes nothing without a key, or it is full"}, anyMore},
		{"no card", FPGA(), nil, []string{"disabled and enabled", never, kind}, anyMore},
		{"no driver", OpenCPI(true), nil, []string{never, kind}, anyMore},
		{"greeted and left", Native(), func(s *fakePeer) { s.greet(7) }, []string{anyMore}, "never answered"},
		{"of another kind", Native(), func(s *fakePeer) {
			s.send(7, msg{Message: frame.Message{Txn: 1, Count: 1, CompletionAddr: frame.NoCompletion}})
		},
			[]string{"asking for a session (a peer of another kind needs its profile): peer " + anyMore}, "never answered"},
		{"driver that acknowledges nothing", OpenCPI(true), func(s *fakePeer) { s.send(7, data(1, 1, 1, 0, []byte("data"))) }, []string{anyMore}, "never answered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				p := &pair{t: t, net: n}
				e := p.open(addrB, &Config{ID: 2, Memory: p.region(4096)})
				defer e.Close()
				conn := p.connect(e, Peer{ID: 1, Addr: addrA, Profile: &c.profile})
				if c.speaks != nil {
					c.speaks(newStranger(t, n, addrA, 1, 2, addrB))
				}
				err := conn.Write(t.Context(), write(0, pattern(1, 8), 64, 1))
				var peer *PeerError
				if !errors.Is(err, ErrPeerDown) || !errors.As(err, &peer) || !peer.Timeout() || peer.ID != 1 {
					t.Fatal(err)
				}
				for _, want := range c.says {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v: does not say %q", err, want)
					}
				}
				if strings.Contains(err.Error(), c.not) {
					t.Errorf("%v: says %q", err, c.not)
				}
			})
		})
	}
}
