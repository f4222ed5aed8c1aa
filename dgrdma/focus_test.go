package dgrdma

import (
	"testing"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// focusing is a wire that notes the address that it is to listen to.
type focusing struct {
	*simnet.Conn
	on transport.Addr
}

func (f *focusing) Focus(a transport.Addr) { f.on = a }

// TestFocus checks that the transport is told the address of the only peer, as long as there is but
// one and no other may speak.
func TestFocus(t *testing.T) {
	n := simnet.New(1)
	defer n.Close()
	f := &focusing{Conn: n.Attach(addrB, simnet.Config{})}
	e, err := New(f, &Config{ID: 2, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var conns []*Conn
	connect := func(i uint32) func() {
		return func() {
			c, err := e.Connect(Peer{ID: 10, Addr: simnet.Addr(10 + i)})
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
	}
	one, two, none := simnet.Addr(10), simnet.Addr(11), transport.Addr{}
	for _, x := range []struct {
		name string
		does func()
		want transport.Addr
	}{
		{"one peer", connect(0), one},
		{"two peers", connect(1), none},
		{"one is closed", func() { conns[0].Close() }, two},
		{"all are accepted", func() { e.AcceptAny(true) }, none},
		{"all are welcome too", func() { e.Welcome(true) }, none},
		{"and not accepted", func() { e.AcceptAny(false) }, none},
		{"nor welcome", func() { e.Welcome(false) }, two},
		{"none is left", func() { conns[1].Close() }, none},
	} {
		if x.does(); f.on != x.want {
			t.Errorf("%s: listens to %v, want %v", x.name, f.on, x.want)
		}
	}
}
