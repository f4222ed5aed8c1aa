package dgrdma

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// lossController counts what it is told of.
type lossController struct {
	ack.FixedWindow
	sent, acked, lost int
}

func (c *lossController) OnSent(ack.Instant, uint32, int)                 { c.sent++ }
func (c *lossController) OnAcked(ack.Instant, uint32, int, time.Duration) { c.acked++ }
func (c *lossController) OnLost(ack.Instant, uint32, int, bool)           { c.lost++ }

// early has an endpoint answered by a peer, to which it sends frames of data after its CONFIRM, and returns these.
func early(t *testing.T, x *Transaction, test func(c *Conn, s *fakePeer, ctl *lossController, sent []frame.SessionFrame)) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		p := &pair{t: t, net: n}
		ctl := &lossController{}
		e := p.open(addrB, &Config{ID: 2, Memory: p.region(4096), NewController: func(int) ack.Controller { *ctl = lossController{}; return ctl }})
		defer e.Close()
		s := newStranger(t, n, addrA, 1, 2, addrB)
		c := p.connect(e, Peer{ID: 1, Addr: addrA})
		if err := c.Post(x); err != nil {
			t.Fatal(err)
		}
		s.welcome(life, s.asked(), serviceAt("memory", 0))
		_, frames := s.sessionFrames(time.Millisecond)
		if len(frames) == 0 {
			t.Fatal("no data behind the CONFIRM")
		}
		test(c, s, ctl, frames)
	})
}

// sessionFrames returns the handshakes and the frames of data that come until d from now.
func (s *fakePeer) sessionFrames(d time.Duration) (shakes []frame.Handshake, sent []frame.SessionFrame) {
	s.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.raws {
		if frame.IsSession(b) {
			f, err := frame.ParseSession(b)
			if err != nil {
				s.t.Error(err)
			}
			if f.Control == frame.NoControl || f.Control == frame.ControlBell {
				sent = append(sent, f)
			}
		} else if f, err := frame.Parse(b); err != nil {
			s.t.Error(err)
		} else if h, ok := handshakeIn(&f); ok {
			shakes = append(shakes, h)
		}
	}
	s.got, s.raws = nil, nil
	return shakes, sent
}

// resets answers a frame with RESET.
func (s *fakePeer) resets(f *frame.SessionFrame) {
	s.t.Helper()
	b := make([]byte, frame.SessionHeaderSize+1)
	frame.PutReset(b, f.SessionHeader)
	s.raw(b)
}

// TestUntakenLeavesAgain checks that frames which a RESET says to have come before the session leave again as soon as the peer has it, and
// no others; and that this counts as no loss.
func TestUntakenLeavesAgain(t *testing.T) {
	var failed error
	done := false
	x := write(64, pattern(1, 4000), 0, 1)
	x.Done = func(_ *Transaction, err error) { done, failed = true, err }
	early(t, x, func(c *Conn, s *fakePeer, ctl *lossController, sent []frame.SessionFrame) {
		if len(sent) != 3 {
			t.Fatalf("%d frames", len(sent))
		}
		s.resets(&sent[0])
		s.resets(&sent[2])
		shakes, again := s.sessionFrames(time.Millisecond)
		if len(shakes) > 0 || len(again) > 0 {
			t.Errorf("%+v and %d frames of data, just behind a CONFIRM", shakes, len(again))
		}
		s.acks(0) // it has the session
		_, again = s.sessionFrames(100 * time.Microsecond)
		if len(again) != 2 || again[0].ID != sent[0].ID || again[1].ID != sent[2].ID || again[0].Copy != 1 || again[1].Copy != 1 {
			t.Errorf("%+v left again, want frames %d and %d", again, sent[0].ID, sent[2].ID)
		}
		s.acks(3)
		s.recv(time.Millisecond)
		if st := c.Stats(); !done || failed != nil || ctl.sent != 3 || ctl.acked != 3 || ctl.lost != 0 || st.RetransmitsFast != 2 || st.RetransmitsTimed != 0 {
			t.Errorf("done %v, %v; the controller heard of %+v; %+v", done, failed, ctl, st.Counters)
		}
	})
}

// TestUntakenIsQuoted checks that a RESET which quotes no frame that was sent in the session, or is of another session, has none leave.
func TestUntakenIsQuoted(t *testing.T) {
	for name, change := range map[string]func(f *frame.SessionFrame){
		"never sent":              func(f *frame.SessionFrame) { f.ID++ },
		"before the first one":    func(f *frame.SessionFrame) { f.ID-- },
		"another session":         func(f *frame.SessionFrame) { f.Tag++ },
		"acknowledges too much":   func(f *frame.SessionFrame) { f.Ack++ },
		"acknowledges too little": func(f *frame.SessionFrame) { f.Ack -= ack.MostAhead + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			early(t, write(64, pattern(1, 8), 0, 1), func(c *Conn, s *fakePeer, ctl *lossController, sent []frame.SessionFrame) {
				change(&sent[0])
				s.resets(&sent[0])
				s.sessionFrames(100 * time.Microsecond)
				s.acks(0)
				if _, again := s.sessionFrames(100 * time.Microsecond); len(again) > 0 {
					t.Errorf("%+v left again", again)
				}
			})
		})
	}
}

