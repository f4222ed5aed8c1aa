package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/rpcrdma"
	"github.com/dgrdma/dgrdma/xdr"
)

// both is a server whose handlers call back, and the options of its clients.
type both struct {
	t         *testing.T
	transport string
	address   string
	server    *Server
	there     *service // at the server
	here      *service // at the client
	callbacks *Server
	options   *ClientOptions
}

// dial dials the server.
func (b *both) dial() *Client {
	b.t.Helper()
	return dial(b.t, b.address, b.options)
}

// call has the server's handler run f, with the client that calls the caller.
func (b *both) call(c *Client, f func(ctx context.Context, back *Client) error) error {
	b.t.Helper()
	failed := make(chan error, 1)
	b.there.backBy(func(ctx context.Context, c *Call) error {
		failed <- f(ctx, c.Client())
		return nil
	})
	if err := c.Bind(testProgram, None).Call(b.t.Context(), procBack, nil, nil, nil); err != nil {
		return err
	}
	return <-failed
}

// inBothDirections runs a test over all transports: servers call back, and clients take that.
func inBothDirections(t *testing.T, f func(t *testing.T, b *both)) {
	run := func(t *testing.T, transport string, versions Versions) {
		b := &both{t: t, transport: transport, there: &service{}, here: &service{}}
		o := &ServerOptions{Callbacks: 16, Versions: versions}
		if transport == "tcp" {
			b.server, b.address = serve(t, b.there, o)
		} else {
			b.server, b.address = serveRDMA(t, b.there, o)
		}
		b.callbacks = testServer(b.here, nil)
		t.Cleanup(func() { b.callbacks.Close() }) // after the clients
		b.options = &ClientOptions{Callbacks: b.callbacks}
		f(t, b)
	}
	t.Run("tcp", func(t *testing.T) { run(t, "tcp", 0) })
	t.Run("rdma v1", func(t *testing.T) { run(t, "rdma v1", V1) })
	t.Run("rdma v2", func(t *testing.T) { run(t, "rdma v2", V2) })
}

// TestCallbacks checks that a handler calls programs of its caller, with arguments and results of all lengths that the transport has for the
// reverse direction (RPC2-075, RPC2-077, RPC2-079, RPC1-060 to RPC1-063).
func TestCallbacks(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		c := b.dial()
		for _, n := range []int{0, 1, 3, 4, 900, 4096, rdmaSize, 70001, 1 << 20} {
			item := bytes.Repeat([]byte{byte(n), 2, 3}, n/3+1)[:n]
			err := b.call(c, func(ctx context.Context, back *Client) error {
				in, out := data{7, item, "after"}, data{}
				if err := back.Bind(testProgram, None).Call(ctx, procEcho, &in, &out, &CallOptions{Into: make([]byte, n)}); err != nil {
					return err
				}
				if out.before != 7 || out.after != "after" || !bytes.Equal(out.b, item) {
					return fmt.Errorf("got %d octets, %d, %q", len(out.b), out.before, out.after)
				}
				var who data
				if err := back.Bind(testProgram, None).Call(ctx, procWhoami, nil, &who, nil); err != nil || who.after != b.transport {
					return fmt.Errorf("the transport is %q: %v", who.after, err)
				}
				return nil
			})
			if b.transport == "rdma v1" && n >= rdmaSize { // only what fits into a Send
				if !errors.Is(err, rpcrdma.ErrTooLong) {
					t.Errorf("%d octets: %v", n, err)
				}
			} else if err != nil {
				t.Errorf("%d octets: %v", n, err)
			}
		}
		if n := b.server.Stats().Callbacks; n.Calls < 10 || n.Connections != 1 {
			t.Errorf("counted %+v", n)
		}
		err := b.call(c, func(ctx context.Context, back *Client) error {
			return back.Bind(&Program{Number: 4711, Version: 1}, None).Call(ctx, 1, nil, nil, nil)
		})
		var unavailable *ProgramError
		if !errors.As(err, &unavailable) || !unavailable.Unavailable {
			t.Errorf("a program that the client does not have: %v", err)
		}
	})
}

