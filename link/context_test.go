package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestContextIsDone checks that a call whose context is done before it begins sends nothing, takes
// nothing, and fails with the context's cause, although it would not have to wait. What is there is
// received, end of file is sent, and a link's own end is the error.
func TestContextIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 1)
		a, b, out, in := pair(t, n, &Options{Buffers: 4, Size: 10}, nil)
		cause := errors.New("too late")
		done, cancel := context.WithCancelCause(t.Context())
		cancel(cause)

		if err := out.Out.Send(done, 0, []byte("x")); err != cause {
			t.Errorf("Send: %v", err)
		}
		if b, err := out.Out.Acquire(done); err != cause || b.Bytes != nil {
			t.Errorf("Acquire: %v", err)
		}
		if s := out.Stats().Out; s.Messages != 0 || s.Acquired != 0 {
			t.Errorf("%d messages sent, %d buffers acquired", s.Messages, s.Acquired)
		}
		port, err := b.Listen("again", nil)
		if err != nil {
			t.Fatal(err)
		}
		sent := a.ep.Stats().FramesSent
		if l, err := a.Dial(done, "ocpi-udp-rdma:127.0.0.1;7100;4096.2.3", "again", nil); l != nil || err != cause {
			t.Errorf("Dial: %v, %v", l, err)
		}
		if n := len(a.ep.Conns()); n != 1 {
			t.Errorf("Dial made a connection: %d", n)
		}
		if late := a.ep.Stats().FramesSent; late != sent {
			t.Errorf("Dial sent %d frames", late-sent)
		}
		go dial(t.Context(), a, 2, "again", nil)
		time.Sleep(time.Second)
		for range 20 { // for whichever it sees first
			if l, err := port.Accept(done); l != nil || err != cause {
				t.Errorf("Accept: %v, %v", l, err)
			}
		}
		if s := b.Stats(); s.Ports[0].Waiting != 1 {
			t.Errorf("%d links wait, want the one that was not accepted", s.Ports[0].Waiting)
		}

		if _, err := in.In.Recv(done); err != cause {
			t.Errorf("Recv of nothing: %v", err)
		}
		if err := out.Out.Send(t.Context(), 7, []byte("x")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if m, err := in.In.Recv(done); err != nil || m.Opcode != 7 {
			t.Errorf("Recv of what is there: %v", err)
		} else if err := in.In.Release(m); err != nil {
			t.Error(err)
		}
		if err := out.Out.Flush(done); err != nil {
			t.Errorf("Flush of nothing: %v", err)
		}
		if err := out.CloseContext(done); err != cause {
			t.Errorf("CloseContext: %v", err)
		}
		time.Sleep(time.Second)
		if !in.Stats().In.EndOfFile {
			t.Error("no end of file")
		}
		if err := out.Out.Send(done, 0, nil); !errors.Is(err, dgrdma.ErrClosed) {
			t.Errorf("Send by a link that is closed: %v", err)
		}
	})
}