// TestDataOvertakesConfirm checks that early data which overtook the CONFIRM is applied once, a round trip after the peer has the
// session, and not when a timer fires.
func TestDataOvertakesConfirm(t *testing.T) {
	const late = 200 * time.Microsecond
	inEachWay(t, Config{}, Config{}, func(t *testing.T, p *couple) {
		if !p.way.one {
			t.Skip("where both connect, either knows the session by the other's HELLO")
		}
		size := frame.ListedSize
		if p.way.sealed {
			size = seal.SealedSize(frame.ListedSize)
		}
		p.meet() // so that all of the session that Reset begins passes by the script
		n := 0
		var confirmed atomic.Int64
		p.link(simnet.Link{Latency: coupleLatency, Script: func(_ int, b []byte) simnet.Verdict {
			if len(b) != size {
				return simnet.Deliver()
			}
			if n++; n != 2 {
				return simnet.Deliver() // a HELLO
			}
			confirmed.Store(time.Now().UnixNano())
			return simnet.Delay(late)
		}}, simnet.Link{Latency: coupleLatency})
		if err := p.toB.Reset(0); err != nil {
			t.Fatal(err)
		}
		if err := p.toB.Write(t.Context(), write(64, pattern(2, 5000), 0, 2)); err != nil {
			t.Fatal(err)
		}
		took := time.Duration(time.Now().UnixNano() - confirmed.Load())
		if most := coupleLatency + late + 4*coupleLatency; confirmed.Load() == 0 || took > most {
			t.Errorf("done %v after the CONFIRM left, want %v at most", took, most)
		}
		if st := p.b.Stats(); st.Completions != 2 || p.memB.Load32(0) != 2 {
			t.Errorf("%d completions, word %d", st.Completions, p.memB.Load32(0))
		}
		if st := p.toB.Stats(); st.RetransmitsFast != 4 || st.RetransmitsTimed != 0 {
			t.Errorf("%d frames left again, %d by a timer, of 4", st.RetransmitsFast, st.RetransmitsTimed)
		}
	})
}

// TestUntakenCopyLeavesAgain checks that the same holds of a copy that the timer sent, as while CONFIRMs are lost.
func TestUntakenCopyLeavesAgain(t *testing.T) {
	early(t, write(64, pattern(1, 8), 0, 1), func(c *Conn, s *fakePeer, ctl *lossController, sent []frame.SessionFrame) {
		s.resets(&sent[0])
		_, copies := s.sessionFrames(30 * time.Millisecond)
		if len(copies) == 0 {
			t.Fatal("the timer sent none")
		}
		last := &copies[len(copies)-1]
		s.resets(last)
		before := ctl.sent
		s.acks(0)
		if _, again := s.sessionFrames(100 * time.Microsecond); len(again) != 1 || again[0].Copy != last.Copy+1 || ctl.sent != before {
			t.Errorf("%+v left again, behind copy %d; the controller heard of %d frames more", again, last.Copy, ctl.sent-before)
		}
	})
}

// TestOneBellIsUnderWay checks that a peer which answers RESET again and again to a frame that left early gets one bell, and not one for
// each: that would never end, and each is kept until it is acknowledged.
func TestOneBellIsUnderWay(t *testing.T) {
	early(t, write(64, pattern(1, 8), 0, 1), func(c *Conn, s *fakePeer, ctl *lossController, sent []frame.SessionFrame) {
		s.acks(0)
		s.sessionFrames(100 * time.Microsecond)
		bells := map[uint32]bool{}
		for range 100 {
			s.resets(&sent[0])
			_, frames := s.sessionFrames(10 * time.Millisecond)
			for i := range frames {
				if f := &frames[i]; f.Control == frame.ControlBell {
					bells[f.ID] = true
				}
			}
		}
		if len(bells) != 1 {
			t.Errorf("%d bells, want 1", len(bells))
		}
		c.mu.Lock()
		before := c.session.tx.m.Early
		c.mu.Unlock()
		s.acks(frame.Seq(sent[0].ID - s.theirs)) // from now on nothing waits that left early
		s.recv(time.Millisecond)
		c.mu.Lock()
		defer c.mu.Unlock()
		if !before || c.session.tx.m.Early {
			t.Errorf("frames that left early wait: %v, then %v; want true, then false", before, c.session.tx.m.Early)
		}
	})
}
