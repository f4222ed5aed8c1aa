package endpoint

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestResetForgetsTransactionsOfACard: by the ids of a life that is over no transaction
// of the next one seems overtaken, and so complete but for one message (quirk F16).
func TestResetForgetsTransactionsOfACard(t *testing.T) {
	withStranger(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		part := pattern(1, 16)
		s.send(3, data(5, 1, 1, 64, part))
		s.recv(10 * time.Millisecond)
		if err := c.Reset(0); err != nil {
			t.Fatal(err)
		}
		s.send(3, data(1, 3, 1, 64, part))
		s.send(4, data(1, 3, 2, 80, part))
		s.recv(10 * time.Millisecond)
		if st := c.Stats(); st.Completions != 1 || st.Open != 1 {
			t.Fatalf("%d completions, %d open before the last message came, want 1 and 1", st.Completions, st.Open)
		}
		s.send(5, data(1, 3, 3, 96, part))
		s.recv(10 * time.Millisecond)
		if st := c.Stats(); st.Completions != 2 || st.Open != 0 {
			t.Errorf("%d completions, %d open, want 2 and 0", st.Completions, st.Open)
		}
	})
}

// TestAcksOfBeforeResetInABatch: what a batch acknowledged before Reset does not count
// for the ids that begin anew, be the rest of the batch of the new life or none.
func TestAcksOfBeforeResetInABatch(t *testing.T) {
	for frames := 1; frames <= 2; frames++ {
		acksBeforeReset(t, frames)
	}
}

func acksBeforeReset(t *testing.T, frames int) {
	mem, err := NewRegion(4096)
	if err != nil {
		t.Fatal(err)
	}
	hook := &resetting{Region: mem}
	w := newForgery()
	e, err := New(w, &Config{ID: 2, Memory: hook, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	prof := OpenCPI(false)
	c, err := e.Connect(Peer{ID: 1, Addr: addrA, Size: 4096, Profile: &prof})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reset(1); err != nil {
		t.Fatal(err)
	}
	var answers []error
	post := func() {
		tx := write(0, pattern(1, 8), 0, 1)
		tx.Done = func(_ *Transaction, err error) { answers = append(answers, err) }
		if err := c.Post(tx); err != nil {
			t.Error(err)
		}
	}
	post()
	hook.complete = func() {
		hook.complete = nil
		c.Reset(1)
		post()
	}
	send := func(seq frame.Seq, acks uint8) {
		b := encode(1, seq, bare(uint32(seq), 1, 1))
		frame.PutAck(b, 1, acks)
		w.give(addrA, b)
	}
	send(1, 1)
	if frames > 1 {
		send(2, 0)
	}
	for n := 0; n == 0; { // what was posted before is sent first
		if n, err = e.Progress(time.Second); n > 0 && n != frames || err != nil {
			t.Fatalf("%d datagrams at once, %v", n, err)
		}
	}
	if st := c.Stats(); len(answers) != 1 || st.Completions != uint64(frames) || st.AcksReceived != 0 || st.RefusedBy(RefusedAckOfUnsent) != 0 {
		t.Errorf("answers %v, %d completions, %d acknowledged, refused %v", answers, st.Completions, st.AcksReceived, st.RefusedReasons())
	}
}

// TestAcksOfANewLifeAreNotLate: which frames of a peer the network held back is told by
// the ids of its present life alone.
func TestAcksOfANewLifeAreNotLate(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	for txn, seq := range []frame.Seq{4000, 4001} {
		f.give(encode(1, seq, bare(life+uint32(txn), 1, 1)))
	}
	f.introduce(1, 2*life)               // whose ids begin at 1
	c.nextID.Add(1<<15 - ack.MaxHistory) // as if we had sent that many frames since
	b := encode(1, 2, bare(2*life, 1, 1))
	frame.PutAck(b, ack.Wide(c.nextID.Load()).Seq()-1, 1)
	f.give(b)
	if st := c.Stats(); st.Completions != 3 || st.RefusedBy(RefusedAckTooOld) != 0 {
		t.Errorf("%d completions, want 3; refused %v", st.Completions, st.RefusedReasons())
	}
}

// TestDoubtsEndWithTheLife: a frame that was refused in one life is no witness for the
// like in the next (attack A12, SECURITY.md).
func TestDoubtsEndWithTheLife(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	doubtful := encode(1, 3, bare(life+20, 1, 1))
	for n, begins := range []uint32{life, life + 10} {
		if n > 0 {
			f.introduce(1, begins)
		}
		for i := range uint32(4) {
			f.give(encode(1, frame.Seq(2+i), bare(begins+i, 1, 1)))
		}
		f.give(doubtful)
		time.Sleep(time.Duration(2 * doubtLeast))
	}
	if st := c.Stats(); st.Completions != 8 || st.RefusedBy(RefusedForeign) != 2 {
		t.Errorf("%d completions, refused %v; want 8, and the doubtful frame twice", st.Completions, st.RefusedReasons())
	}
	f.give(doubtful)
	if n := c.Stats().Completions; n != 9 {
		t.Errorf("%d completions when it came again, want 9", n)
	}
}

// TestWhoSendsWhatCannotBeIsTold: a frame that does not belong to the life we know has us
// say again who we are: its sender may not have heard.
func TestWhoSendsWhatCannotBeIsTold(t *testing.T) {
	for name, b := range map[string][]byte{
		"another frame under a known id": encode(1, 3, bare(life+20, 1, 1)),
		"a transaction that is over":     encode(1, 9, bare(life, 1, 1)),
		"a transaction of nobody":        encode(1, 9, bare(life+1<<24, 1, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, Config{})
			f.native()
			for i := range uint32(4) {
				f.give(encode(1, frame.Seq(2+i), bare(life+i, 1, 1)))
			}
			told := false
			for _, got := range f.answers(b) {
				h, ok := helloOf(&got)
				told = told || ok && h.Tells && h.Peer == life
			}
			if !told {
				t.Error("it was not told who we are")
			}
		})
	}
}

// resetInto70 resets a connection and begins life 70 of its peer. It returns our life, as
// the peer was told it.
func resetInto70(c *Conn, s *stranger) (mine uint32) {
	c.Reset(0)
	mine = s.toldLife()
	s.hello(frame.Hello{Life: 70, Peer: mine})
	s.recv(time.Millisecond)
	return mine
}

// TestLifeThatAcknowledgesIsPaired: a frame that speaks to our life shows that the peer
// believes it, and nobody asks any more.
func TestLifeThatAcknowledgesIsPaired(t *testing.T) {
	for _, speaks := range []bool{false, true} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			mine := resetInto70(c, s)
			if speaks {
				s.alone(stamp(mine, 2, 0), 0)
			}
			s.recv(time.Second)
			if n := len(s.recv(time.Minute)); (n == 0) != speaks {
				t.Errorf("it speaks to our life: %v; %d frames in a minute", speaks, n)
			}
		})
	}
}

