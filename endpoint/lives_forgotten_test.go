package endpoint

import (
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
// for the ids that begin anew, though the rest of the batch is of the new life.
func TestAcksOfBeforeResetInABatch(t *testing.T) {
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
	send(2, 0)
	for n := 0; n == 0; { // what was posted before is sent first
		if n, err = e.Progress(time.Second); n == 1 || err != nil {
			t.Fatalf("%d datagrams at once, %v", n, err)
		}
	}
	if st := c.Stats(); len(answers) != 1 || st.Completions != 2 || st.AcksReceived != 0 || st.RefusedBy(RefusedAckOfUnsent) != 0 {
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

// TestLifeThatWroteStands: a life whose data was taken is not given up for one that
// believes ours, which may have been said when nothing was kept of us.
func TestLifeThatWroteStands(t *testing.T) {
	for _, wrote := range []bool{false, true} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			c.Reset(0)
			mine := uint32(0)
			for _, f := range s.recv(time.Millisecond) {
				if h, ok := helloOf(&f); ok {
					mine = h.Life
				}
			}
			s.hello(frame.Hello{Life: 70, Peer: mine})
			s.recv(time.Millisecond)
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