// TestCallbacksOfProgram checks that a program may keep what calls the client, and use it outside of handlers; and that handlers of the
// client call the server by the client itself.
func TestCallbacksOfProgram(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		c := b.dial()
		var kept *Client
		if err := b.call(c, func(_ context.Context, back *Client) error { kept = back; return nil }); err != nil {
			t.Fatal(err)
		}
		b.here.backBy(func(ctx context.Context, call *Call) error {
			if call.Client() != c {
				t.Error("a handler of the client has another client")
			}
			return call.Client().Bind(testProgram, None).Call(ctx, procEcho, &data{b: []byte("x")}, nil, nil)
		})
		for range 3 {
			if err := kept.Bind(testProgram, None).Call(t.Context(), procBack, nil, nil, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestNoCallbacks checks what becomes of a call to a client that takes none: a server of version 2 knows it, and otherwise there is no
// reply; all else on the connection goes on (RPC1-064, RPC2-076, ONC-009). Servers that do not call back have no client for it.
func TestNoCallbacks(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		b.options.Callbacks = nil
		c := b.dial()
		want, limit := context.DeadlineExceeded, 20*time.Millisecond
		if b.transport == "rdma v2" {
			want, limit = ErrNoCallbacks, time.Minute
		}
		for range 3 {
			err := b.call(c, func(ctx context.Context, back *Client) error {
				ctx, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				return back.Bind(testProgram, None).Call(ctx, procAdd, num(1), nil, nil)
			})
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		if n := c.Stats().Connections; n != 1 {
			t.Errorf("%d connections", n)
		}
	})
	_, address := serve(t, &service{back: func(_ context.Context, c *Call) error {
		if c.Client() != nil {
			return errors.New("it has a client")
		}
		return nil
	}}, nil)
	if err := dial(t, address, nil).Bind(testProgram, None).Call(t.Context(), procBack, nil, nil, nil); err != nil {
		t.Error(err)
	}
}

// TestCallbacksEnd checks that a server's calls fail when the connection ends, those that were sent with ErrLost and later ones with ErrEnded,
// and that the client which connects again is another one (RPC2-078).
func TestCallbacksEnd(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		c := b.dial()
		b.here.entered = make(chan struct{}, 1)
		var kept *Client
		keep := func(_ context.Context, back *Client) error { kept = back; return nil }
		if err := b.call(c, keep); err != nil {
			t.Fatal(err)
		}
		old := kept.Bind(testProgram, None)
		sent := make(chan error, 1)
		go func() { sent <- old.Call(t.Context(), procSleep, num(60000), nil, nil) }()
		<-b.here.entered
		b.server.mu.Lock()
		for conn := range b.server.conns {
			conn.close(errEvicted)
		}
		b.server.mu.Unlock()
		if err := <-sent; !errors.Is(err, ErrLost) || !errors.Is(err, errEvicted) {
			t.Errorf("the call that was sent: %v", err)
		}
		if err := old.Call(t.Context(), procSleep, num(1), nil, nil); !errors.Is(err, ErrEnded) {
			t.Errorf("a later call: %v", err)
		}
		before := kept
		waitFor(t, "the client notices", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.carrier == nil
		})
		if err := b.call(c, keep); err != nil {
			t.Fatal(err)
		}
		if kept == before {
			t.Error("the client that has connected again is the same")
		}
		if err := kept.Bind(testProgram, None).Call(t.Context(), procSleep, num(1), nil, nil); err != nil {
			t.Errorf("after the client has connected again: %v", err)
		}
		if err := old.Call(t.Context(), procSleep, num(1), nil, nil); !errors.Is(err, ErrEnded) {
			t.Errorf("by the old one: %v", err)
		}
	})
}

