package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestForeignTransactions: a life's ids go on at most as far ahead of the youngest
// as a sender of our kind has transactions open. What is further ahead belongs to
// another life, and moves nothing.
func TestForeignTransactions(t *testing.T) {
	withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		far := uint32(Native().OpenTransactions)
		id, youngest := frame.Seq(2), uint32(life-1)
		for i := range uint64(3) {
			s.send(id, data(youngest+far+1, 1, 1, 64, pattern(1, 8)))
			if acked(s.recv(50*time.Millisecond), id) || c.Stats().RefusedBy(RefusedForeign) != i+1 {
				t.Errorf("a transaction %d ahead was taken, refused %v", far+1, c.Stats().Refused)
			}
			youngest += far
			s.send(id, data(youngest, 1, 1, 64, pattern(1, 8)))
			if !acked(s.recv(50*time.Millisecond), id) || c.Stats().Completions != i+1 {
				t.Errorf("a transaction %d ahead was refused: %v", far, c.Stats().Refused)
			}
			id++
		}
	})
}

// TestAcksOfUnpairedLife: as long as the peer has not said that it believes our
// life, acknowledgements that ride on its data may be meant for another one that
// used the same frame ids, and do not count.
func TestAcksOfUnpairedLife(t *testing.T) {
	withStranger(t, Config{GiveUp: time.Minute}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
		// A new life of the peer, which names ours and has not seen its own come back.
		const second = 2 * life
		var ours uint32
		hello := func(tells bool) {
			s.send(1, msg{Message: frame.Hello{Life: second, Peer: ours, Tells: tells}.Message()})
			for _, f := range s.recv(10 * time.Millisecond) {
				if h, ok := helloOf(&f); ok {
					ours = h.Life
				}
			}
		}
		for range 3 {
			hello(false)
		}
		if st := c.Stats(); st.Theirs != second {
			t.Fatalf("life %d is believed, want %d", st.Theirs, second)
		}
		finished := false
		tx := &Transaction{Completion: Word(4, 1), Done: func(*Transaction, error) { finished = true }}
		if err := c.Post(tx); err != nil {
			t.Fatal(err)
		}
		var sent frame.Seq
		for _, f := range s.recv(time.Millisecond) {
			if _, ok := helloOf(&f); !ok && f.HasMessages() {
				sent = f.Seq
			}
		}
		b := s.encode(2, data(second, 1, 1, 64, pattern(1, 8)))
		frame.PutAck(b, sent, 1)
		s.raw(b)
		if !acked(s.recv(10*time.Millisecond), 2) {
			t.Fatal("the data was refused")
		}
		if finished {
			t.Error("an acknowledgement counted that may be meant for another life")
		}
		hello(true)
		b = s.encode(3, data(second+1, 1, 1, 64, pattern(1, 8)))
		frame.PutAck(b, sent, 1)
		s.raw(b)
		if s.recv(10 * time.Millisecond); !finished {
			t.Error("the same acknowledgement does not count once our life is believed")
		}
	})
}

// TestAcksOfAnotherLife: what acknowledges without messages names our life, and not whose it
// is: the life that we believe may never have come to be, and another one believe ours. Its
// frame ids tell them apart. What it says does not count until it has introduced itself, and
// then it is believed, and nothing fails.
func TestAcksOfAnotherLife(t *testing.T) {
	for _, x := range []struct {
		id   ack.Wide
		ours bool // the life that we believe says it
	}{
		{1 + lifeSpan, true}, {2 + lifeSpan, false}, {1<<32 + 1 - lifeSpan, true}, {1<<32 - lifeSpan, false}, {1 << 31, false},
	} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			mine := resetInto70(c, s)
			var failed error
			done := 0
			c.Post(&Transaction{Completion: Word(4, 1), Done: func(_ *Transaction, err error) { done, failed = done+1, err }})
			before := c.Stats()
			s.alone(stamp(mine, x.id, 0), 0)
			s.recv(time.Millisecond)
			if refused := c.Stats().RefusedBy(RefusedForeign) - before.RefusedBy(RefusedForeign); (refused == 0) != x.ours {
				t.Errorf("%d: %d refused", x.id, refused)
			}
			s.hello(frame.Hello{Life: 80, Peer: mine, Tells: true})
			s.recv(time.Millisecond)
			if st := c.Stats(); (st.Theirs == 80) == x.ours || done != 0 {
				t.Errorf("%d: life %d is believed; %d are done: %v", x.id, st.Theirs, done, failed)
			}
		})
	}
}
