package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/xdr"
)

// dialRaw returns a client whose connections are pipes to raw peers, which come by the channel. While it refuses is set, dialing fails.
func dialRaw(t testing.TB, o ClientOptions) (c *Client, peers chan *rawPeer, refuses *atomic.Bool) {
	t.Helper()
	peers, refuses = make(chan *rawPeer, 100), new(atomic.Bool)
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if network != "tcp" || address != "server:111" {
			t.Errorf("dial %s %s", network, address)
		}
		if refuses.Load() {
			return nil, errors.New("refused")
		}
		here, there := net.Pipe()
		peers <- &rawPeer{t, there}
		return here, nil
	}
	c, err := Dial(context.Background(), "tcp:server:111", &o)
	if err != nil {
		t.Fatal(err)
	}
	return c, peers, refuses
}

// nextCall takes a call, and returns its XID, procedure and what follows its header.
func (p *rawPeer) nextCall() (xid, procedure uint32, args []byte) {
	p.t.Helper()
	b, err := p.receive()
	if err != nil || len(b) < 40 {
		p.t.Errorf("a call: %x, %v", b, err)
		return 0, 0, nil
	}
	return binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[20:]), b[40:]
}

// begin makes a call, and returns a channel for its error.
func begin(f func() error) chan error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	return ended
}

// TestCalls checks calls of a server of ours over TCP: void ones, items of many lengths into memory of the call and of the caller,
// credentials, and errors that say which call they are of.
func TestCalls(t *testing.T) {
	_, address := serve(t, &service{fail: func() error { return ErrProcedureUnavailable }}, nil)
	c := dial(t, address, nil)
	ctx := context.Background()
	p := c.Bind(testProgram, (&Sys{UID: 1234, Machine: "m"}).Auth())
	if err := p.Call(ctx, 0, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 2, 3, 4, 1000, copiedUpTo, copiedUpTo + 1, longFrom, chunkLength - 100, chunkLength - 33, chunkLength, 100001, 1 << 20} {
		args := data{before: 3, b: make([]byte, size), after: "after"}
		for i := range args.b {
			args.b[i] = byte(rand.Uint32())
		}
		for _, into := range [][]byte{nil, make([]byte, 1<<20)} {
			var results data
			if err := p.Call(ctx, procEcho, &args, &results, &CallOptions{Into: into}); err != nil {
				t.Fatal(size, err)
			}
			if results.before != 3 || results.after != "after" || !bytes.Equal(results.b, args.b) {
				t.Errorf("%d octets come back as others", size)
			}
			if into != nil && size > 0 && &results.b[0] != &into[0] {
				t.Errorf("%d octets are not in their place", size)
			}
		}
	}
	var who data
	if err := p.Call(ctx, procWhoami, nil, &who, nil); err != nil || who.before != 1234 || who.after != "tcp" {
		t.Errorf("%+v, %v", who, err)
	}
	err := p.Call(ctx, procFail, nil, &who, nil)
	if want := "call FAIL of TEST version 3 at " + address + ": the server does not have this procedure"; !errors.Is(err, ErrProcedureUnavailable) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	var call *CallError
	if !errors.As(err, &call) || call.Procedure != procFail {
		t.Errorf("%#v", err)
	}
	err = c.Bind(&Program{Number: testProgram.Number, Version: 9}, None).Call(ctx, 1, nil, nil, nil)
	var program *ProgramError
	if !errors.As(err, &program) || program.Unavailable || program.Low != 3 || program.High != 3 {
		t.Error(err)
	}
	err = p.Call(ctx, procRead, num(1000), &data{}, &CallOptions{Into: make([]byte, 999)})
	if !errors.Is(err, xdr.ErrInvalid) {
		t.Errorf("an item longer than its place: %v", err)
	}
	err = p.Call(ctx, procRead, num(2<<20), &data{}, nil)
	if !errors.Is(err, ErrTooLong) {
		t.Errorf("a reply longer than MaxReply: %v", err)
	}
	if err := p.Call(ctx, 0, nil, nil, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestManyCalls checks that 64 calls are in work at once on one connection, that replies come in any order, and that one that takes
// long delays no other (ONC-009).
func TestManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peers, _ := dialRaw(t, ClientOptions{})
		defer c.Close()
		p := <-peers
		b := c.Bind(testProgram, None)
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				v := *num(i)
				if err := b.Call(context.Background(), procAdd, &v, &v, nil); err != nil || int(v) != i*i {
					t.Errorf("call %d: %d, %v", i, v, err)
				}
			})
		}
		calls := make(map[uint32]int)
		for range 64 {
			xid, _, args := p.nextCall()
			calls[xid] = int(binary.BigEndian.Uint32(args))
		}
		if len(calls) != 64 {
			t.Errorf("%d XIDs", len(calls))
		}
		more := begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
		synctest.Wait()
		if n := len(c.calls); n != 64 {
			t.Errorf("%d calls at once", n)
		}
		for xid, n := range calls { // in random order
			p.send(replyTo(xid, num(n*n)))
		}
		xid, _, _ := p.nextCall()
		p.send(replyTo(xid, nil))
		if err := <-more; err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

