package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// withAcks returns b with an acknowledgement of ids of ours in it.
func withAcks(b []byte, start ack.Wide, count uint8) []byte {
	frame.PutAck(b, start.Seq(), count)
	return b
}

// aloneFrom is a frame without messages from peer 1, stamped.
func aloneFrom(st frame.Stamp, count uint8) []byte {
	b := make([]byte, frame.HeaderSize+frame.StampSize)
	h := frame.Header{Dst: 2, Src: 1, Seq: frame.Seq(st.ID), AckStart: frame.Seq(st.Start), AckCount: count}
	h.Put(b)
	st.Put(b[frame.HeaderSize:])
	return b
}

// TestCopiesOfOpenTransactions: from so far back that only its id is known, a frame of a
// transaction that is still open is a copy if all of its messages came, and another frame
// under that id is new if one did not.
func TestCopiesOfOpenTransactions(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	first := encode(1, 2, bare(life, 4, 1), bare(life, 4, 2))
	f.give(first)
	for i := range uint32(2000) {
		f.give(encode(1, frame.Seq(3+i), bare(life+1+i, 1, 1)))
	}
	got := f.answers(first)
	if st := c.Stats(); !acked(got, 2) || st.Duplicates != 1 || len(st.RefusedReasons()) != 0 {
		t.Errorf("a copy: acknowledged %v, refused %v", acked(got, 2), st.RefusedReasons())
	}
	for _, x := range []struct {
		name    string
		b       []byte
		applied bool
	}{
		{"half of it came", encode(1, 2, bare(life, 4, 2), bare(life, 4, 3)), false},
		{"none of it came", encode(1, 2, bare(life, 4, 3), bare(life, 4, 4)), true},
	} {
		before := c.Stats()
		got := f.answers(x.b)
		time.Sleep(time.Duration(2 * doubtLeast))
		got = append(got, f.answers(x.b)...) // its sender sends it again
		st := c.Stats()
		if acked(got, 2) != x.applied || (st.Completions > before.Completions) != x.applied || st.Duplicates != before.Duplicates {
			t.Errorf("%s: acknowledged %v, %d completions", x.name, acked(got, 2), st.Completions-before.Completions)
		}
	}
}

// TestNoCopies: a frame behind the history, or another one than came under its id, is not
// acknowledged though all that it writes was applied: it says nothing of what became of the
// one that its sender waits for.
func TestNoCopies(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	ids := []frame.Seq{2, 4000, 8000, 12000, 16000, 20000}
	for i, id := range ids {
		f.give(encode(1, id, bare(life+uint32(i), 1, 1)))
	}
	for _, id := range []frame.Seq{ids[0], ids[5]} {
		if got := f.answers(encode(1, id, bare(life, 1, 1))); acked(got, id) {
			t.Errorf("id %d is acknowledged", id)
		}
	}
	if st := c.Stats(); st.Duplicates != 0 || st.RefusedBy(RefusedForeign) != 2 || st.Completions != 6 {
		t.Errorf("%d copies, %d completions, refused %v", st.Duplicates, st.Completions, st.RefusedReasons())
	}
}

// TestFramesOfNobody: what speaks for a peer that has not introduced itself, or was
// given up, counts for nothing, though it names no life and no id that we used.
func TestFramesOfNobody(t *testing.T) {
	f := newFeed(t, Config{})
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA})
	if err != nil {
		t.Fatal(err)
	}
	f.give(aloneFrom(frame.Stamp{}, 0))
	f.give(encode(1, 2, bare(life, 1, 1)))
	if st := c.Stats(); st.RefusedBy(RefusedNoSession) != 2 || len(st.RefusedReasons()) != 1 || st.Completions+st.Duplicates != 0 {
		t.Errorf("before the introduction: %d completions, refused %v", st.Completions, st.RefusedReasons())
	}
	givenUp(t, func(t *testing.T, c *Conn, s *stranger, events func() []EventKind) {
		for count := range uint8(2) {
			s.alone(stamp(s.theirs, 2, ack.Wide(c.nextID.Load())-1), count)
			s.recv(time.Millisecond)
		}
		s.send(2, data(life, 1, 1, 64, pattern(1, 8)))
		s.recv(time.Millisecond)
		if st := c.Stats(); st.RefusedBy(RefusedDown) != 3 || len(st.RefusedReasons()) != 1 || st.AcksReceived+st.Completions+st.Duplicates != 0 {
			t.Errorf("when it was given up: %d completions, refused %v", st.Completions, st.RefusedReasons())
		}
	})
}

// TestHowFarBackIsAcknowledged: a run around the oldest id of a full window is believed, and
// what begins before it is not, be it whole wraps before.
func TestHowFarBackIsAcknowledged(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	c.nextID.Add(1 << 20) // as if we had sent that many frames
	next := ack.Wide(c.nextID.Load())
	for i, x := range []struct {
		back int
		want Reason
	}{
		{1, RefusedNone},
		{ack.MaxWindow, RefusedNone},
		{ack.MaxWindow + ack.MaxRun - 1, RefusedNone},
		{ack.MaxWindow + ack.MaxRun + 10, RefusedAckTooOld},
		{1<<15 - 10, RefusedAckTooOld},
		{1 << 16, RefusedAckTooOld},
		{1 << 19, RefusedAckTooOld},
	} {
		var fr frame.Frame
		if err := fr.Decode(aloneFrom(stamp(c.Stats().Mine, ack.Wide(2+i), next-ack.Wide(x.back)), 1)); err != nil {
			t.Fatal(err)
		}
		if got, _ := c.rx.receive(0, &fr); got != x.want {
			t.Errorf("%d ids back: %v, want %v", x.back, got, x.want)
		}
	}
}

// TestAcksThatRideOnData count if the peer is known to believe our life.
func TestAcksThatRideOnData(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		mine := resetInto70(c, s)
		done := false
		if err := c.Post(&Transaction{Completion: Word(4, 1), Done: func(*Transaction, error) { done = true }}); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		id := ack.Wide(c.nextID.Load()) - 1
		for i, paired := range []bool{false, true} {
			if paired {
				s.hello(frame.Hello{Life: 70, Peer: mine, Tells: true})
			}
			s.raw(withAcks(s.encode(frame.Seq(3+i), data(70+uint32(i), 1, 1, 64, pattern(1, 8))), id, 1))
			s.recv(time.Millisecond)
			if done != paired {
				t.Errorf("it believes our life: %v; done %v", paired, done)
			}
		}
	})
}

// TestAcksOfWhatWasHeldBack: what a frame acknowledges that the network held back for long is
// refused, and where it acknowledges nothing, there is nothing to refuse.
func TestAcksOfWhatWasHeldBack(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	come := func(id frame.Seq, acks uint8) uint64 {
		var fr frame.Frame
		if err := fr.Decode(withAcks(encode(1, id, bare(life+uint32(id), 1, 1)), ack.Wide(c.nextID.Load())-1, acks)); err != nil {
			t.Fatal(err)
		}
		if why, _ := c.rx.receive(0, &fr); why != RefusedNone {
			t.Errorf("id %d: %v", id, why)
		}
		return c.rx.counters.Refused[RefusedAckTooOld]
	}
	come(8, 0)
	c.nextID.Add(1 << 16) // as if we had sent that many frames since
	come(9, 0)
	for n, acks := range []uint8{0, 1} {
		if got := come(frame.Seq(7-n), acks); got != uint64(n) {
			t.Errorf("%d acknowledged by what was overtaken: refused %d times", acks, got)
		}
	}
	if n := len(c.rx.acks); n != 0 {
		t.Errorf("%d acknowledgements count", n)
	}
}
