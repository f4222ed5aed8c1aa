package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/verbs"
	"github.com/dgrdma/dgrdma/xdr"
)

// TestRDMACancelWithoutTimeLimit checks that a client without a time limit can cancel a call, and keeps its connection.
func TestRDMACancelWithoutTimeLimit(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		h := &service{entered: make(chan struct{}, 1)}
		_, address := serveRDMA(t, h, so)
		co.Timeout = -1
		c := dial(t, address, co)
		b := c.Bind(testProgram, None)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-h.entered
			cancel()
		}()
		if err := b.Call(ctx, procSleep, num(100), nil, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(50 * time.Millisecond)
		if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
			t.Error(err)
		}
		if n := c.Stats().Connections; n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestRDMAManyCredits checks that a client with more credits than a connection can have has its calls wait.
func TestRDMAManyCredits(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		_, address := serveRDMA(t, &service{}, so)
		co.Credits = 1000
		b := dial(t, address, co).Bind(testProgram, None)
		var all sync.WaitGroup
		for range 600 {
			all.Go(func() {
				if err := b.Call(t.Context(), procSleep, num(20), nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// TestRDMAWithoutInto checks that an item of results arrives without a place of its own, as over TCP, and that the error of a call
// whose results have no room says what helps.
func TestRDMAWithoutInto(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		_, address := serveRDMA(t, &service{}, so)
		b := dial(t, address, co).Bind(testProgram, None)
		for _, n := range []int{100, 5000, 100000, 1 << 20} {
			for _, o := range []*CallOptions{nil, {MaxResults: n + 100}, {Direct: true}} {
				var out data
				if err := b.Call(t.Context(), procRead, num(n), &out, o); err != nil || len(out.b) != n {
					t.Errorf("%d octets: %d octets: %v", n, len(out.b), err)
				}
			}
			// Results that may fit into a Send have no place that the server could find too short.
			for _, into := range []int{50, 20000} {
				if n <= into {
					continue
				}
				var out data
				err := b.Call(t.Context(), procRead, num(n), &out, &CallOptions{Into: make([]byte, into)})
				var refused *rpcrdma.PeerError
				told := errors.As(err, &refused) && strings.Contains(err.Error(), "Into")
				if !told && (into == 20000 || !errors.Is(err, xdr.ErrInvalid)) {
					t.Errorf("%d octets into %d: %v", n, into, err)
				}
			}
		}
	})
}

// TestRDMAFallBack checks that a client which may speak both versions comes to terms with a server that closes the connection at a
// message of version 2, and remembers it (RPCN-04).
func TestRDMAFallBack(t *testing.T) {
	for _, how := range []string{"closes", "aborts", "terminates", "says nothing"} {
		t.Run(how, func(t *testing.T) {
			host, err := verbs.Open("tcp:127.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			l, err := host.Listen("0")
			if err != nil {
				t.Fatal(err)
			}
			s := NewServer(nil)
			s.Handle(testProgram, &service{})
			defer s.Close()
			go func() {
				for i := 0; ; i++ {
					r, err := l.Accept(context.Background())
					if err != nil {
						return
					}
					if i > 0 {
						go s.ServeRequest(r)
						continue
					}
					_, posted := receiveBuffers(1, rdmaSize)
					if how == "terminates" {
						posted = nil
					}
					qp, err := r.Accept(context.Background(), &verbs.Options{Posted: posted})
					if err != nil {
						t.Error(err)
						return
					}
					go func() {
						var one [1]verbs.Completion
						if posted != nil {
							qp.Received().Wait(context.Background(), one[:])
						}
						switch how {
						case "closes":
							qp.Close()
						case "aborts":
							qp.Abort()
						}
					}()
				}
			}()
			c := dial(t, "rdma:"+l.Addr().String(), nil)
			b := c.Bind(testProgram, None)
			for range 3 {
				var who data
				if err := b.Call(t.Context(), procWhoami, nil, &who, nil); err != nil || who.after != "rdma v1" {
					t.Errorf("%q: %v", who.after, err)
				}
				onlyConn(t, s).close(errEvicted)
				for onlyGone := false; !onlyGone; time.Sleep(time.Millisecond) {
					c.mu.Lock()
					onlyGone = c.carrier == nil
					c.attempts = 0
					c.mu.Unlock()
				}
			}
			if n := c.Stats().Connections; n != 4 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestRDMACancelAlways checks that nothing reads the arguments, or writes to Into, after Call has returned, whenever the context
// ends and however the connection ends (RPC2-113).
// Attack P10 (SECURITY.md).
func TestRDMACancelAlways(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		s, address := serveRDMA(t, &service{}, so)
		co.Resend = true
		c := dial(t, address, co)
		b := c.Bind(testProgram, None)
		until := time.Now().Add(cancelFor)
		var all sync.WaitGroup
		for g := range 24 {
			dice := rand.New(rand.NewPCG(seed, uint64(g)))
			all.Go(func() {
				args, into := make([]byte, 20000), make([]byte, 20000)
				for i := 0; time.Now().Before(until); i++ {
					n := dice.IntN(len(args))
					fill := byte(dice.Uint32())
					for j := range args {
						args[j], into[j] = fill, 0xdb
					}
					ctx, cancel := context.WithCancel(t.Context())
					if dice.IntN(3) > 0 {
						time.AfterFunc(time.Duration(dice.IntN(2000))*time.Microsecond, cancel)
					}
					o := &CallOptions{Direct: dice.IntN(2) == 0}
					if dice.IntN(4) > 0 {
						o.Into = into
					} else {
						o.MaxResults = 21000
					}
					var out data
					err := b.Call(ctx, procEcho, &data{uint32(fill), args[:n], "x"}, &out, o)
					cancel()
					switch {
					case err == nil:
						for _, x := range out.b {
							if x != fill || len(out.b) != n || out.before != uint32(fill) {
								t.Errorf("%d octets, of another call: %d %d", n, x, fill)
								return
							}
						}
					case errors.Is(err, context.Canceled):
					default:
						t.Error(err)
						return
					}
					// The memory is ours: the race detector finds others in it.
					for j := range args {
						args[j], into[j] = 0xdb, 0xdb
					}
					if dice.IntN(8) == 0 {
						time.Sleep(time.Millisecond)
						for j := range into {
							if into[j] != 0xdb {
								t.Errorf("octet %d of Into was written after Call has returned", j)
								return
							}
						}
					}
				}
			})
		}
		for time.Now().Before(until) {
			time.Sleep(cancelFor / 4)
			s.mu.Lock()
			for conn := range s.conns {
				conn.close(errEvicted)
			}
			s.mu.Unlock()
			c.mu.Lock()
			c.attempts = 0
			c.mu.Unlock()
		}
		within(t, "calls", all.Wait)
	})
}

// cancelFor is how long calls are cancelled.
const cancelFor = 500 * time.Millisecond

// TestRDMATerms checks that a client tells the version, the credits of the side that has fewer, and the inline thresholds of its
// connection over RDMA (RPC1-015, RPC1-021, RPC2-019); and nothing of one over TCP or one that has ended.
func TestRDMATerms(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		so.Credits, co.Credits, co.NoReconnect = 8, 32, true
		server, address := serveRDMA(t, &service{}, so)
		c := dial(t, address, co)
		if err := c.Bind(testProgram, None).Call(t.Context(), 0, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		got, ok := c.RDMATerms()
		if want := (rpcrdma.Terms{Version: uint32(transport[len(transport)-1] - '0'), Calls: 8, Send: rdmaSize, Received: rdmaSize}); got != want || !ok {
			t.Errorf("%+v, %v, want %+v", got, ok, want)
		}
		server.Close()
		for ok {
			_, ok = c.RDMATerms()
		}
	})
	_, address := serve(t, &service{}, nil)
	if got, ok := dial(t, address, nil).RDMATerms(); ok {
		t.Errorf("over TCP: %+v", got)
	}
}
