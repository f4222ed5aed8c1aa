package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// serveRDMA serves the test program, and others, over RDMA, until the test ends.
func serveRDMA(t testing.TB, h Handler, o *ServerOptions, also ...*Program) (s *Server, address string) {
	t.Helper()
	host, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := host.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	s = NewServer(o)
	for _, p := range append(also, testProgram) {
		s.Handle(p, h)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeRDMA(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; err != ErrClosed {
			t.Errorf("ServeRDMA: %v", err)
		}
		host.Close()
	})
	return s, "rdma:" + l.Addr().String()
}

// overRDMA runs a test over both versions, and where the server has the older one only.
func overRDMA(t *testing.T, f func(t *testing.T, server *ServerOptions, client *ClientOptions, transport string)) {
	for _, c := range []struct {
		client, server Versions
		transport      string
	}{{V1, V1, "rdma v1"}, {V2, V2, "rdma v2"}, {0, 0, "rdma v2"}, {0, V1, "rdma v1"}, {V1, 0, "rdma v1"}} {
		t.Run(fmt.Sprintf("client %v, server %v", c.client, c.server), func(t *testing.T) {
			f(t, &ServerOptions{Versions: c.server}, &ClientOptions{Versions: c.client}, c.transport)
		})
	}
}

// TestRDMACalls checks that calls and replies of all lengths, with items that travel by themselves and others, arrive as over
// TCP (RPC2-044, RPC2-047, RPC2-048, RPC1-032, RPCN-03).
func TestRDMACalls(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		_, address := serveRDMA(t, &service{}, so)
		b := dial(t, address, co).Bind(testProgram, None)
		ctx := t.Context()
		if err := b.Call(ctx, 0, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		var who data
		if err := b.Call(ctx, procWhoami, nil, &who, nil); err != nil || who.after != transport {
			t.Errorf("transport %q, want %q: %v", who.after, transport, err)
		}
		for _, n := range []int{0, 1, 3, 4, 1000, 3900, 3901, 3902, 3903, 4096, 5000, 70001, 1 << 20} {
			for _, direct := range []bool{false, true} {
				item := make([]byte, n)
				for i := range item {
					item[i] = byte(i*7 + n)
				}
				into := make([]byte, n+5)
				in, out := data{7, item, "after"}, data{}
				o := &CallOptions{Into: into, Direct: direct}
				if err := b.Call(ctx, procEcho, &in, &out, o); err != nil {
					t.Fatalf("%d octets, direct %v: %v", n, direct, err)
				}
				if out.before != 7 || out.after != "after" || !bytes.Equal(out.b, item) {
					t.Fatalf("%d octets, direct %v: got %d octets, %d, %q", n, direct, len(out.b), out.before, out.after)
				}
				if n > 0 && &out.b[0] != &into[0] {
					t.Errorf("%d octets, direct %v: the item is not in Into", n, direct)
				}
			}
		}
	})
}

// TestRDMAManyCalls checks that many calls at once get their own replies, in any order.
func TestRDMAManyCalls(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		_, address := serveRDMA(t, &service{}, so)
		b := dial(t, address, co).Bind(testProgram, None)
		var all sync.WaitGroup
		for g := range 64 {
			dice := rand.New(rand.NewPCG(seed, uint64(g)))
			all.Go(func() {
				for range 30 {
					item := make([]byte, dice.IntN(9000))
					for i := range item {
						item[i] = byte(dice.Uint32())
					}
					in, out := data{dice.Uint32(), item, "x"}, data{}
					o := &CallOptions{Into: make([]byte, 9000), Direct: dice.IntN(2) == 0}
					if err := b.Call(t.Context(), procEcho, &in, &out, o); err != nil || out.before != in.before || !bytes.Equal(out.b, item) {
						t.Errorf("%d octets: %d octets: %v", len(item), len(out.b), err)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// TestRDMACancel checks that a call whose context ends returns, and that later calls go on; the memory of one that lends nothing is
// free at once (RPC2-113).
func TestRDMACancel(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		h := &service{entered: make(chan struct{}, 1)}
		_, address := serveRDMA(t, h, so)
		b := dial(t, address, co).Bind(testProgram, None)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-h.entered
				cancel()
			}()
			began := time.Now()
			if err := b.Call(ctx, procSleep, num(300), nil, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
		in, out := data{b: make([]byte, 30000)}, data{}
		if err := b.Call(t.Context(), procEcho, &in, &out, &CallOptions{Into: make([]byte, 30000)}); err != nil || len(out.b) != 30000 {
			t.Error(err)
		}
	})
}

// TestRDMAReconnect checks that calls that may be repeated survive the end of their connection, and that others say
// that they may have been carried out.
func TestRDMAReconnect(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		h := &service{entered: make(chan struct{}, 8)}
		s, address := serveRDMA(t, h, so)
		c := dial(t, address, co)
		b := c.Bind(testProgram, None)
		done := make(chan error, 1)
		go func() { done <- b.Call(t.Context(), procSleep, num(50), nil, nil) }()
		<-h.entered
		s.mu.Lock()
		for conn := range s.conns {
			conn.close(errEvicted)
		}
		s.mu.Unlock()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := c.Stats().Connections; n != 2 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestRDMAShutdown checks that a server which shuts down answers the calls in work.
func TestRDMAShutdown(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		h := &service{entered: make(chan struct{}, 1)}
		s, address := serveRDMA(t, h, so)
		co.NoReconnect = true
		b := dial(t, address, co).Bind(testProgram, None)
		done := make(chan error, 1)
		go func() { done <- b.Call(t.Context(), procSleep, num(50), nil, nil) }()
		<-h.entered
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
