package link

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestCloseEndsAll checks that Close ends all that a host has, at once and as often as it is called.
// What was delivered before can still be received.
func TestCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, b, out, in := pair(t, n, nil, nil)
		p, err := b.Listen("another", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Out.Send(t.Context(), 7, []byte("delivered")); err != nil {
			t.Fatal(err)
		}
		accepted := make(chan error, 1)
		go func() { _, err := p.Accept(t.Context()); accepted <- err }()
		synctest.Wait()
		for range 2 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			select {
			case <-in.Done():
				if err := in.Err(); !errors.Is(err, ErrClosed) {
					t.Errorf("the link: %v", err)
				}
			default:
				t.Error("the link is not done")
			}
		}
		if err := <-accepted; !errors.Is(err, ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
		if _, err := b.Listen("port", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Listen: %v", err)
		}
		if b.heartbeatTimer.Stop() {
			t.Error("the host still looks after peers")
		}
		b.heartbeat() // one that had begun
		if b.heartbeatTimer.Stop() {
			t.Error("the host looks after peers again")
		}
		if m, err := in.In.Recv(t.Context()); err != nil || string(m.Bytes) != "delivered" {
			t.Errorf("%q, %v", m.Bytes, err)
		}
		if _, err := in.In.Recv(t.Context()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		in.Close()
		nothingLeft(t, b)
	})
}

// TestShutdownWaitsForPeers checks that Shutdown waits for the pending end of file of a finished link,
// and for the peer to end the link too. For a peer that does not it waits a second longer. So no peer
// waits until it gives this host up.
func TestShutdownWaitsForPeers(t *testing.T) {
	for _, c := range []struct {
		name   string
		manual bool
		after  time.Duration // when the peer has read all
		ends   bool          // and ends its link
		most   time.Duration
	}{
		{"at once", false, 0, true, 100 * time.Millisecond},
		{"polled", true, 0, true, 100 * time.Millisecond},
		{"slow", false, 3 * time.Second, true, 3100 * time.Millisecond},
		{"never", false, 0, false, 1100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				a, b := n.host(1, &Config{Endpoint: dgrdma.Config{Manual: c.manual}}), n.host(2, nil)
				o := &Options{Directions: Both, Buffers: 2, Size: 8}
				out, in := join(t, a, b, "port", o, o)
				for range 2 { // all buffers, so that end of file waits for one
					if err := out.Out.Send(soon(t), 0, []byte("x")); err != nil {
						t.Fatal(err)
					}
				}
				out.Finish()
				read := make(chan struct{})
				go func() {
					defer close(read)
					time.Sleep(c.after)
					if got, err := io.ReadAll(in.In); string(got) != "xx" || err != nil {
						t.Errorf("%q, %v", got, err)
					}
					if c.ends {
						in.Finish()
					}
				}()
				began := time.Now()
				if err := a.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d < c.after || d > c.most {
					t.Errorf("Shutdown took %v", d)
				}
				<-read
				if c.ends {
					nothingLeft(t, b)
					began = time.Now()
					if err := b.Shutdown(t.Context()); err != nil || time.Since(began) > 100*time.Millisecond {
						t.Errorf("the peer's Shutdown: %v after %v", err, time.Since(began))
					}
				}
			})
		})
	}
}

// TestShutdownWaitsNoLonger checks that Shutdown waits for no peer longer than its context.
func TestShutdownWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, out, _ := pair(t, newNet(t, 1), nil, &Options{Buffers: 1, Size: 8})
		if err := out.Out.Send(soon(t), 0, []byte("x")); err != nil {
			t.Fatal(err)
		}
		out.Finish()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		a.Shutdown(ctx)
		if d := time.Since(began); d < 3*time.Second || d > 3100*time.Millisecond {
			t.Errorf("after %v", d)
		}
	})
}

// TestCloseTellsThePeer checks that a peer with links of a host that is closed hears so at once, and
// not that the host is dead when it is given up. What was delivered before can be received.
func TestCloseTellsThePeer(t *testing.T) {
	for _, c := range []struct {
		name  string
		links int // the peer is told of all of them
		how   func(h *Host) error
	}{
		{"Close", 1, (*Host).Close},
		{"Shutdown", 3, func(h *Host) error { return h.Shutdown(context.Background()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				a, b := n.host(1, nil), n.host(2, nil)
				made := b.serve(t, "port", &Options{Buffers: 2, Size: 8})
				var in []*Link
				for range c.links {
					out, err := a.Dial(soon(t), at(2), "port", nil)
					if err != nil {
						t.Fatal(err)
					}
					in = append(in, <-made)
					if err := errors.Join(out.Out.Send(soon(t), 7, []byte("hello")), out.Out.Flush(soon(t))); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second) // nothing is in flight
				if err := c.how(a); err != nil {
					t.Error(err)
				}
				for _, l := range in {
					if m, err := l.In.Recv(soon(t)); err != nil || string(m.Bytes) != "hello" {
						t.Errorf("%q, %v", m.Bytes, err)
					}
					_, err := l.In.Recv(soon(t))
					var aborted *AbortError
					if !errors.As(err, &aborted) || aborted.Reason != "the host was closed" || !errors.Is(err, ErrPeerClosed) {
						t.Errorf("the peer hears: %v", err)
					}
				}
			})
		})
	}
}
