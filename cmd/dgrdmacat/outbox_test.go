package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
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
// answers costs the server no more than the buffers of its link, and one goroutine, and is ended
// (F11); and that one that takes them late gets them all, in order.
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
					var why *link.AbortError
					if !errors.As(err, &why) || why.Reason != "answers are not taken" {
						t.Errorf("after %d messages: %v", sent, err)
					}
					time.Sleep(time.Second)
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
