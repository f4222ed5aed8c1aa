package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestManual checks that in hosts without goroutines each blocking call ends by itself, though no
// other goroutine polls their endpoints: the calls do. What the other side waits for when no call
// waits here, the program has to poll for.
func TestManual(t *testing.T) {
	const latency = 200 * time.Microsecond
	for _, c := range []struct {
		name         string
		dials, opens bool // without goroutines
	}{{"dialer", true, false}, {"listener", false, true}, {"both", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 0)
				n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Latency: latency})
				n.sim.Link(simnet.Addr(2), simnet.Addr(1), simnet.Link{Latency: latency})
				a := n.host(1, &Config{Endpoint: dgrdma.Config{Manual: c.dials, GiveUp: time.Second}})
				b := n.host(2, &Config{Endpoint: dgrdma.Config{Manual: c.opens, GiveUp: time.Second}})
				both := &Options{Directions: Both, Buffers: 4, Size: 1000}
				out, in := join(t, a, b, "port", both, both)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				// rest waits for goroutines, and polls in that time.
				rest := func(ends *sync.WaitGroup) {
					over := make(chan struct{})
					go func() { ends.Wait(); close(over) }()
					for {
						select {
						case <-over:
							return
						case <-time.After(latency / 2):
							a.ep.Progress(0)
							b.ep.Progress(0)
						}
					}
				}

				short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
				defer stop()
				began := time.Now()
				if _, err := out.In.Recv(short); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("nothing was received: %v", err)
				}
				if took := time.Since(began); took > 25*time.Millisecond {
					t.Errorf("a context of 20ms ended after %v", took)
				}
				data := bytes.Repeat([]byte("0123456789"), 5000)
				var ends sync.WaitGroup
				ends.Go(func() {
					got, err := io.ReadAll(in.In)
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("read %d bytes, %v", len(got), err)
					}
					if err := in.Out.Send(ctx, 7, []byte("thanks")); err != nil {
						t.Error(err)
					}
					if err := in.Out.Flush(ctx); err != nil {
						t.Error(err)
					}
					if err := in.Out.Close(); err != nil {
						t.Error(err)
					}
					if _, err := in.In.Recv(ctx); !errors.Is(err, io.EOF) {
						t.Errorf("after the end: %v", err)
					}
				})
				if _, err := out.Out.Write(data); err != nil {
					t.Error(err)
				}
				if err := out.Out.Close(); err != nil {
					t.Error(err)
				}
				if m, err := out.In.Recv(ctx); err != nil || string(m.Bytes) != "thanks" {
					t.Errorf("%q, %v", m.Bytes, err)
				}
				rest(&ends)

				if _, err := out.In.Recv(ctx); !errors.Is(err, io.EOF) {
					t.Errorf("after the end: %v", err)
				}
				// A close waits until the other side knows.
				ends.Go(func() {
					if err := in.Close(); err != nil {
						t.Error(err)
					}
				})
				if err := out.Close(); err != nil {
					t.Error(err)
				}
				rest(&ends)
				ends.Go(func() {
					if _, err := dial(ctx, a, 2, "no such port", nil); !errors.Is(err, ErrRefused) {
						t.Errorf("dialed where no port is: %v", err)
					}
				})
				rest(&ends) // a dialer that is to be refused does not wait
				ends.Go(func() {
					if err := b.Shutdown(ctx); err != nil {
						t.Error(err)
					}
				})
				if err := a.Shutdown(ctx); err != nil {
					t.Error(err)
				}
				rest(&ends)
			})
		})
	}
}
