package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestShutdownTakesNothingMore: while what is posted is waited for, nothing can be posted,
// and no connection begins anew.
func TestShutdownTakesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: simnet.Link{Latency: 10 * time.Millisecond}})
		defer p.close()
		var early error = errPicky
		x := write(64, pattern(1, 1000), 0, 1)
		x.Done = func(_ *Transaction, err error) { early = err }
		if err := p.toB.Post(x); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- p.a.Shutdown(context.Background()) }()
		synctest.Wait()
		if err := p.toB.Post(write(64, nil, 0, 2)); !errors.Is(err, ErrClosed) {
			t.Errorf("Post: %v", err)
		}
		if err := p.toB.Reset(0); !errors.Is(err, ErrClosed) {
			t.Errorf("Reset: %v", err)
		}
		if err := <-ended; err != nil || early != nil {
			t.Errorf("Shutdown: %v; what was posted before: %v", err, early)
		}
	})
}

// TestShutdownOfSeveralPeers: the context bounds the wait for all of them, and its cause is
// returned if one was not done.
func TestShutdownOfSeveralPeers(t *testing.T) {
	for _, mute := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{link: simnet.Link{Latency: time.Millisecond}})
			defer p.close()
			for i := range 3 {
				c := p.connect(p.a, Peer{ID: 9, Addr: simnet.Addr(uint32(10 + i))})
				if i < mute {
					if err := c.Post(write(64, nil, 0, 1)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := p.toB.Write(t.Context(), write(64, nil, 0, 1)); err != nil {
				t.Fatal(err)
			}
			cause := errors.New("long enough")
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, cause)
			defer cancel()
			began := time.Now()
			err := p.a.Shutdown(ctx)
			if took := time.Since(began); errors.Is(err, cause) != (mute > 0) || mute == 0 && (err != nil || took > 0) || took > time.Second {
				t.Errorf("%d of 4 peers mute: %v after %v", mute, err, took)
			}
		})
	}
}

// TestShutdownInACallback: it does not wait there, and another goroutine does what is left.
func TestShutdownInACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{})
		defer p.close()
		mute := p.connect(p.a, Peer{ID: 9, Addr: simnet.Addr(9)})
		if err := mute.Post(write(64, nil, 0, 1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began, told := time.Now(), make(chan time.Duration, 1)
		x := write(64, nil, 0, 1)
		x.Done = func(*Transaction, error) {
			before := time.Now()
			if err := p.a.Shutdown(ctx); err != nil {
				t.Errorf("Shutdown in Done: %v", err)
			}
			told <- time.Since(before)
		}
		if err := p.toB.Post(x); err != nil {
			t.Fatal(err)
		}
		if took := <-told; took != 0 {
			t.Errorf("Shutdown in Done took %v", took)
		}
		<-mute.Done()
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("closed after %v, want what the context allows, 1 s", took)
		}
	})
}

// unclosable is a wire whose Close fails.
type unclosable struct {
	*simnet.Conn
	err error
}

func (u *unclosable) Close() error { u.Conn.Close(); return u.err }

// TestCloseTellsWhatTheWireSays: but that it is closed is no error.
func TestCloseTellsWhatTheWireSays(t *testing.T) {
	for _, says := range []error{nil, errWire, net.ErrClosed, fmt.Errorf("socket: %w", net.ErrClosed)} {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1)
			defer n.Close()
			e, err := New(&unclosable{n.Attach(addrA, simnet.Config{}), says}, &Config{ID: 1})
			if err != nil {
				t.Fatal(err)
			}
			want := says
			if errors.Is(says, net.ErrClosed) {
				want = nil
			}
			if err := e.Close(); err != want {
				t.Errorf("Close: %v, want %v", err, want)
			}
		})
	}
}
