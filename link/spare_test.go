package link

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// plainReader hides that a bytes.Reader can write itself, and looks at each read.
type plainReader struct {
	io.Reader
	look func()
}

func (r plainReader) Read(b []byte) (int, error) {
	r.look()
	return r.Reader.Read(b)
}

// TestStreamMemory: a stream that helps to send goes through a few buffers again
// and again, though it is ahead of the consumer by many, and frames are lost.
func TestStreamMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNet(t, 2) // host 1 helps
		n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 0.05})
		a, b, out, in := pair(t, n, &Options{}, &Options{Buffers: 64, Size: 200_000})
		if a.ep.Ahead() >= b.ep.Ahead() {
			t.Fatal("host 1 is to help, host 2 not")
		}
		want := make([]byte, 16_000_000)
		for i := range want {
			want[i] = byte(i ^ i>>8)
		}
		var got bytes.Buffer
		var most int64
		done := make(chan error, 1)
		go func() {
			_, err := io.Copy(&got, in.In)
			done <- err
		}()
		if _, err := io.Copy(out.Out, plainReader{bytes.NewReader(want), func() { most = max(most, a.budget.used.Load()) }}); err != nil {
			t.Fatal(err)
		}
		if err := out.Out.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes arrived, want %d as they were sent; %v", got.Len(), len(want), err)
		}
		// Those that wait to be sent, or to be acknowledged, the one being read into, and
		// end of file.
		underWay := out.peer.conn.Profile().Window * 1490
		if bound := int64((a.ep.Ahead()+underWay)/200_000+3) << 18; most > bound {
			t.Errorf("messages took %d bytes, want %d at most", most, bound)
		}
	})
}
