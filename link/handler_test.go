package link

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestHandler checks that messages are handed to the handler in order where they arrive, also before
// the dialer knows that it was accepted, and end of file last.
func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		n.sim.Link(simnet.Addr(2), simnet.Addr(1), simnet.Link{Latency: time.Millisecond, Reorder: 0.3, Loss: 0.1})
		a, b := n.host(1, nil), n.host(2, nil)
		port, err := b.Listen("port", &Options{Directions: Send})
		if err != nil {
			t.Fatal(err)
		}
		const messages = 500
		go func() {
			l, err := port.Accept(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			for i := range messages {
				if err := l.Out.Send(context.Background(), uint8(i), make([]byte, i)); err != nil {
					t.Error(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}()
		got := 0
		l, err := dial(context.Background(), a, 2, "port", &Options{Directions: Receive, Buffers: 7, Size: messages, Handle: func(l *Link, m Message) {
			if l.In == nil || m.Number != uint64(got) || m.EOF != (got == messages) || !m.EOF && (m.Opcode != uint8(got) || len(m.Bytes) != got) {
				t.Errorf("message %d: %+v", got, m)
			}
			got++
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.In.Recv(context.Background()); err != io.EOF || got != messages+1 {
			t.Errorf("%d messages, then %v", got, err)
		}
		l.Close()
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

// TestTryAcquire checks that TryAcquire does not wait.
func TestTryAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, _, out, in := pair(t, n, nil, &Options{Buffers: 2, Size: 10})
		for i := range 2 {
			x, ok := out.Out.TryAcquire()
			if !ok {
				t.Fatal("no buffer is free")
			}
			if err := out.Out.Commit(x, 0, i); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if _, ok := out.Out.TryAcquire(); ok {
			t.Error("a buffer is free that the consumer has")
		}
		m, err := in.In.Recv(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := in.In.Release(m); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, ok := out.Out.TryAcquire(); !ok {
			t.Error("no buffer is free after one was released")
		}
		out.fail(ErrClosed)
		if _, ok := out.Out.TryAcquire(); ok {
			t.Error("a failed link has buffers")
		}
	})
}

// TestDeadPeer checks that a link that only waits is told of a dead peer, after what was delivered.
func TestDeadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const giveUp = 3 * time.Second
		n := newNet(t, 1)
		cfg := &Config{Endpoint: dgrdma.Config{GiveUp: giveUp}}
		a, b := n.host(1, cfg), n.host(2, cfg)
		out, in := join(t, a, b, "port", nil, &Options{Buffers: 4, Size: 10})
		for range 3 {
			if err := out.Out.Send(context.Background(), 0, []byte("delivered")); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Out.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 1})
		n.sim.Link(simnet.Addr(2), simnet.Addr(1), simnet.Link{Loss: 1})
		began := time.Now()
		for range 3 {
			m, err := in.In.Recv(context.Background())
			if err != nil || string(m.Bytes) != "delivered" {
				t.Errorf("%q, %v", m.Bytes, err)
			}
		}
		_, err := in.In.Recv(context.Background())
		var e *Error
		if !errors.Is(err, dgrdma.ErrPeerDown) || !errors.As(err, &e) || e.Port != "port" || e.Peer != "peer 1 at 02:00:00:00:00:01" {
			t.Errorf("the consumer was told: %v", err)
		}
		if took := time.Since(began); took > 3*giveUp/2+time.Second {
			t.Errorf("it took %v", took)
		}
		for range 4 {
			err = out.Out.Send(context.Background(), 0, []byte("lost"))
		}
		if !errors.Is(err, dgrdma.ErrPeerDown) {
			t.Errorf("the producer was told: %v", err)
		}
		if err := out.Close(); !errors.Is(err, dgrdma.ErrPeerDown) {
			t.Errorf("Close: %v", err)
		}
		in.Close()
		synctest.Wait()
		nothingLeft(t, a, b)
	})
}

// TestNoAnswer checks the errors of Dial for a peer that is there but knows no links, and for one that
// is not there.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a := n.host(1, &Config{Endpoint: dgrdma.Config{GiveUp: time.Second}})
		memory, _ := dgrdma.NewRegion(1 << 20)
		plain, err := dgrdma.New(n.sim.Attach(simnet.Addr(2), simnet.Config{}), &dgrdma.Config{ID: 2, Memory: memory, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		ctx, cancel := context.WithTimeoutCause(context.Background(), 5*time.Second, ErrNoAnswer)
		defer cancel()
		if _, err := dial(ctx, a, 2, "port", nil); !errors.Is(err, dgrdma.ErrNoService) {
			t.Errorf("a plain endpoint: %v", err)
		}
		synctest.Wait()
		nothingLeft(t, a)
		if _, err := dial(context.Background(), a, 3, "port", nil); !errors.Is(err, dgrdma.ErrPeerDown) {
			t.Errorf("no host: %v", err)
		}
	})
}

// TestAllocations checks that a message allocates nothing, by both ways to receive and to send.
func TestAllocations(t *testing.T) {
	n := newNet(t, 1)
	_, _, out, in := pair(t, n, nil, &Options{Buffers: 64, Size: 64})
	ctx := context.Background()
	body := make([]byte, 64)
	message := func() {
		if err := out.Out.Send(ctx, 0, body); err != nil {
			t.Fatal(err)
		}
		m, err := in.In.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := in.In.Release(m); err != nil {
			t.Fatal(err)
		}
		x, err := out.Out.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Out.Commit(x, 0, 64); err != nil {
			t.Fatal(err)
		}
		if m, err = in.In.Recv(ctx); err == nil {
			err = in.In.Release(m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		message()
	}
	most := uint64(1)
	if fixture.Race { // a sync.Pool then forgets some of its chunks
		most = 4
	}
	if got := fixture.Allocations(2000, message); got >= most {
		t.Errorf("%v allocations for two messages", got)
	}
}

// TestGiveUpOfTheString checks that the time of silence in the endpoint string counts for Dial, too.
func TestGiveUpOfTheString(t *testing.T) {
	t.Parallel()
	h, err := Open("udp:127.0.0.1?giveup=300ms", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	began := time.Now()
	// No host is there, and nothing but silence says so.
	if _, err := h.Dial(context.Background(), "ocpi-udp-rdma:127.0.0.1;9;65536.9.16", "port", nil); err == nil {
		t.Error("a link without a peer")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to find out", took)
	}
	if got := h.Endpoint().GiveUp(); got != 300*time.Millisecond {
		t.Errorf("gives up after %v", got)
	}
}
