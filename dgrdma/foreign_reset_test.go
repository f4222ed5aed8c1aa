package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestResetForgetsTransactionsOfACard checks that by the ids before a Reset no transaction after it seems overtaken, and so complete but for
// one message (quirk F16).
func TestResetForgetsTransactionsOfACard(t *testing.T) {
	withFakePeer(t, Config{}, FPGA(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
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

// TestAcksOfBeforeResetInABatch checks that what a batch acknowledged before Reset does not count for the ids that begin again, whether or
// not the batch goes on after it.
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
