package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestCloseWhereNothingIsTaken checks that Close of a link and of a producer ends though the peer is
// there, acknowledges, and gives no buffer back; that a link is over then; and that a peer that
// takes a message from time to time is waited for (F13).
func TestCloseWhereNothingIsTaken(t *testing.T) {
	for _, slow := range []time.Duration{0, closeWait / 2} {
		for name, end := range map[string]func(l *Link) error{
			"link":     func(l *Link) error { return l.Close() },
			"producer": func(l *Link) error { return l.Out.Close() },
		} {
			t.Run(fmt.Sprintf("%s/%v", name, slow), func(t *testing.T) {
				withFakePeer(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *fakePeer) {
					yes := s.dial(1, "port", toDialer, half{}, buffers(2, 64))
					l := <-made
					for range 2 {
						if err := l.Out.Send(soon(t), 0, []byte("all that fits")); err != nil {
							t.Fatal(err)
						}
					}
					// Another goroutine waits for a buffer first.
					sent := make(chan error, 1)
					go func() { sent <- l.Out.Send(t.Context(), 0, nil) }()
					s.wait(time.Millisecond)
					if slow > 0 {
						go func() {
							for k := range uint32(2) {
								time.Sleep(slow)
								s.frame(s.word(yes.back.Credit, k+1))
							}
						}()
					}
					began := time.Now()
					ended := make(chan error, 1)
					go func() { ended <- end(l) }()
					var err error
					for waiting := true; waiting; {
						select {
						case err = <-ended:
							waiting = false
						case <-time.After(time.Second): // so that the host knows that its peer is there
							s.confirm()
							if time.Since(began) > time.Hour {
								t.Fatal("it waits for ever")
							}
						}
					}
					var e *Error
					switch {
					case slow > 0 && err == nil:
					case slow == 0 && errors.Is(err, ErrNoAnswer) && errors.As(err, &e) && e.Timeout():
					default:
						t.Errorf("after %v: %v", time.Since(began), err)
					}
					l.Abort(soon(t), "")
					<-sent
					s.wait(time.Second)
					if st := h.Stats(); st.Free != st.Memory || st.Sending != 0 {
						t.Errorf("%d bytes of %d are free, %d kept for what was sent", st.Free, st.Memory, st.Sending)
					}
				})
			})
		}
	}
}

// TestFinish checks that what was sent arrives, and end of file after it, though no goroutine waits
// for it, frames are lost, and the network takes its time. Then nothing of the link is left.
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

// TestFinishWaitsForNoReader checks that with a buffer kept for it end of file arrives, and the peer's
// writer is told, though no goroutine reads and all buffers are full, in both directions.
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
				t.Fatal("a goroutine sends still")
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

// TestFinishWithoutAPeer checks that an end of file that waits for a buffer is dropped when the peer
// is gone, or has ended the link. A Flush that waits for it is told.
func TestFinishWithoutAPeer(t *testing.T) {
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
				if len(flushed) > 0 || out.hasNotified() {
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

// TestProducerFinish checks that the other direction goes on, and that Flush waits for a pending end
// of file.
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
			t.Errorf("a goroutine that waits for a buffer: %v", err)
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
