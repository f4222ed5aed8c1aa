package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestCommitNeedsNoTurn: who waits for a buffer or for acknowledgements does not
// hold up who commits, least of all a handler.
func TestCommitNeedsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, _, out, in := pair(t, n, nil, &Options{Buffers: 4, Size: 10})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var got [3]Buffer
		for i := range got {
			var err error
			if got[i], err = out.Out.Acquire(ctx); err != nil {
				t.Fatal(err)
			}
		}
		waits := make(chan error, 1)
		go func() {
			_, err := out.Out.Acquire(ctx) // a quarter is never handed out ahead
			waits <- err
		}()
		synctest.Wait()
		if len(waits) != 0 {
			t.Error("all buffers were handed out ahead")
		}
		for i := range got {
			if err := out.Out.Commit(got[i], 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-waits; err != nil {
			t.Error(err)
		}
		for range got {
			m, err := in.In.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			in.In.Release(m)
		}
	})
}

// TestHandlerAnswersWhileFlushing: the handler of one host sends while another
// goroutine waits for everything to be acknowledged.
func TestHandlerAnswersWhileFlushing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		n.sim.Link(simnet.Addr(2), simnet.Addr(1), simnet.Link{Latency: time.Millisecond})
		a, b := n.host(1, nil), n.host(2, nil)
		echo := func(l *Link, m Message) {
			if x, ok := l.Out.TryAcquire(); ok && !m.EOF {
				l.Out.Commit(x, m.Opcode, copy(x.Bytes, m.Bytes))
			}
		}
		out, in := join(t, a, b, "port", &Options{Directions: Both, Buffers: 64, Size: 10}, &Options{Directions: Both, Buffers: 64, Size: 10, Handle: echo})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		flushing := make(chan error)
		go func() {
			for range 200 {
				if err := in.Out.Flush(ctx); err != nil {
					flushing <- err
					return
				}
				time.Sleep(100 * time.Microsecond)
			}
			flushing <- nil
		}()
		for i := range 200 {
			if err := out.Out.Send(ctx, uint8(i), []byte("question")); err != nil {
				t.Fatal(err)
			}
			m, err := out.In.Recv(ctx)
			if err != nil || m.Opcode != uint8(i) {
				t.Fatal(m, err)
			}
			out.In.Release(m)
		}
		if err := <-flushing; err != nil {
			t.Error(err)
		}
	})
}

// TestNothingAfterClose: what the application does with messages and buffers of a
// link that it closed reaches nobody.
func TestNothingAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b, out, in := pair(t, n, &Options{Directions: Both, Buffers: 4, Size: 10}, &Options{Directions: Both, Buffers: 4, Size: 10})
		ctx := context.Background()
		for range 2 {
			if err := out.Out.Send(ctx, 0, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		m, err := in.In.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		buffer, err := in.Out.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		before := b.ep.Stats().TransactionsDone
		synctest.Wait()
		in.In.Release(m)
		if err := in.Out.Commit(buffer, 0, 1); err == nil {
			t.Error("a buffer of a closed link was committed")
		}
		if _, err := in.In.Recv(ctx); !errors.Is(err, ErrClosed) {
			t.Errorf("received from a closed link: %v", err)
		}
		time.Sleep(time.Second)
		if got := b.ep.Stats().TransactionsDone; got > before+1 { // the closing letter
			t.Errorf("%d transactions after Close", got-before)
		}
		out.Close()
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

// picky takes a few bytes of each Write, and fails once.
type picky struct {
	bytes.Buffer
	failed bool
}

var errPicky = errors.New("no more for now")

func (p *picky) Write(b []byte) (int, error) {
	if !p.failed && p.Len() > 20 {
		p.failed = true
		p.Buffer.Write(b[:1])
		return 1, errPicky
	}
	return p.Buffer.Write(b)
}

// TestReadThenWriteTo: bytes come once and in order, whoever takes them and
// however often that fails.
func TestReadThenWriteTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		_, _, out, in := pair(t, n, nil, &Options{Buffers: 3, Size: 10})
		want := []byte("a header of fifteen and then all the rest of what is sent")
		go func() {
			out.Out.Write(want)
			out.Close()
		}()
		head := make([]byte, 15)
		if _, err := io.ReadFull(in.In, head); err != nil {
			t.Fatal(err)
		}
		rest := &picky{}
		_, err := in.In.WriteTo(rest)
		if !errors.Is(err, errPicky) {
			t.Errorf("WriteTo: %v", err)
		}
		if _, err := io.Copy(rest, in.In); err != nil {
			t.Errorf("io.Copy: %v", err)
		}
		if got := append(head, rest.Bytes()...); !bytes.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// TestReleaseBeforeConnect: buffers of a plain link that came back before it was
// known where that is told are told of then.
func TestReleaseBeforeConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b := n.host(1, nil), n.host(2, nil)
		toB, err := a.ep.Connect(dgrdma.Peer{ID: 2, Addr: simnet.Addr(2)})
		if err != nil {
			t.Fatal(err)
		}
		toA, err := b.ep.Connect(dgrdma.Peer{ID: 1, Addr: simnet.Addr(1)})
		if err != nil {
			t.Fatal(err)
		}
		in, consumer, err := b.Offer(toA, 80, &Options{Buffers: 3, Size: 8})
		if err != nil {
			t.Fatal(err)
		}
		out, flow, err := a.Attach(toB, consumer, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for k := range 20 {
			if k == 2 {
				if err := in.Connect(flow); err != nil {
					t.Fatal(err)
				}
				if err := in.Connect(flow); !errors.Is(err, ErrLayout) {
					t.Errorf("connected twice: %v", err)
				}
			}
			if err := out.Out.Send(ctx, uint8(k), []byte{byte(k)}); err != nil {
				t.Fatalf("message %d: %v", k, err)
			}
			m, err := in.In.Recv(ctx)
			if err != nil || m.Opcode != uint8(k) {
				t.Fatalf("message %d: %v", k, err)
			}
			if err := in.In.Release(m); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestGreedyPeer: a shape that would cost gigabytes is refused.
func TestGreedyPeer(t *testing.T) {
	h := half{Buffers: 2048, Size: MaxMessage, Pitch: 1 << 21, Data: 0, Flags: 0, FlagPitch: 4}
	if h.valid() {
		t.Error("4 GiB of buffers are taken for granted")
	}
	h.Buffers = 256
	if !h.valid() {
		t.Error("512 MiB are refused")
	}
}

// TestConnectionClosed: links end with their connection, whoever closes it.
func TestConnectionClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b, out, in := pair(t, n, nil, &Options{Buffers: 2, Size: 10})
		ended := make(chan error)
		go func() {
			var err error
			for err == nil {
				_, err = in.In.Recv(context.Background())
			}
			ended <- err
		}()
		go func() {
			var err error
			for err == nil {
				err = out.Out.Send(context.Background(), 0, nil)
			}
			ended <- err
		}()
		synctest.Wait()
		out.Peer().Close()
		in.Peer().Close()
		for range 2 {
			// Whoever closes last may have heard of the other one before.
			if err := <-ended; !errors.Is(err, ErrClosed) && !errors.Is(err, dgrdma.ErrPeerClosed) {
				t.Error(err)
			}
		}
		out.Close()
		in.Close()
		synctest.Wait()
		nothingLeft(t, a, b)
	})
}
