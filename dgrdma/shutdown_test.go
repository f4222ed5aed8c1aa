package dgrdma

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestShutdownTakesNothingMore checks that nothing can be posted while Shutdown waits for what is
// posted, and that no connection starts a new life.
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

// TestShutdownOfSeveralPeers checks that the context bounds the wait for all peers, and that its
// cause is returned if one was not done.
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

// unclosable is a wire whose Close fails.
type unclosable struct {
	*simnet.Conn
	err error
}

func (u *unclosable) Close() error { u.Conn.Close(); return u.err }

// TestCloseTellsWhatTheWireSays checks that Close returns what the wire says when it is closed: but
// that it is closed already is no error.
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

// TestCloseTellsWhatItWaitsFor checks that the logger hears of a Close that waits for a callback, once, and not of one that does not wait.
func TestCloseTellsWhatItWaitsFor(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			p := newPair(t, pairConfig{a: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
			defer p.close()
			if stuck {
				in := make(chan struct{})
				x := write(64, pattern(1, 8), 0, 1)
				x.Done = func(*Transaction, error) {
					close(in)
					time.Sleep(5 * closeWarning)
				}
				if err := p.toB.Post(x); err != nil {
					t.Fatal(err)
				}
				<-in
			}
			p.a.Close()
			want := 0
			if stuck {
				want = 1
			}
			time.Sleep(5 * closeWarning)
			synctest.Wait()
			if got := strings.Count(log.String(), "is to call Stop"); got != want {
				t.Errorf("a callback that blocks: %v; told %d times:\n%s", stuck, got, &log)
			}
		})
	}
}
