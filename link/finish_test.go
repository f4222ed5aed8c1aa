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

// TestFinish: what was sent arrives, and end of file behind it, though nobody waits for it,
// frames are lost, and the network takes its time; then nothing of the link is left.
func TestFinish(t *testing.T) {
	for _, c := range []struct {
		name     string
		buffers  int
		messages int
		keep     bool
	}{
		{"room", 8, 3, false},
		{"full", 4, 4, false},
		{"full but for the end", 4, 3, true},
		{"one buffer", 1, 1, true},
		{"nothing sent", 4, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				o := &Options{Directions: Both, Buffers: c.buffers, Size: 8, KeepForEnd: c.keep}
				a, b, out, in := pair(t, n, o, o)
				n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 0.3, Latency: 3 * time.Millisecond})
				n.sim.Link(simnet.Addr(2), simnet.Addr(1), simnet.Link{Loss: 0.3, Latency: 3 * time.Millisecond})
				var want []byte
				for i := range c.messages {
					want = append(want, byte(i))
					if err := out.Out.Send(soon(t), 0, want[i:]); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				for range 2 {
					if err := out.Finish(); err != nil || time.Since(began) > 0 {
						t.Errorf("%v after %v", err, time.Since(began))
					}
				}
				if _, err := out.In.Recv(soon(t)); !errors.Is(err, ErrClosed) {
					t.Errorf("received: %v", err)
				}
				if err := out.Out.Send(soon(t), 0, nil); !errors.Is(err, ErrClosed) {
					t.Errorf("sent: %v", err)
				}
				got, err := io.ReadAll(in.In)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%x, %v, want %x", got, err, want)
				}
				in.Finish()
				time.Sleep(2 * time.Second)
				nothingLeft(t, a, b)
			})
		})
	}
}

// TestFinishWaitsForNoReader: with a buffer kept for it end of file arrives, and the peer's
// writer is told, though nobody reads and all buffers are full, both ways.
func TestFinishWaitsForNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Options{Directions: Both, Buffers: 4, Size: 8, KeepForEnd: true}
		a, b, out, in := pair(t, newNet(t, 1), o, o)
		stuck := [2]chan error{make(chan error, 1), make(chan error, 1)}
		for i, l := range []*Link{out, in} {
			go func() {
				var err error
				for err == nil {
					err = l.Out.Send(t.Context(), 0, nil)
				}
				stuck[i] <- err
			}()
		}
		synctest.Wait()
		for _, l := range []*Link{out, in} {
			if s := l.Stats().Out; s.Filled != 3 {
				t.Fatalf("%d buffers are filled, want 3 of 4", s.Filled)
			}
		}
		out.Finish()
		time.Sleep(100 * time.Millisecond)
		for i, want := range []error{ErrClosed, ErrPeerClosed} {
			select {
			case err := <-stuck[i]:
				if !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			default:
				t.Fatal("somebody sends still")
			}
		}
		for range 3 {
			if m, err := in.In.Recv(soon(t)); err != nil || in.In.Release(m) != nil {
				t.Error(err)
			}
		}
		if _, err := in.In.Recv(soon(t)); err != io.EOF {
			t.Errorf("%v, want the end of file", err)
		}
		in.Finish()
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

// TestFinishToNobody: an end of file that waits for a buffer is owed no more when the peer
// is gone, or has ended the link itself; and who waits for it in Flush is told.
func TestFinishToNobody(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(n *net, b *Host, in *Link)
		want error
	}{
		{"died", func(n *net, b *Host, in *Link) {
			n.sim.Link(simnet.Addr(1), simnet.Addr(2), simnet.Link{Loss: 1})
			n.sim.Link(simnet.Addr(2), simnet.Addr(1), simnet.Link{Loss: 1})
		}, nil},
		{"aborted", func(n *net, b *Host, in *Link) { in.Abort(context.Background(), "enough") }, ErrClosed},
		{"finished", func(n *net, b *Host, in *Link) { in.Finish() }, ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNet(t, 1)
				a, b, out, in := pair(t, n, nil, &Options{Buffers: 2, Size: 8})
				for range 2 {
					if err := out.Out.Send(soon(t), 0, nil); err != nil {
						t.Fatal(err)
					}
				}
				if err := out.Out.Flush(soon(t)); err != nil {
					t.Fatal(err)
				}
				out.Finish()
				flushed := make(chan error, 1)
				go func() { flushed <- out.Out.Flush(context.Background()) }()
				time.Sleep(time.Second)
				if s := out.Stats(); !s.Closing || !errors.Is(s.Err, ErrClosed) {
					t.Errorf("a link that was finished: %+v", s)
				}
				if len(flushed) > 0 || out.hasTold() {
					t.Fatal("end of file is on its way, without a buffer")
				}
				c.end(n, b, in)
				time.Sleep(2 * a.ep.GiveUp())
				if len(flushed) == 0 {
					t.Error("Flush waits still")
				}
				in.Finish()
				time.Sleep(time.Second)
				nothingLeft(t, a)
			})
		})
	}
}

