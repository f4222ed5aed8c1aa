package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// simulatedHost opens a link host on a simulated network, until the test ends.
func simulatedHost(t *testing.T, sim *simnet.Network, id uint32, memory int) *link.Host {
	t.Helper()
	h, err := link.Open("", &link.Config{Memory: memory, Endpoint: dgrdma.Config{ID: dgrdma.EndpointID(id)}, Open: func(c *dgrdma.Config) (*dgrdma.Endpoint, error) {
		return dgrdma.New(sim.Attach(simnet.Addr(id), simnet.Config{}), c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// TestAnswersThatAreNotTaken checks that a client of ping --serve --link that sends on and takes no
// answers costs the server no more than the buffers of its link, and one goroutine, and is answered
// when it takes them again (F11); and that one that takes them late gets them all, in order.
func TestAnswersThatAreNotTaken(t *testing.T) {
	for _, taken := range []bool{false, true} {
		t.Run(fmt.Sprintf("taken=%v", taken), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simnet.New(1)
				defer sim.Close()
				server, client := simulatedHost(t, sim, 1, pingLinkMemory), simulatedHost(t, sim, 2, pingLinkMemory)
				out := new(outbox)
				port, err := server.Listen(pingPort, pingLinkOptions(0, out.answer))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				go port.Accept(ctx)
				const size, buffers = 64 << 10, 4
				l, err := client.Dial(ctx, fmt.Sprintf("ocpi-ether-rdma:%v;4096.1.1", simnet.Addr(1)), pingPort,
					&link.Options{Directions: link.Both, Buffers: buffers, Size: size})
				if err != nil {
					t.Fatal(err)
				}
				message := make([]byte, size)
				before := runtime.NumGoroutine()
				sent := 0
				for ; sent < 2000 && err == nil; sent++ {
					message[0] = byte(sent)
					if taken && sent >= buffers+2 {
						break
					}
					err = l.Out.Send(ctx, 0, message)
					synctest.Wait()
					out.mu.Lock()
					for of, b := range out.of {
						if most, _ := of.In.Buffers(); len(b.waiting) > most {
							t.Fatalf("%d answers wait, and %d may", len(b.waiting), most)
						}
					}
					out.mu.Unlock()
					if n := runtime.NumGoroutine(); n > before+5 {
						t.Fatalf("%d goroutines more after %d messages", n-before, sent)
					}
				}
				if !taken {
					if err != nil || sent != 2000 {
						t.Fatalf("after %d messages: %v", sent, err)
					}
					came := 0
					for last := false; !last; came++ {
						few, stop := context.WithTimeout(ctx, time.Second)
						m, err := l.In.Recv(few)
						stop()
						if errors.Is(err, context.DeadlineExceeded) { // all that were kept are here
							message[1] = 1
							err = l.Out.Send(ctx, 0, message)
							if err == nil {
								m, err = l.In.Recv(ctx)
							}
						}
						if err != nil {
							t.Fatalf("after %d answers: %v", came, err)
						}
						last = m.Bytes[1] == 1
						l.In.Release(m)
					}
					if most := 2*buffers + pingLinkBuffers; came <= buffers || came > most {
						t.Errorf("%d answers came, want %d at most", came, most)
					}
					l.Abort(ctx, "")
					time.Sleep(time.Second)
					out.mu.Lock()
					defer out.mu.Unlock()
					if n := out.kept.Load(); n != 0 || len(out.of) != 0 {
						t.Errorf("%d answers are kept, of %d links", n, len(out.of))
					}
					return
				}
				for k := range sent {
					m, err := l.In.Recv(ctx)
					if err != nil || len(m.Bytes) != size || m.Bytes[0] != byte(k) || !bytes.Equal(m.Bytes[1:], make([]byte, size-1)) {
						t.Fatalf("answer %d: %v", k, err)
					}
					l.In.Release(m)
				}
				l.CloseContext(ctx)
			})
		})
	}
}

// TestWireSlowForAnswers checks that a client to which the wire carries answers slower than it sends pings
// is not ended: it gets answers for as long as it sends, and misses the others (F11).
func TestWireSlowForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simnet.New(1)
		defer sim.Close()
		server, client := simulatedHost(t, sim, 1, pingLinkMemory), simulatedHost(t, sim, 2, pingLinkMemory)
		sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Rate: 10e6, Queue: 10000})
		port, err := server.Listen(pingPort, pingLinkOptions(0, new(outbox).answer))
		if err != nil {
			t.Fatal(err)
		}
		go port.Accept(t.Context())
		const size = 256 << 10
		var got atomic.Int32
		l, err := client.Dial(t.Context(), fmt.Sprintf("ocpi-ether-rdma:%v;4096.1.1", simnet.Addr(1)), pingPort,
			pingLinkOptions(size, func(*link.Link, link.Message) { got.Add(1) }))
		if err != nil {
			t.Fatal(err)
		}
		var out outbox
		for range 4 {
			before := got.Load()
			for range 100 { // each takes the wire 0.2 s
				out.send(l, 0, size, func(b []byte) int { return len(b[:size]) })
				time.Sleep(50 * time.Millisecond)
			}
			if n := got.Load() - before; l.Err() != nil || n < 10 {
				t.Fatalf("%d answers in 5 s: %v", n, l.Err())
			}
		}
		l.Abort(t.Context(), "")
	})
}
