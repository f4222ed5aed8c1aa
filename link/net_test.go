package link

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// net is a simulated network of hosts.
type net struct {
	t     testing.TB
	sim   *simnet.Network
	seed  uint64
	clean bool // buffers that are given back keep their bytes
}

func newNet(t testing.TB, seed uint64) *net {
	n := &net{t: t, sim: simnet.New(seed), seed: seed}
	t.Cleanup(func() { n.sim.Close() })
	return n
}

// host opens the host with that id, which is its address too, until the test ends.
func (n *net) host(id uint16, cfg *Config) *Host {
	n.t.Helper()
	h, err := n.open(id, cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { h.Close() })
	return h
}

// withoutPeers ends something of the host with that id, of which no other host hears.
func (n *net) withoutPeers(id uint16, ends func() error) {
	for other := range uint16(9) {
		n.sim.Link(simnet.Addr(uint32(id)), simnet.Addr(uint32(other)), simnet.Link{Down: true})
		defer n.sim.Link(simnet.Addr(uint32(id)), simnet.Addr(uint32(other)), simnet.Link{})
	}
	if err := ends(); err != nil {
		n.t.Error(err)
	}
}

func (n *net) open(id uint16, cfg *Config) (*Host, error) {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.Memory == 0 {
		c.Memory = 9 << 20 // of which half has room for the usual buffers of a link
	}
	c.Endpoint.ID = dgrdma.EndpointID(id)
	// Four seeds make all four kinds of pairs, on any machine.
	c.Endpoint.NoHelp = true
	if n.seed>>(id&1)&1 == 1 {
		c.Endpoint.NoHelp = false
	}
	c.Open = func(e *dgrdma.Config) (*dgrdma.Endpoint, error) {
		return dgrdma.New(n.sim.Attach(simnet.Addr(uint32(id)), simnet.Config{Poison: !n.clean}), e)
	}
	return Open("", &c)
}

// at returns the endpoint string of the host with that id.
func at(id uint16) string {
	return fmt.Sprintf("ocpi-ether-rdma:%v;4096.%d.%[2]d", simnet.Addr(uint32(id)), id)
}

// dial is Host.Dial for simulated addresses.
func dial(ctx context.Context, h *Host, to uint16, port string, o *Options) (*Link, error) {
	c, err := h.ep.Connect(dgrdma.Peer{ID: dgrdma.EndpointID(to), Addr: simnet.Addr(uint32(to))})
	if errors.Is(err, dgrdma.ErrPeerExists) {
		for _, x := range h.ep.Conns() {
			if x.Name().ID == dgrdma.EndpointID(to) {
				c, err = x, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if o == nil {
		o = &Options{}
	}
	if o.Directions == 0 {
		o.Directions = Send
	}
	return h.peerOf(c).dial(ctx, port, o)
}

// pair makes a link from host 1 to host 2.
func pair(t testing.TB, n *net, dialer, listener *Options) (a, b *Host, out, in *Link) {
	t.Helper()
	a, b = n.host(1, nil), n.host(2, nil)
	out, in = join(t, a, b, "port", dialer, listener)
	return a, b, out, in
}

func join(t testing.TB, a, b *Host, port string, dialer, listener *Options) (out, in *Link) {
	t.Helper()
	l, err := b.Listen(port, listener)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan *Link, 1)
	go func() {
		x, err := l.Accept(context.Background())
		if err != nil {
			t.Error(err)
		}
		accepted <- x
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err = dial(ctx, a, uint16(b.ep.ID()), port, dialer)
	if err != nil {
		t.Fatal(err)
	}
	return out, <-accepted
}

// nothingLeft checks that all links are over and their memory is free.
func nothingLeft(t testing.TB, hosts ...*Host) {
	t.Helper()
	for _, h := range hosts {
		if free := h.block.Free(); len(free) != 1 || free[0].N != h.block.Size() {
			t.Errorf("host %d: memory that is free: %v", h.ep.ID(), free)
		}
		if n := h.budget.Used(); n != 0 {
			t.Errorf("host %d: %d bytes of messages to be sent are left", h.ep.ID(), n)
		}
		if s := h.Stats(); s.Ended != 0 || len(h.endedLinks.byHost) != 0 {
			t.Errorf("host %d: %d ended links are counted, of %d hosts", h.ep.ID(), s.Ended, len(h.endedLinks.byHost))
		}
		if s := h.Stats(); len(s.Links) != 0 || s.Free != s.Memory {
			t.Errorf("host %d: %d links are listed, %d bytes of %d free", h.ep.ID(), len(s.Links), s.Free, s.Memory)
		}
		for _, c := range h.ep.Conns() {
			p := h.peerOf(c)
			if k := len(p.all()); k != 0 {
				t.Errorf("host %d: %d links are left", h.ep.ID(), k)
			}
			if len(p.ended)+len(p.endedByAttempt)+len(p.quarantine) != 0 {
				t.Errorf("host %d: %d ended links are left, %d of attempts, %d pieces of memory", h.ep.ID(), len(p.ended), len(p.endedByAttempt), len(p.quarantine))
			}
			if n := p.budget.Used(); n != 0 {
				t.Errorf("host %d: %d bytes of messages to %v are left", h.ep.ID(), n, p)
			}
			if p.replies != 0 || h.replies.Load() != 0 {
				t.Errorf("host %d: %d answers of %d wait for %v", h.ep.ID(), p.replies, h.replies.Load(), p)
			}
			if p.grants.Len() > 0 {
				t.Errorf("host %d: %v may still write", h.ep.ID(), p)
			}
		}
	}
}
