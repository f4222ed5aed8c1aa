package watch

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// network is a simulated network on which everything ends with the test.
type network struct {
	t   testing.TB
	sim *simnet.Network
}

func newNetwork(t testing.TB) *network {
	n := &network{t, simnet.New(1)}
	t.Cleanup(func() { n.sim.Close() })
	return n
}

func (n *network) endpoint(id uint32, cfg dgrdma.Config) *dgrdma.Endpoint {
	n.t.Helper()
	if cfg.Memory == nil {
		memory, err := dgrdma.NewRegion(1 << 16)
		if err != nil {
			n.t.Fatal(err)
		}
		cfg.Memory = memory
	}
	cfg.ID = dgrdma.EndpointID(id)
	e, err := dgrdma.New(n.sim.Attach(simnet.Addr(id), simnet.Config{}), &cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { e.Close() })
	return e
}

// hostAddr is where hosts are: links are dialed by strings, which know no simulated
// addresses.
func hostAddr(id uint32) transport.Addr {
	return transport.UDPAddr(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(id)}), 7100))
}

func hostName(id uint32) string { return fmt.Sprintf("%d@%v", id, hostAddr(id)) }

func (n *network) host(id uint32) *link.Host {
	n.t.Helper()
	h, err := link.Open("", &link.Config{Memory: 1 << 20, Endpoint: dgrdma.Config{ID: dgrdma.EndpointID(id)},
		Open: func(c *dgrdma.Config) (*dgrdma.Endpoint, error) {
			return dgrdma.New(n.sim.Attach(hostAddr(id), simnet.Config{}), c)
		}})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { h.Close() })
	return h
}

func (n *network) connect(e *dgrdma.Endpoint, to uint32) *dgrdma.Conn {
	n.t.Helper()
	at := simnet.Addr(to)
	if e.LocalAddr().Kind() == transport.KindUDP {
		at = hostAddr(to)
	}
	c, err := e.Connect(dgrdma.Peer{ID: dgrdma.EndpointID(to), Addr: at, Size: 1 << 16})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

func writeSome(ctx context.Context, c *dgrdma.Conn, times int) error {
	data := make([]byte, 10_000)
	for range times {
		err := c.Write(ctx, &dgrdma.Transaction{
			Segments: []dgrdma.Segment{{Addr: 4096, Bytes: data}}, Completion: dgrdma.Word(0, 1),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// join makes a link through which a sends to b.
func join(t testing.TB, a, b *link.Host, name string) (out, in *link.Link) {
	t.Helper()
	port, err := b.Listen(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan *link.Link, 1)
	go func() {
		l, err := port.Accept(context.Background())
		if err != nil {
			t.Error(err)
		}
		accepted <- l
	}()
	id := uint32(b.Endpoint().ID())
	out, err = a.Dial(context.Background(), fmt.Sprintf("ocpi-udp-rdma:10.0.0.%d;7100;1048576.%d.16", id, id), name, &link.Options{Buffers: 4, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	return out, <-accepted
}
