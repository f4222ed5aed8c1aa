package netconn

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestConn runs the tests that every net.Conn has to pass.
func TestConn(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts func(t *testing.T) (a, b *link.Host)
		opt   Options
	}{
		{"loopback", func(t *testing.T) (a, b *link.Host) { return open(t, nil), open(t, nil) }, Options{}},
		{"two buffers", func(t *testing.T) (a, b *link.Host) { return open(t, nil), open(t, nil) }, Options{Buffers: 2, Size: 100}},
		{"loss", func(t *testing.T) (a, b *link.Host) {
			w := newWorld(t, 1)
			for _, d := range [][2]uint32{{1, 2}, {2, 1}} {
				w.sim.Link(simnet.Addr(d[0]), simnet.Addr(d[1]), simnet.Link{Loss: 0.02, Duplicate: 0.01})
			}
			return w.a, w.b
		}, Options{}},
		{"no help", func(t *testing.T) (a, b *link.Host) {
			cfg := &link.Config{Endpoint: dgrdma.Config{NoHelp: true}}
			return open(t, cfg), open(t, cfg)
		}, Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixture.NoGoroutineLeft(t)
			a, b := c.hosts(t)
			l := listen(t, b, "port", &c.opt)
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				x, y := join(t, a, l, c.opt)
				return x, y, func() { x.Close(); y.Close() }, nil
			})
			nothingLeft(t, a, b)
		})
	}
}