// TestUnmatchedReplies checks that replies without a call, twice, or that are none are dropped and counted, and that the connection goes on (ONC-009).
func TestUnmatchedReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peers, _ := dialRaw(t, ClientOptions{})
		defer c.Close()
		p := <-peers
		b := c.Bind(testProgram, None)
		for range 3 {
			ended := begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
			xid, _, _ := p.nextCall()
			p.send(replyTo(xid+1, nil), nil, []byte("short"), callOf(xid, 0, nil), replyTo(xid+77, &data{b: make([]byte, 100000)}), replyTo(xid, nil), replyTo(xid, nil))
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := c.Stats(); n.Unmatched != 3*3 || n.Malformed != 3*3 {
			t.Errorf("counted %+v", n)
		}
		// What is a reply to a call, but is malformed, is that call's error.
		ended := begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
		xid, _, _ := p.nextCall()
		p.send(words(xid, 1, 0, 0, 0, 6))
		if err := <-ended; !errors.Is(err, ErrReply) {
			t.Error(err)
		}
	})
}

// TestFirstXID checks that clients begin with random XIDs, and go on by one (RPC1-055).
func TestFirstXID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := make(map[uint32]bool)
		for range 20 {
			c, peers, _ := dialRaw(t, ClientOptions{})
			p := <-peers
			var last uint32
			for i := range 3 {
				ended := begin(func() error { return c.Bind(testProgram, None).Call(context.Background(), 0, nil, nil, nil) })
				xid, _, _ := p.nextCall()
				if i == 0 {
					first[xid] = true
				} else if xid != last+1 {
					t.Errorf("%d after %d", xid, last)
				}
				last = xid
				p.send(replyTo(xid, nil))
				<-ended
			}
			c.Close()
		}
		if len(first) < 19 {
			t.Errorf("%d first XIDs of 20 clients", len(first))
		}
	})
}

