package netconn

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// open opens a host on the loopback interface until the test ends.
func open(t testing.TB, cfg *link.Config) *link.Host {
	t.Helper()
	h, err := link.Open("udp:127.0.0.1", cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// listen listens at a port of a host until the test ends.
func listen(t testing.TB, h *link.Host, port string, opt *Options) *Listener {
	t.Helper()
	l, err := Listen(h, port, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// join makes a connection to a listener.
func join(t testing.TB, from *link.Host, l *Listener, opt Options) (dialed, accepted *Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	came := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		came <- c
	}()
	c, err := (&Dialer{Host: from, Options: opt}).DialContext(ctx, Network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	a := <-came
	t.Cleanup(func() { a.Close() })
	return c.(*Conn), a.(*Conn)
}

// pair makes a connection over the loopback interface.
func pair(t testing.TB) (dialed, accepted *Conn) {
	t.Helper()
	return join(t, open(t, nil), listen(t, open(t, nil), "port", nil), Options{})
}

// world is a simulated network of hosts, of which two are there from the beginning.
type world struct {
	t    testing.TB
	sim  *simnet.Network
	a, b *link.Host
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{t: t, sim: simnet.New(seed)}
	t.Cleanup(func() { w.sim.Close() })
	w.a, w.b = w.host(1, nil), w.host(2, nil)
	return w
}

// host opens the host with that id, which is its address too.
func (w *world) host(id uint16, cfg *link.Config) *link.Host {
	w.t.Helper()
	var c link.Config
	if cfg != nil {
		c = *cfg
	}
	c.Endpoint.ID = dgrdma.EndpointID(id)
	c.Open = func(e *dgrdma.Config) (*dgrdma.Endpoint, error) {
		return dgrdma.New(w.sim.Attach(simnet.Addr(uint32(id)), simnet.Config{Poison: true}), e)
	}
	h, err := link.Open("", &c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { h.Close() })
	return h
}

// cut loses a share of what the two hosts send to each other.
func (w *world) cut(share float64) {
	for _, d := range [][2]uint32{{1, 2}, {2, 1}} {
		w.sim.Link(simnet.Addr(d[0]), simnet.Addr(d[1]), simnet.Link{Loss: share})
	}
}

func (w *world) pair() (dialed, accepted *Conn) {
	return join(w.t, w.a, listen(w.t, w.b, "port", nil), Options{})
}

// nothingLeft waits until no host has a link, and all memory is free.
func nothingLeft(t testing.TB, hosts ...*link.Host) {
	t.Helper()
	var left string
	for range 1000 {
		left = ""
		for i, h := range hosts {
			if s := h.Stats(); len(s.Links) > 0 || s.Free != s.Memory {
				left += fmt.Sprintf("host %d: %d links, %d bytes of %d free; ", i, len(s.Links), s.Free, s.Memory)
			}
		}
		if left == "" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(left)
}
