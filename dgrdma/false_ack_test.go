package dgrdma

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestFalseAcknowledgement checks that a peer which acknowledges what it cannot have ends the connection, whatever is pending, and that the error
// says so: RFC 9000 section 21.4.
func TestFalseAcknowledgement(t *testing.T) {
	withFakePeer(t, Config{Congestion: CongestionBBR}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		var failed error
		for i := range 300 {
			err := c.Post(&Transaction{Segments: []Segment{{0, pattern(i, 4000)}}, Done: func(_ *Transaction, err error) {
				if err != nil {
					failed = err
				}
			}})
			if errors.Is(err, ErrQueueFull) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		for turns := 0; c.Err() == nil && turns < 500; turns++ {
			s.recv(2 * time.Millisecond)
			s.raw(s.ackFrame(c.nextID.Load()-1, func(*frame.SessionHeader) []frame.Range { return nil }))
		}
		s.recv(time.Millisecond)
		var timeout net.Error
		if err := c.Err(); !errors.Is(err, ErrFalseAck) || !errors.Is(err, ErrPeerDown) || !errors.As(err, &timeout) || timeout.Timeout() || !errors.Is(failed, ErrFalseAck) {
			t.Errorf("the connection ended with %v, what was pending with %v, want ErrFalseAck, and no timeout", err, failed)
		}
		if n := c.Stats().RefusedBy(RefusedAckOfUnsent); n != 1 {
			t.Errorf("%d frames acknowledged what had not left, want 1", n)
		}
	})
}

// TestFalseNearness checks that a peer which pretends that a long path is near, by a delay of which it tells, is found when it acknowledges what it cannot
// have.
func TestFalseNearness(t *testing.T) {
	withFakePeer(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		s.net.Link(addrB, addrA, simnet.Link{Latency: 20 * time.Millisecond, Rate: 20e6, Queue: 70})
		s.net.Link(addrA, addrB, simnet.Link{Latency: 20 * time.Millisecond})
		ackUpTo := func(id uint32, delay int) {
			h := s.header(id)
			h.Ack = id
			b := make([]byte, 64)
			s.raw(b[:frame.PutSessionAckFrame(b, &h, false, 0, delay, nil)])
		}
		post := func() {
			for i := 0; c.Err() == nil; i++ {
				err := c.Post(&Transaction{Segments: []Segment{{0, pattern(i, 4000)}}})
				if errors.Is(err, ErrQueueFull) {
					return
				} else if err != nil && c.Err() == nil {
					t.Fatal(err)
				}
			}
		}
		post()
		s.recv(30 * time.Millisecond)
		ackUpTo(c.nextID.Load()-1, 60_000) // microseconds, and more than it took
		s.recv(25 * time.Millisecond)
		before := c.Stats().FramesSent
		for turns := 0; turns < 2000 && c.Err() == nil; turns++ {
			post()
			ackUpTo(c.nextID.Load()-1, frame.LongestDelay)
			s.recv(time.Millisecond)
		}
		if sent := c.Stats().FramesSent - before; !errors.Is(c.Err(), ErrFalseAck) || sent > 2000 {
			t.Errorf("%d frames left, and the connection ended with %v", sent, c.Err())
		}
	})
}

// TestWithheldBells checks that on a far path a bell leaves now and then under an id that was withheld, that all arrives, and that nothing is sent again for
// it.
func TestWithheldBells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bells atomic.Int64
		p := newPair(t, pairConfig{a: Config{Congestion: CongestionBBR, Trace: &Trace{FrameSent: func(_ PeerName, b []byte, _ bool) {
			if f, err := frame.ParseSession(b); err == nil && f.Control == frame.ControlBell {
				bells.Add(1)
			}
		}}}, b: Config{}, link: simnet.Link{Latency: 20 * time.Millisecond}, size: 8 << 20})
		defer p.close()
		want := pattern(3, 8<<20-8)
		if err := p.toB.Write(context.Background(), write(8, want, 0, 1)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p.memB.Bytes()[8:], want) {
			t.Error("what arrived differs")
		}
		if st := p.toB.Stats(); bells.Load() < 1 || bells.Load() > 20 || st.RetransmitsFast+st.RetransmitsTimed > 0 {
			t.Errorf("%d bells, %d frames sent again", bells.Load(), st.RetransmitsFast+st.RetransmitsTimed)
		}
	})
}