// TestLifeThatLeftIsNotInsistedOn: a peer that came by itself, never showed that it believes our
// life, and went, is heard when it comes again in another life, however often: the one that is over
// is not asked for any more, and nothing waits for it.
func TestLifeThatLeftIsNotInsistedOn(t *testing.T) {
	for _, silent := range []time.Duration{time.Second, time.Minute} {
		withStranger(t, Config{GiveUp: 300 * time.Millisecond}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			resetInto70(c, s)
			c.learned.Store(true)
			s.recv(silent)
			s.hello(frame.Hello{Life: 80})
			if got := s.hellos(time.Second); !slices.ContainsFunc(got, func(h frame.Hello) bool { return h.Peer == 80 }) {
				t.Errorf("silent for %v: asked by %+v", silent, got)
			}
		})
	}
}

// TestLifeThatWroteStands: a life whose data was taken is not given up for one that
// believes ours, which may have been said when nothing was kept of us.
func TestLifeThatWroteStands(t *testing.T) {
	for _, wrote := range []bool{false, true} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			mine := resetInto70(c, s)
			want := uint32(80)
			if wrote {
				s.send(2, data(70, 1, 1, 64, pattern(1, 8)))
				want = 70
			}
			s.recv(time.Millisecond)
			s.hello(frame.Hello{Life: 80, Peer: mine, Tells: true})
			s.recv(time.Millisecond)
			if st := c.Stats(); st.Theirs != want {
				t.Errorf("wrote %v: life %d is believed, want %d", wrote, st.Theirs, want)
			}
		})
	}
}

// TestDataOfNobodyKnown: who sends data and has not introduced itself is asked at once,
// however rarely a peer that is not there is asked.
func TestDataOfNobodyKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		if _, err := e.Connect(Peer{ID: 1, Addr: addrA}); err != nil {
			t.Fatal(err)
		}
		w.frames(time.Minute)
		if sent := w.frames(100 * time.Millisecond); len(sent) != 0 {
			t.Fatalf("%d frames to a peer that is not there", len(sent))
		}
		w.message(addrA, 1, 7, frame.Message{Txn: 5, CompletionValue: 1, Index: frame.NotHello})
		sent := w.frames(100 * time.Millisecond)
		if len(sent) == 0 {
			t.Fatal("nobody asked who that was")
		}
		if h, ok := helloOf(&sent[0].f); !ok || h.Tells {
			t.Errorf("asked with %+v", sent[0].f.Header)
		}
	})
}
