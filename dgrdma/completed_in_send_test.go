package dgrdma

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
)

// stuck is a wire whose Send waits.
type stuck struct {
	handmade
	came chan []byte
	sent chan struct{}
}

func (s *stuck) Recv(dst []transport.Datagram, wait time.Duration) (int, error) {
	select {
	case b, ok := <-s.came:
		if !ok {
			return 0, net.ErrClosed
		}
		dst[0] = transport.Datagram{From: addrA, Data: b}
		return 1, nil
	case <-after(wait):
		return 0, nil
	}
}

func (s *stuck) Send(batch []transport.Outgoing) (int, error) {
	<-s.sent
	return len(batch), nil
}

func (s *stuck) Close() error { close(s.came); return nil }

// TestSentWhenLongCompleted checks that a frame to a peer that never acknowledges counts as delivered
// when the system took it. While the system takes its time, the peer may acknowledge it all the
// same, or the connection be reset, and its memory be given back or serve other frames (attack A16,
// SECURITY.md).
func TestSentWhenLongCompleted(t *testing.T) {
	for _, x := range []struct {
		name string
		act  func(s *stuck, c *Conn)
		want error
	}{
		{"acknowledged", func(s *stuck, c *Conn) {
			b := make([]byte, frame.HeaderSize)
			h := frame.Header{Dst: 2, Src: 1, Seq: 1, AckStart: frame.Seq(c.tx.unacked.Oldest()), AckCount: 1}
			h.Put(b)
			s.came <- b
		}, nil},
		{"reset", func(s *stuck, c *Conn) { c.Reset(0) }, ErrReset},
		{"reset to the same ids", func(s *stuck, c *Conn) { c.Reset(frame.Seq(c.tx.unacked.Oldest())) }, ErrReset},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stuck{came: make(chan []byte), sent: make(chan struct{})}
				e, err := New(s, &Config{ID: 2})
				if err != nil {
					t.Fatal(err)
				}
				prof := OpenCPI2()
				c, err := e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // no goroutine but the poster has anything to send
				done := make(chan error, 2)
				tx := write(64, pattern(1, 8), 0, 1)
				tx.Done = func(_ *Transaction, err error) { done <- err }
				go func() {
					if err := c.Post(tx); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
				x.act(s, c)
				time.Sleep(10 * restAfter)
				close(s.sent)
				synctest.Wait()
				if len(done) != 1 {
					t.Fatalf("Done was called %d times", len(done))
				}
				if err := <-done; x.want == nil && err != nil || x.want != nil && !errors.Is(err, x.want) {
					t.Errorf("done with %v, want %v", err, x.want)
				}
				next := write(64, pattern(2, 8), 0, 2)
				next.Done = tx.Done
				if err := c.Post(next); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if len(done) != 1 {
					t.Fatalf("Done of the next one was called %d times", len(done))
				}
				if err := <-done; err != nil {
					t.Errorf("the next one: %v", err)
				}
				e.Close()
			})
		})
	}
}