// TestCallbackCancel checks that a server's call whose context ends returns, and that others go on (RPC2-113).
func TestCallbackCancel(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		c := b.dial()
		b.here.entered = make(chan struct{}, 1)
		for range 3 {
			err := b.call(c, func(ctx context.Context, back *Client) error {
				ctx, cancel := context.WithCancel(ctx)
				go func() {
					<-b.here.entered
					cancel()
				}()
				return back.Bind(testProgram, None).Call(ctx, procSleep, num(200), nil, nil)
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		err := b.call(c, func(ctx context.Context, back *Client) error {
			return back.Bind(testProgram, None).Call(ctx, procEcho, &data{b: []byte("x")}, nil, nil)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestCallsOfBothAtOnce checks that calls of both directions, each of which makes one of the other, do not wait for each other for ever: as
// many as the connection takes, and more.
func TestCallsOfBothAtOnce(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		c := b.dial()
		forth := c.Bind(testProgram, None)
		b.there.backBy(func(ctx context.Context, call *Call) error {
			return call.Client().Bind(testProgram, None).Call(ctx, procBack, nil, nil, nil)
		})
		b.here.backBy(func(ctx context.Context, call *Call) error {
			in, out := data{b: bytes.Repeat([]byte{1}, 9000)}, data{}
			return call.Client().Bind(testProgram, None).Call(ctx, procEcho, &in, &out, &CallOptions{Into: make([]byte, 9000)})
		})
		if err := forth.Call(t.Context(), 0, nil, nil, nil); err != nil { // before its reply version 1 has one call at a time
			t.Fatal(err)
		}
		within(t, "calls in both directions", func() {
			var all sync.WaitGroup
			// The innermost calls need a credit: as many as there are, less one.
			for range usualCredits - 1 {
				all.Go(func() {
					for range 5 {
						if err := forth.Call(t.Context(), procBack, nil, nil, nil); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	})
}

// TestCallbacksOnShutdown checks that a server which shuts down answers calls whose handlers call back.
func TestCallbacksOnShutdown(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		c := b.dial()
		began := make(chan struct{})
		down := make(chan error, 1)
		go func() {
			<-began
			down <- b.server.Shutdown(context.Background())
		}()
		err := b.call(c, func(ctx context.Context, back *Client) error {
			close(began)
			waitFor(t, "the server shuts down", b.server.isDraining)
			return back.Bind(testProgram, None).Call(ctx, procEcho, &data{b: []byte("x")}, nil, nil)
		})
		if err != nil {
			t.Error(err)
		}
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

// TestHandlersOfClientEnd checks that the end of a connection, and of the client, ends the handlers of callbacks, whatever they carry out; and
// that a Server of callbacks which is closed ends the connections that it has.
func TestHandlersOfClientEnd(t *testing.T) {
	inBothDirections(t, func(t *testing.T, b *both) {
		c := b.dial()
		ended := make(chan error, 1)
		entered := make(chan struct{}, 1)
		b.here.backBy(func(ctx context.Context, call *Call) error { // its procedure is not idempotent
			entered <- struct{}{}
			<-ctx.Done()
			ended <- call.Client().Bind(testProgram, None).Call(context.Background(), 0, nil, nil, nil)
			return ctx.Err()
		})
		var kept *Client
		keep := func(_ context.Context, back *Client) error { kept = back; return nil }
		if err := b.call(c, keep); err != nil {
			t.Fatal(err)
		}
		lost := make(chan error, 1)
		go func() { lost <- kept.Bind(testProgram, None).Call(t.Context(), procBack, nil, nil, nil) }()
		<-entered
		within(t, "Close", func() { c.Close() })
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("a call of the handler: %v", err)
		}
		if err := <-lost; !errors.Is(err, ErrLost) {
			t.Errorf("the call of the server: %v", err)
		}
		if n := b.callbacks.Stats(); n.Connections != 0 {
			t.Errorf("%d connections are left", n.Connections)
		}
		c = b.dial()
		within(t, "Close of Callbacks", func() { b.callbacks.Close() })
		if _, err := Dial(t.Context(), b.address, b.options); !errors.Is(err, ErrClosed) {
			t.Errorf("another client with closed Callbacks: %v", err)
		}
		c.Close()
	})
}

// TestCallbacksBehind checks that handlers do not wait for replies that the server cannot read, because the client has more calls than it
// takes: their calls end, and all are answered.
func TestCallbacksBehind(t *testing.T) {
	for _, o := range []*ServerOptions{{Callbacks: 4, Credits: 2}, {Callbacks: 4, Calls: 2}} {
		synctest.Test(t, func(t *testing.T) {
			var errs []error
			h := &service{}
			h.back = func(ctx context.Context, c *Call) error {
				err := c.Client().Bind(testProgram, None).Call(ctx, procEcho, &data{b: []byte("x")}, nil, nil)
				h.mu.Lock()
				errs = append(errs, err)
				h.mu.Unlock()
				return nil
			}
			s := testServer(h, o)
			defer s.Close()
			p, done := serveRaw(t, s)
			sends := make(chan []byte, 10)
			for i := range uint32(4) {
				sends <- callOf(i, procBack, nil)
			}
			go func() {
				for b := range sends {
					p.send(b)
				}
			}()
			for replies := 0; replies < 4; {
				b, err := p.receive()
				if err != nil {
					t.Fatal(err)
				}
				if (record{b: b}).is(kindReply) {
					replies++
				} else {
					sends <- replyTo(binary.BigEndian.Uint32(b), &data{b: []byte("x")}) // after the calls
				}
			}
			close(sends)
			p.nc.Close()
			<-done
			behind := 0
			for _, err := range errs {
				if errors.Is(err, ErrBehind) {
					behind++
				} else if err != nil {
					t.Error(err)
				}
			}
			if behind != 2 || len(errs) != 4 {
				t.Errorf("%d handlers have returned, %d calls of them have failed", len(errs), behind)
			}
		})
	}
}

// rawServer connects a client to a raw peer.
func rawServer(t *testing.T, o *ClientOptions) (*Client, *rawPeer) {
	here, there := net.Pipe()
	c := NewClient(here, o)
	t.Cleanup(func() {
		there.Close()
		c.Close()
		o.Callbacks.Close()
	})
	return c, &rawPeer{t, there}
}

// TestCallbacksAreBounded checks what a server may have a client do over a stream: it has Credits calls in work, as many more are refused, and
// one that reads no replies loses the connection.
func TestCallbacksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &service{hold: make(chan struct{})}
		callbacks := testServer(h, &ServerOptions{Credits: 3})
		_, p := rawServer(t, &ClientOptions{Callbacks: callbacks})
		for i := range uint32(5) {
			p.send(callOf(i, procAdd, num(1)))
		}
		for i := range uint32(2) {
			var e xdr.Encoder
			(&replyHeader{xid: 3 + i, status: statusSystem}).append(&e)
			p.expect("one too many", e.Bytes())
		}
		close(h.hold)
		for range 3 {
			if b, err := p.receive(); err != nil || !(record{b: b}).is(kindReply) {
				t.Errorf("%x, %v", b, err)
			}
		}
		// NULL is answered at once, and nothing reads that.
		for i := range uint32(40) {
			if _, err := p.nc.Write(fragment(callOf(i, 0, nil), true)); err != nil {
				if i < 6 {
					t.Errorf("ended after %d calls", i)
				}
				return
			}
		}
		t.Error("the client goes on")
	})
}

// TestMalformedCallbacks checks that a server which sends messages that are no calls loses the connection.
func TestMalformedCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callbacks := testServer(&service{}, nil)
		c, p := rawServer(t, &ClientOptions{Callbacks: callbacks})
		for range mostMalformed + 1 {
			p.send(callOf(1, 0, nil)[:16])
		}
		p.expectEnd("after so many")
		synctest.Wait()
		if n := callbacks.Stats().Malformed; n != mostMalformed+1 {
			t.Errorf("counted %d", n)
		}
		if err := c.Bind(testProgram, None).Call(t.Context(), 0, nil, nil, nil); !errors.Is(err, ErrEnded) {
			t.Error(err)
		}
	})
}

// TestRepliesWithoutCallback checks that a server drops replies to calls that it has not made, and counts them (ONC-009).
func TestRepliesWithoutCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &service{back: func(_ context.Context, c *Call) error { c.Client(); return nil }}
		s := testServer(h, &ServerOptions{Callbacks: 4})
		defer s.Close()
		p, _ := serveRaw(t, s)
		p.send(callOf(1, procBack, nil))
		p.expect("its reply", replyTo(1, nil))
		for i := range uint32(100) {
			p.send(replyTo(i, nil))
		}
		p.send(callOf(2, 0, nil))
		p.expect("NULL", replyTo(2, nil))
		if n := s.Stats().Callbacks.Unmatched; n != 100 {
			t.Errorf("counted %d", n)
		}
	})
}

// TestLengthsOfDirections checks that the bound of one direction is not that of the other over a stream: calls that are longer than MaxCall, and
// replies that are longer than MaxReply, are refused.
func TestLengthsOfDirections(t *testing.T) {
	for _, x := range []struct{ call, reply int }{{1000, 2000}, {2000, 1000}} {
		synctest.Test(t, func(t *testing.T) {
			callbacks := testServer(&service{}, &ServerOptions{MaxCall: x.call})
			c, p := rawServer(t, &ClientOptions{Callbacks: callbacks, MaxReply: x.reply})
			item := data{b: make([]byte, 1500)}
			p.send(callOf(1, procEcho, &item))
			b, err := p.receive()
			var h replyHeader
			var d xdr.Decoder
			d.Reset(b, nil)
			if h.take(&d); err != nil || (h.status == statusSystem) != (x.call < 1500) {
				t.Errorf("a call of 1500 octets, at most %d: status %d, %v", x.call, h.status, err)
			}
			done := make(chan error, 1)
			go func() { done <- c.Bind(testProgram, None).Call(t.Context(), procEcho, nil, &data{}, nil) }()
			call, _ := p.receive()
			p.send(replyTo(binary.BigEndian.Uint32(call), &item))
			if err := <-done; errors.Is(err, ErrTooLong) != (x.reply < 1500) {
				t.Errorf("a reply of 1500 octets, at most %d: %v", x.reply, err)
			}
		})
	}
}