// TestDeadline checks that a call returns when its context ends: while it waits for its reply, for a credit, or for a connection; and that the
// connection goes on.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peers, refuses := dialRaw(t, ClientOptions{Credits: 1})
		defer c.Close()
		p := <-peers
		b := c.Bind(testProgram, None)
		timed := func(what string, f func(ctx context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			began := time.Now()
			if err := f(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
			if after := time.Since(began); after != 2*time.Second {
				t.Errorf("%s: after %v", what, after)
			}
		}
		ended := begin(func() error { return b.Call(context.Background(), procAdd, num(1), nil, nil) })
		xid, _, _ := p.nextCall()
		timed("for a credit", func(ctx context.Context) error { return b.Call(ctx, 0, nil, nil, nil) })
		p.send(replyTo(xid, nil))
		if err := <-ended; err != nil {
			t.Error(err)
		}
		go p.nextCall()
		timed("for a reply", func(ctx context.Context) error { return b.Call(ctx, 0, nil, nil, nil) })
		timed("for the connection to take it", func(ctx context.Context) error { return b.Call(ctx, 0, nil, nil, nil) })
		p.nextCall()
		ended = begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
		xid, _, _ = p.nextCall()
		p.send(replyTo(xid, nil))
		if err := <-ended; err != nil {
			t.Error(err)
		}
		refuses.Store(true)
		p.nc.Close()
		synctest.Wait()
		timed("for a connection", func(ctx context.Context) error {
			err := b.Call(ctx, 0, nil, nil, nil)
			if want := "call NULL of TEST version 3 at tcp:server:111: there is no connection (refused): context deadline exceeded"; err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			return err
		})
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := b.Call(ctx, 0, nil, nil, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestReconnect checks what becomes of calls when the connection is lost before, while and after they are sent: those that may be carried
// out twice are sent again under their XID, the others end with ErrLost; and with NoReconnect all end.
func TestReconnect(t *testing.T) {
	for _, o := range []ClientOptions{{}, {Resend: true}, {NoReconnect: true}} {
		t.Run(fmt.Sprintf("%v,%v", o.Resend, o.NoReconnect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, peers, refuses := dialRaw(t, o)
				defer c.Close()
				p := <-peers
				b := c.Bind(testProgram, None)
				ctx := context.Background()
				idempotent := begin(func() error { return b.Call(ctx, procEcho, &data{b: make([]byte, 10000)}, &data{}, nil) })
				first, _, _ := p.nextCall()
				other := begin(func() error { return b.Call(ctx, procAdd, num(1), nil, nil) })
				second, _, _ := p.nextCall()
				// The third is in the middle of its write.
				half := begin(func() error { return b.Call(ctx, procAdd, num(2), nil, nil) })
				synctest.Wait()
				p.nc.Read(make([]byte, 10))
				// The fourth has not begun.
				unsent := begin(func() error { return b.Call(ctx, procAdd, num(3), num(0), nil) })
				synctest.Wait()
				refuses.Store(true)
				p.nc.Close()
				time.Sleep(5 * time.Second)
				refuses.Store(false)
				if !o.Resend {
					for what, ended := range map[string]chan error{"sent": other, "half sent": half} {
						if err := <-ended; !errors.Is(err, ErrLost) || !errors.Is(err, io.EOF) {
							t.Errorf("%s: %v", what, err)
						}
					}
				}
				if o.NoReconnect {
					if err := <-idempotent; !errors.Is(err, ErrLost) {
						t.Error(err)
					}
					if err := <-unsent; errors.Is(err, ErrLost) || !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					if err := b.Call(ctx, 0, nil, nil, nil); err == nil || errors.Is(err, ErrLost) || !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					return
				}
				p = <-peers
				var xids []uint32
				for range map[bool]int{true: 4, false: 2}[o.Resend] {
					xid, procedure, args := p.nextCall()
					xids = append(xids, xid)
					if procedure == procEcho && xid != first || procedure == procAdd && args[3] == 1 && xid != second {
						t.Errorf("XID %d of procedure %d", xid, procedure)
					}
					var results xdr.Marshaler = num(1)
					if procedure == procEcho {
						results = &data{}
					}
					p.send(replyTo(xid, results))
				}
				if !slices.IsSortedFunc(xids, func(a, b uint32) int { return int(int32(a - b)) }) {
					t.Errorf("sent in the order %d", xids)
				}
				if o.Resend {
					for _, ended := range []chan error{other, half} {
						if err := <-ended; err != nil {
							t.Error(err)
						}
					}
				}
				for _, ended := range []chan error{idempotent, unsent} {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
				if st := c.Stats(); st.Connections != 2 || st.Lost != map[bool]uint64{false: 2}[o.Resend] || st.Resent != map[bool]uint64{true: 3, false: 1}[o.Resend] {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestReconnectPauses checks that a client connects again at once, then after pauses that grow, up to a bound, also if each connection
// ends before a reply; and not at all while there are no calls.
func TestReconnectPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peers, _ := dialRaw(t, ClientOptions{})
		defer c.Close()
		p := <-peers
		first := begin(func() error { return c.Bind(testProgram, None).Call(context.Background(), 0, nil, nil, nil) })
		xid, _, _ := p.nextCall()
		p.send(replyTo(xid, nil))
		if err := <-first; err != nil { // without a reply, two connections that end are enough
			t.Fatal(err)
		}
		p.nc.Close()
		time.Sleep(time.Hour)
		if len(peers) > 0 {
			t.Error("it connects for no call")
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := begin(func() error { return c.Bind(testProgram, None).Call(ctx, 0, nil, nil, nil) })
		last, total := time.Now(), 0
		for i := range 20 {
			p = <-peers
			pause := time.Since(last)
			most := time.Duration(0)
			if i > 0 {
				most = min(leastBackoff<<(i-1), mostBackoff)
			}
			if pause > most || pause < most/2 {
				t.Errorf("pause %d: %v, want %v at most", i, pause, most)
			}
			last = time.Now()
			if i%2 == 0 {
				p.nextCall()
			}
			p.nc.Close()
			total++
		}
		cancel()
		<-ended
		time.Sleep(time.Hour)
		for len(peers) > 0 {
			(<-peers).nc.Close()
			total++
		}
		if total > 21 {
			t.Errorf("%d connections", total)
		}
	})
}

// TestTimeout checks that a connection is lost when nothing has come for the time limit while calls wait, and not while replies come, or
// while there are no calls.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peers, _ := dialRaw(t, ClientOptions{Timeout: 20 * time.Second})
		defer c.Close()
		p := <-peers
		b := c.Bind(testProgram, None)
		slow := begin(func() error { return b.Call(context.Background(), procSleep, num(1), nil, nil) })
		slowXID, _, _ := p.nextCall()
		for range 10 {
			ended := begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
			xid, _, _ := p.nextCall()
			time.Sleep(15 * time.Second)
			p.send(replyTo(xid, nil))
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		began := time.Now()
		p.expectEnd("nothing comes")
		if after := time.Since(began); after < 20*time.Second || after > 30*time.Second {
			t.Errorf("lost after %v", after)
		}
		p = <-peers
		if xid, _, _ := p.nextCall(); xid != slowXID {
			t.Errorf("XID %d, want %d", xid, slowXID)
		}
		p.send(replyTo(slowXID, nil))
		if err := <-slow; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		ended := begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
		xid, _, _ := p.nextCall()
		p.send(replyTo(xid, nil))
		if err := <-ended; err != nil || c.Stats().Connections != 2 {
			t.Errorf("%v, %+v", err, c.Stats())
		}
	})
}

// TestClientClose checks that Close ends calls that wait, wherever they wait, and that later ones fail.
func TestClientClose(t *testing.T) {
	for _, connected := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, peers, refuses := dialRaw(t, ClientOptions{Credits: 2})
			p := <-peers
			b := c.Bind(testProgram, None)
			if !connected {
				refuses.Store(true)
				p.nc.Close()
			}
			var all []chan error
			for range 3 {
				all = append(all, begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) }))
			}
			synctest.Wait()
			c.Close()
			for _, ended := range all {
				if err := <-ended; !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			}
			if err := b.Call(context.Background(), 0, nil, nil, nil); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			c.Close()
		})
	}
}

// TestDialErrors checks what Dial says of addresses that are none.
func TestDialErrors(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:111":   "dial 10.0.0.1:111: the address does not begin with a transport: write tcp:HOST:PORT or rdma:HOST:PORT",
		"rdma:10.0.0.1":  "dial rdma:10.0.0.1: address 10.0.0.1: missing port in address: write rdma:HOST:PORT",
		"tcp:10.0.0.1":   "dial tcp:10.0.0.1: address 10.0.0.1: missing port in address: write tcp:HOST:PORT",
		"tcp:[::1]:1:22": "dial tcp:[::1]:1:22: address [::1]:1:22: too many colons in address: write tcp:HOST:PORT",
	} {
		if _, err := Dial(context.Background(), address, nil); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
