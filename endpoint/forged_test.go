package endpoint

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestForgedFrameOfAPeer: whoever sees the traffic of two endpoints of ours, and
// forges one frame that fits as well as it can, ends nothing: what the peer sent
// before and comes again is acknowledged again, and what it sends next is applied
// (attack A12, SECURITY.md).
func TestForgedFrameOfAPeer(t *testing.T) {
	const known = 20 // ids of the peer so far
	for name, forge := range map[string]func(s *stranger){
		"helloFarAhead": func(s *stranger) {
			b := s.encode(0, msg{Message: frame.Hello{Life: life, Peer: s.theirs}.Message()})
			h := frame.Header{Dst: s.dst, Src: s.id, Flags: frame.FlagMessages}
			h.SetHelloID(known + 20000)
			h.Put(b)
			s.raw(b)
		},
		"helloFarAheadBeyondAWrap": func(s *stranger) {
			b := s.encode(0, msg{Message: frame.Hello{Life: life, Peer: s.theirs}.Message()})
			h := frame.Header{Dst: s.dst, Src: s.id, Flags: frame.FlagMessages}
			h.SetHelloID(known + 1<<20)
			h.Put(b)
			s.raw(b)
		},
		"stampFarAhead": func(s *stranger) { s.alone(stamp(s.theirs, known+20000, 0), 0) },
		"dataFarAhead": func(s *stranger) {
			s.send(known+20000, data(life+known+5, 1, 1, 512, []byte("forged!!")))
		},
		"dataUnderAKnownId": func(s *stranger) {
			s.send(known, data(life+known+5, 1, 1, 512, []byte("forged!!")))
		},
		"dataUnderAnOldId": func(s *stranger) {
			s.send(1<<16-17000+known, data(life+known+5, 1, 1, 512, []byte("forged!!")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
				honest := func(id frame.Seq) { s.send(id, data(life+uint32(id)-2, 1, 1, 64, []byte("12345678"))) }
				for id := frame.Seq(2); id <= known; id++ {
					honest(id)
				}
				s.recv(50 * time.Millisecond)
				forge(s)
				s.recv(50 * time.Millisecond)
				if got := e.memory.(*Region).Bytes()[512]; got != 0 {
					t.Errorf("what was forged is in the memory: %q", got)
				}
				honest(known - 3)
				if !acked(s.recv(50*time.Millisecond), known-3) {
					t.Error("what came again is not acknowledged")
				}
				before := c.Stats().Completions
				for id := frame.Seq(known + 1); id <= known+10; id++ {
					honest(id)
				}
				if sent := s.recv(50 * time.Millisecond); c.Stats().Completions != before+10 || !acked(sent, known+10) {
					t.Errorf("%d of 10 transactions applied", c.Stats().Completions-before)
				}
			})
		})
	}
}

// TestIdsThatWentByUnseen: when a peer is really where nobody expected it, it is heard
// all the same, by what it sends again.
func TestIdsThatWentByUnseen(t *testing.T) {
	for _, gone := range []int{100, 5000, 16383, 20000, 40000, 1<<16 - 5, 1 << 16} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			s.send(2, data(life, 1, 1, 64, []byte("12345678")))
			s.recv(50 * time.Millisecond)
			id := frame.Seq(2).Add(gone)
			for try := range 3 {
				s.send(id, data(life+1, 1, 1, 64, []byte("12345678")))
				if acked(s.recv(50*time.Millisecond), id) {
					break
				}
				if try == 2 {
					t.Errorf("after %d ids unseen a frame is not acknowledged", gone)
				}
			}
			if n := c.Stats().Completions; n != 2 {
				t.Errorf("%d completions, want 2", n)
			}
		})
	}
}

// TestBlindForgery: who knows ids and addresses of a connection, and sees nothing of
// it, finds a frame that is applied once in two million, and not in a hundred thousand:
// both ids have to be near (attack A25, SECURITY.md).
func TestBlindForgery(t *testing.T) {
	const tries = 500_000
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		const next = 20000 // all that the history knows was received
		for id := frame.Seq(2); id < next; id++ {
			s.send(id, data(life+uint32(id)-2, 1, 1, 64, []byte("12345678")))
		}
		s.recv(50 * time.Millisecond)
		// By chance, but for the transaction: those are tried out one window after the
		// other, which is the best that can be done. What follows one that was applied is
		// near it, and may be applied as well: that counts as one find.
		rnd := rand.New(rand.NewPCG(1, 2))
		applied, finds, last := c.Stats().Completions, 0, -2
		look := func(round int) {
			s.recv(time.Microsecond)
			n := c.Stats().Completions
			if n > applied {
				if last < round-1 {
					finds++
				}
				last = round
			}
			applied = n
		}
		for i := range uint32(tries) {
			s.send(frame.Seq(rnd.Uint32()), data(i*(closedTransactions/2), 1, 1, 512, []byte("forged!!")))
			if i%64 == 0 {
				look(int(i / 64))
			}
		}
		s.recv(50 * time.Millisecond)
		look(tries / 64)
		if finds > 2 {
			t.Errorf("of %d forged frames some were applied, at %d times", tries, finds)
		}
	})
}
