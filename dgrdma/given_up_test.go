package dgrdma

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestHintAtSmallMTU checks that the error of a peer that timed out names a path that carries less
// than our frames where that can be the reason: long ones were never acknowledged. A peer that dies
// after such frames arrived, or before one was sent, died of something else.
func TestHintAtSmallMTU(t *testing.T) {
	const hint = "the option mtu"
	for _, c := range []struct {
		name          string
		carries       int // of frames to the peer
		before, after int // bytes written, until the peer dies and when it is dead
		hinted        bool
	}{
		{"carries short ones", 1400, 100, 5000, true},
		{"carries none, as far as is known", 1400, 0, 5000, true},
		{"long ones had arrived", 2000, 5000, 5000, false},
		{"only short ones were sent", 2000, 100, 100, false},
		{"nothing long was sent", 1400, 0, 1000, false},
		{"nothing that some way does not carry", 2000, 100, surelyCarried - frame.SessionHeaderSize - frame.MessageHeaderSize, false},
		{"a byte that some way does not carry", 2000, 100, surelyCarried - frame.SessionHeaderSize - frame.MessageHeaderSize + 1, true},
		{"as long ones had arrived", 2000, 1300, 1300, false},
		{"shorter ones had arrived", 2000, 1300, 1301, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := simnet.New(1)
				defer n.Close()
				p := &pair{t: t, net: n}
				open := func(id uint16, mtu int) *Endpoint {
					e, err := New(n.Attach(simnet.Addr(uint32(id)), simnet.Config{MTU: mtu}), &Config{ID: frame.EndpointID(id), Memory: p.region(1 << 16), AcceptAny: true})
					if err != nil {
						t.Fatal(err)
					}
					return e
				}
				a, b := open(1, 2000), open(2, c.carries)
				defer a.Close()
				defer b.Close()
				toB := p.connect(a, Peer{ID: 2, Addr: addrB, Size: 1 << 16})
				if err := toB.Write(t.Context(), write(0, nil, 0, 1)); err != nil {
					t.Fatal(err)
				}
				if c.before > 0 {
					if err := toB.Write(t.Context(), write(0, pattern(1, c.before), 0, 1)); err != nil {
						t.Fatal(err)
					}
				}
				if c.carries == 2000 || c.after <= 1000 {
					n.Link(addrA, addrB, simnet.Link{Loss: 1})
				}
				err := toB.Write(t.Context(), write(0, pattern(1, c.after), 0, 1))
				if err == nil || strings.Contains(err.Error(), hint) != c.hinted {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// TestHintAtProfile checks that the error of a silent card says that it may be that of another kind
// of peer.
func TestHintAtProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		a := p.open(addrA, &Config{ID: 1})
		defer a.Close()
		card, err := ProfileByName("fpga", false)
		if err != nil {
			t.Fatal(err)
		}
		c := p.connect(a, Peer{ID: 2, Addr: addrB, Size: 1 << 16, Profile: &card})
		err = c.Write(t.Context(), write(0, pattern(1, 8), 64, 1))
		if err == nil || !strings.Contains(err.Error(), "profile") {
			t.Errorf("%v", err)
		}
	})
}
