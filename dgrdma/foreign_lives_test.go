package dgrdma

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// withEvents is withStranger for a test of which events there were since it last asked,
// but for frames that were refused.
func withEvents(t *testing.T, prof Profile, test func(t *testing.T, c *Conn, s *fakePeer, want func(...EventKind))) {
	var kinds []EventKind
	cfg := Config{OnEvent: func(e Event) {
		if e.Kind != FrameRefused {
			kinds = append(kinds, e.Kind)
		}
	}}
	withFakePeer(t, cfg, prof, func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		test(t, c, s, func(want ...EventKind) {
			t.Helper()
			if !slices.Equal(kinds, want) {
				t.Errorf("events %v, want %v", kinds, want)
			}
			kinds = nil
		})
	})
}

// TestDriverIsUpOnce: a driver is there with its first frame, whatever that is, and again
// after Reset; it seems to have restarted once, too.
func TestDriverIsUpOnce(t *testing.T) {
	for _, alone := range []bool{false, true} {
		withEvents(t, OpenCPI(false), func(t *testing.T, c *Conn, s *fakePeer, want func(...EventKind)) {
			for range 2 {
				for id := frame.Seq(1); id <= 4; id++ {
					if alone && id < 3 {
						s.send(id)
					} else {
						s.send(id, data(uint32(10+id), 1, 1, 64, pattern(1, 16)))
					}
					s.recv(10 * time.Millisecond)
					if id == 1 {
						want(PeerUp)
					}
				}
				want()
				for id := frame.Seq(3); id <= 4; id++ { // as it would in another life
					s.send(id, data(uint32(id), 1, 1, 64, pattern(1, 16)))
					s.recv(10 * time.Millisecond)
				}
				want(PeerRestarted)
				if err := c.Reset(0); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestIdsOfANewLife: a driver that comes with one of the first ids again, long after them,
// seems to have restarted; with another one it does not, nor with 0, which no life
// begins with.
func TestIdsOfANewLife(t *testing.T) {
	for id, restarted := range map[frame.Seq]bool{0: false, 1: true, firstIDs: true, firstIDs + 1: false} {
		withEvents(t, OpenCPI(false), func(t *testing.T, c *Conn, s *fakePeer, want func(...EventKind)) {
			for at := frame.Seq(1); at < 1000; at += 100 {
				s.send(at, data(uint32(at), 1, 1, 64, pattern(1, 16)))
			}
			s.recv(2 * heldBack)
			want(PeerUp)
			s.send(id, data(1, 1, 1, 64, pattern(1, 16)))
			s.recv(10 * time.Millisecond)
			if st := c.Stats(); st.RefusedBy(RefusedForeign) != 1 {
				t.Errorf("id %d: refused %v", id, st.RefusedReasons())
			}
			if restarted {
				want(PeerRestarted)
			} else {
				want()
			}
		})
	}
}

// TestDriverAfterReset: what was heard before Reset says nothing of what is heard since.
func TestDriverAfterReset(t *testing.T) {
	t.Run("ids begin anywhere", func(t *testing.T) {
		withEvents(t, OpenCPI(false), func(t *testing.T, c *Conn, s *fakePeer, _ func(...EventKind)) {
			s.send(1, data(1, 1, 1, 64, pattern(1, 16)))
			s.recv(10 * time.Millisecond)
			c.Reset(0)
			s.send(60000, data(1, 1, 1, 64, pattern(1, 16)))
			if !acked(s.recv(100*time.Millisecond), 60000) {
				t.Error("the first frame after Reset is not acknowledged")
			}
		})
	})
	t.Run("wants no acknowledgements", func(t *testing.T) {
		withEvents(t, OpenCPI2(), func(t *testing.T, c *Conn, s *fakePeer, _ func(...EventKind)) {
			first := data(1, 1, 1, 64, pattern(1, 16))
			s.send(1, first)
			s.send(1, first) // a copy that the network made
			if len(s.recv(2*copyDelay)) != 0 {
				t.Error("a copy is acknowledged")
			}
			s.send(1, first)
			if !acked(s.recv(200*time.Millisecond), 1) {
				t.Fatal("what came again is not acknowledged")
			}
			c.Reset(0)
			s.send(1, first)
			if len(s.recv(200*time.Millisecond)) != 0 {
				t.Error("acknowledged though nothing came again")
			}
		})
	})
}

// TestDriverThatOnlyAcknowledges: frames without messages show where a driver's ids are,
// and that it is there, as those with messages do: what the network held back is then no
// other life.
func TestDriverThatOnlyAcknowledges(t *testing.T) {
	const far = 600
	for name, last := range map[string][]msg{"acknowledges": nil, "writes": {data(3, 1, 1, 64, pattern(1, 16))}} {
		t.Run(name, func(t *testing.T) {
			withEvents(t, OpenCPI(false), func(t *testing.T, c *Conn, s *fakePeer, want func(...EventKind)) {
				first := s.encode(1, data(1, 1, 1, 64, pattern(1, 16)))
				s.raw(first)
				s.recv(time.Second)
				want(PeerUp)
				for id := frame.Seq(2); id < far; id++ {
					s.send(id)
				}
				s.recv(10 * time.Millisecond)
				s.send(far, data(2, 1, 1, 64, pattern(1, 16)))
				if !acked(s.recv(2*heldBack), far) {
					t.Error("a frame behind many without messages is not acknowledged")
				}
				s.send(far+1, last...)
				s.recv(10 * time.Millisecond)
				s.raw(first)
				s.recv(10 * time.Millisecond)
				want()
				s.recv(2 * heldBack)
				s.raw(first) // and now nobody speaks but who sends this
				s.recv(10 * time.Millisecond)
				want(PeerRestarted)
			})
		})
	}
}

// TestCardThatSpeaksOfOthersFirst: a card whose first acknowledgement is of another id is
// given up a moment later, but if ours follows (quirk F19, observation V2, docs/peers.md).
func TestCardThatSpeaksOfOthersFirst(t *testing.T) {
	for _, follows := range []bool{false, true} {
		withFakePeer(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
			ack := func(seq, start frame.Seq) {
				b := s.encode(seq)
				frame.PutAck(b, start, 1)
				s.raw(b)
				s.recv(time.Millisecond)
			}
			for range 2 {
				if err := c.Post(write(64, pattern(1, 16), 0, 1)); err != nil {
					t.Fatal(err)
				}
			}
			s.recv(time.Millisecond)
			ack(1, 50)
			if follows {
				ack(2, 1)
			}
			s.recv(doubtFor + 5*time.Millisecond)
			if err := c.Err(); errors.Is(err, ErrStaleCard) == follows {
				t.Errorf("our id follows: %v; %v", follows, err)
			}
		})
	}
}

// TestCardThatSpeaksOnOfOthers: a card is not waited for any longer because it speaks of other
// ids again and again; and what it says before we sent anything, or without acknowledging,
// raises no doubt.
func TestCardThatSpeaksOnOfOthers(t *testing.T) {
	for _, x := range []struct {
		name  string
		early bool // before anything is sent
		again int  // how often it speaks of others once we sent
		far   bool // and its frames are refused
		stale bool
	}{
		{"again and again", false, 5, false, true},
		{"before we sent", true, 0, false, false},
		{"what is refused", false, 5, true, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			withFakePeer(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				speak := func(seq frame.Seq) {
					var b []byte
					if x.far {
						b = s.encode(10_000*(seq%3+1), data(2, 1, 1, 64, pattern(1, 16)))
					} else {
						b = s.encode(seq)
						frame.PutAck(b, 50, 1)
					}
					s.raw(b)
				}
				s.send(1, data(1, 1, 1, 64, pattern(1, 16)))
				if x.early {
					speak(2)
				}
				s.recv(time.Second)
				if err := c.Post(write(64, pattern(1, 16), 0, 1)); err != nil {
					t.Fatal(err)
				}
				for i := range x.again {
					s.recv(doubtFor / 4)
					speak(frame.Seq(3 + i))
				}
				s.recv(doubtFor / 4)
				if err := c.Err(); errors.Is(err, ErrStaleCard) != x.stale || !x.stale && err != nil {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// TestRefusedFrameAcknowledges: what a frame acknowledges counts though what it writes is
// refused, for its peer has said so, and may not again.
func TestRefusedFrameAcknowledges(t *testing.T) {
	withFakePeer(t, Config{FirstFrame: 1}, OpenCPI(false), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
		done := false
		tx := write(64, pattern(1, 16), 0, 1)
		tx.Done = func(_ *Transaction, err error) { done = err == nil }
		if err := c.Post(tx); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		b := s.encode(1, data(1, 1, 1, 4096, pattern(1, 16)))
		frame.PutAck(b, 1, 1)
		s.raw(b)
		s.recv(time.Millisecond)
		if st := c.Stats(); !done || st.RefusedBy(RefusedBounds) != 1 {
			t.Errorf("done %v, refused %v", done, st.RefusedReasons())
		}
	})
}