// TestProducerFinish: the other direction goes on; Flush waits for what is owed.
func TestProducerFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Options{Directions: Both, Buffers: 2, Size: 8}
		a, b, out, in := pair(t, newNet(t, 1), o, o)
		for range 2 {
			if err := out.Out.Send(soon(t), 0, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		buffer := make(chan error, 1)
		go func() { _, err := out.Out.Acquire(t.Context()); buffer <- err }()
		synctest.Wait()
		out.Out.Finish()
		if err := <-buffer; !errors.Is(err, ErrClosed) {
			t.Errorf("who waits for a buffer: %v", err)
		}
		flushed := make(chan error, 1)
		go func() { flushed <- out.Out.Flush(t.Context()) }()
		time.Sleep(time.Second)
		if len(flushed) > 0 {
			t.Error("Flush does not wait for end of file")
		}
		if got, err := io.ReadAll(in.In); string(got) != "xx" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if err := <-flushed; err != nil {
			t.Errorf("Flush: %v", err)
		}
		for range 5 {
			if err := in.Out.Send(soon(t), 0, []byte("back")); err != nil {
				t.Fatal(err)
			}
			m, err := out.In.Recv(soon(t))
			if err != nil || string(m.Bytes) != "back" || out.In.Release(m) != nil {
				t.Fatalf("%q, %v", m.Bytes, err)
			}
		}
		out.Close()
		in.Close()
		time.Sleep(time.Second)
		nothingLeft(t, a, b)
	})
}

// TestStreamContexts: who reads or writes bytes waits no longer than its context, and what
// was written before that is counted.
func TestStreamContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, out, in := pair(t, newNet(t, 1), nil, &Options{Buffers: 2, Size: 8})
		cause := errors.New("too late")
		short := func() context.Context {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
			t.Cleanup(cancel)
			return ctx
		}
		b := make([]byte, 8)
		if n, err := in.In.ReadContext(short(), b); n != 0 || err != cause {
			t.Errorf("ReadContext: %d, %v", n, err)
		}
		if n, err := in.In.WriteToContext(short(), io.Discard); n != 0 || err != cause {
			t.Errorf("WriteToContext: %d, %v", n, err)
		}
		if n, err := out.Out.WriteContext(short(), make([]byte, 20)); n != 16 || err != cause {
			t.Errorf("WriteContext: %d, %v, want 16 bytes, which two buffers have", n, err)
		}
		late := short()
		time.Sleep(2 * time.Second)
		if n, err := in.In.ReadContext(late, b); n != 8 || err != nil {
			t.Errorf("what is there: %d, %v", n, err)
		}
		if n, err := in.In.WriteToContext(late, io.Discard); n != 8 || err != cause {
			t.Errorf("what is there, then nothing: %d, %v", n, err)
		}
		if n, err := out.Out.WriteContext(late, b); n != 0 || err != cause {
			t.Errorf("written too late: %d, %v", n, err)
		}
	})
}

// TestNumbers: each side knows what the other one calls the link.
func TestNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, out, in := pair(t, newNet(t, 1), nil, nil)
		if out.Number() != a.Stats().Links[0].Number || in.Number() != b.Stats().Links[0].Number ||
			out.PeerNumber() != in.Number() || in.PeerNumber() != out.Number() {
			t.Errorf("%d with %d, %d with %d", out.Number(), out.PeerNumber(), in.Number(), in.PeerNumber())
		}
	})
}

// TestShutdownParts: Shutdown waits for the end of file that a finished link owes, for the
// peer to end the link too, and for one that does not a second longer: so nobody waits until
// a peer is given up that is gone.
func TestShutdownParts(t *testing.T) {
	for _, c := range []struct {
		name   string
		manual bool
		after  time.Duration // when the peer has read all
		ends   bool          // and ends its link
		most   time.Duration
	}{
		{"at once", false, 0, true, 100 * time.Millisecond},
		{"driven", true, 0, true, 100 * time.Millisecond},
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

// TestShutdownPartsNoLonger: it waits for no peer longer than its context.
func TestShutdownPartsNoLonger(t *testing.T) {
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
