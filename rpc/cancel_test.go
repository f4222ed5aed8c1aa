package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestCancelledMemory checks that nothing reads the arguments or writes to Into after Call has returned, whenever its context ends: the
// caller changes both at once, which the race detector sees. What the server gets is what was there during the call, or is cut.
func TestCancelledMemory(t *testing.T) {
	for _, size := range []int{100, 6000, 300000} {
		seed := rand.Uint64()
		fixture.Bubble(t, fmt.Sprintf("%d octets, seed %d", size, seed), func(t *testing.T) { cancelledMemory(t, size, seed) })
	}
}

// cancelledMemory cancels calls with arguments of that size. In virtual time no call waits for so long that the client gives it up because the
// machine is busy.
func cancelledMemory(t *testing.T, size int, seed uint64) {
	h := HandlerFunc(func(ctx context.Context, c *Call) error {
		var v data
		if err := c.Decode(&v); err != nil {
			return err
		}
		if len(v.b) > 0 && !bytes.Equal(v.b, bytes.Repeat(v.b[:1], len(v.b))) {
			t.Errorf("an argument of %d octets was changed while it was sent", len(v.b))
		}
		return c.Reply(&v)
	})
	s := NewServer(nil)
	defer s.Close()
	s.Handle(testProgram, h)
	p, _ := serveRaw(t, s)
	c := NewClient(p.nc, nil)
	defer c.Close()
	b := c.Bind(testProgram, None)
	mostYields := 10 + size/500 // of a processor, until a call is cancelled: about half of the calls are
	var done atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			d := rand.New(rand.NewPCG(seed, uint64(i)))
			args, into := data{b: make([]byte, size)}, make([]byte, size)
			for range fixture.Fewer(150, 40) {
				ctx, cancel := context.WithCancel(context.Background())
				yields := d.IntN(mostYields)
				go func() {
					for range yields {
						runtime.Gosched()
					}
					cancel()
				}()
				var results data
				err := b.Call(ctx, procEcho, &args, &results, &CallOptions{Into: into})
				cancel()
				switch {
				case err == nil && !bytes.Equal(results.b, args.b):
					t.Error("other octets came back")
				case err != nil && !errors.Is(err, context.Canceled):
					t.Error(err)
					return
				case err == nil:
					done.Add(1)
				}
				fill := byte(d.Uint32())
				for i := range args.b {
					args.b[i], into[i] = fill, 0
				}
			}
		})
	}
	all.Wait()
	if err := b.Call(context.Background(), 0, nil, nil, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	t.Logf("%d octets: %d calls were done", size, done.Load())
}

// TestLateReply checks that a reply that comes after its call has ended is written nowhere.
func TestLateReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{100, 200000} {
			c, peers, _ := dialRaw(t, ClientOptions{})
			p := <-peers
			ctx, cancel := context.WithCancel(context.Background())
			into := make([]byte, size)
			ended := begin(func() error {
				return c.Bind(testProgram, None).Call(ctx, procRead, num(size), &data{}, &CallOptions{Into: into})
			})
			xid, _, _ := p.nextCall()
			reply := fragment(replyTo(xid, &data{b: bytes.Repeat([]byte("x"), size)}), true)
			p.nc.Write(reply[:len(reply)/2]) // it is on its way
			synctest.Wait()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			p.nc.Write(reply[len(reply)/2:])
			synctest.Wait()
			if !bytes.Equal(into, make([]byte, size)) {
				t.Error("the reply was written")
			}
			if st := c.Stats(); st.Unmatched != 1 || st.Abandoned != 1 {
				t.Errorf("%+v", st)
			}
			c.Close()
		}
	})
}

// TestCancelDuringWrite checks that a call whose context ends while its arguments are being written waits for the write, ends the connection if the server takes
// nothing for a second, and waits for no write of others if its own has not begun.
func TestCancelDuringWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peers, _ := dialRaw(t, ClientOptions{})
		defer c.Close()
		p := <-peers
		b := c.Bind(testProgram, None)
		call := func(size int) (ended chan error, cancel func()) {
			ctx, cancel := context.WithCancel(context.Background())
			ended = begin(func() error { return b.Call(ctx, procEcho, &data{b: make([]byte, size)}, &data{}, nil) })
			synctest.Wait()
			return ended, cancel
		}
		first, cancelFirst := call(100000)
		second, cancelSecond := call(100000)
		cancelSecond()
		synctest.Wait()
		if len(second) != 1 {
			t.Error("a call that was not sent waits for the write of another one")
		}
		cancelFirst()
		synctest.Wait()
		if len(first) != 0 {
			t.Error("the call has returned while its arguments are being written")
		}
		p.nextCall() // the write ends
		synctest.Wait()
		if len(first) != 1 {
			t.Error("the call has not returned after the write")
		}
		third, cancelThird := call(100000)
		other := begin(func() error { return b.Call(context.Background(), 0, nil, nil, nil) })
		began := time.Now()
		cancelThird()
		if err := <-third; !errors.Is(err, context.Canceled) || time.Since(began) != patience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		p.expectEnd("the connection")
		p = <-peers
		xid, _, _ := p.nextCall()
		p.send(replyTo(xid, nil))
		if err := <-other; err != nil {
			t.Error(err)
		}
	})
}

// TestEarlyReply checks that a call does not end while its arguments are being written, though its reply is there.
func TestEarlyReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peers, _ := dialRaw(t, ClientOptions{})
		defer c.Close()
		p := <-peers
		ended := begin(func() error {
			return c.Bind(testProgram, None).Call(context.Background(), procEcho, &data{b: make([]byte, 100000)}, nil, nil)
		})
		head := make([]byte, 8)
		p.nc.Read(head)
		p.send(replyTo(uint32(head[4])<<24|uint32(head[5])<<16|uint32(head[6])<<8|uint32(head[7]), nil))
		synctest.Wait()
		if len(ended) != 0 {
			t.Error("the call has returned")
		}
		go p.nc.Read(make([]byte, 200000))
		time.Sleep(10 * time.Millisecond)
		p.nc.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
