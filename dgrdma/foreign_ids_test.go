package dgrdma

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/frame"
)

// firstForeignID returns the id at which frames to a peer of that kind begin, where that number is drawn.
func firstForeignID(p Profile, random uint32) frame.Seq {
	var s foreign.Sender
	s.Init(&p, 2, 1, foreign.Timing{MaxRTO: time.Second, GiveUp: time.Minute})
	s.Start(0, random, &ack.FixedWindow{})
	return frame.Seq(s.Flight().Next())
}

// TestWhereForeignIDsBegin: frame and transaction ids begin where the kind of peer needs
// it, else at random or where the program says; after Reset frame ids begin where they
// have to, or are asked to, or go on.
func TestWhereForeignIDsBegin(t *testing.T) {
	const random = 12345
	chance := firstForeignID(OpenCPI(false), random)
	for _, x := range []struct {
		name  string
		prof  Profile
		from  frame.Seq // what the program says
		begin frame.Seq
		txn   uint32
		again frame.Seq // after three frames and Reset(0)
	}{
		{"card", FPGA(), 0, 1, 1, 1},
		{"card, asked for more", FPGA(), 500, 1, 1, 1},
		{"driver", OpenCPI(false), 0, chance, random, chance + 3},
		{"driver, asked for more", OpenCPI(false), 500, 500, random, 500},
		{"old driver", Legacy(false), 0, chance, 1, chance + 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			withFakePeer(t, Config{FirstFrame: x.from, Entropy: func() uint32 { return random }}, x.prof, func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
				next := func() (frame.Seq, uint32) {
					t.Helper()
					if err := c.Post(write(64, pattern(1, 16), 0, 1)); err != nil {
						t.Fatal(err)
					}
					got := s.recv(time.Millisecond)
					if len(got) != 1 {
						t.Fatalf("%d frames, want 1", len(got))
					}
					b := s.encode(got[0].Seq)
					frame.PutAck(b, got[0].Seq, 1)
					s.raw(b)
					s.recv(time.Millisecond)
					cur := got[0].Cursor()
					cur.Next()
					return got[0].Seq, cur.Msg.Txn
				}
				for i := range frame.Seq(3) {
					id, txn := next()
					if id != x.begin+i || i == 0 && txn != x.txn {
						t.Errorf("frame %d of transaction %d, want %d of %d", id, txn, x.begin+i, x.txn)
					}
				}
				for _, reset := range []struct{ to, want frame.Seq }{{0, x.again}, {1, 1}, {77, 77}} {
					if err := c.Reset(reset.to); err != nil {
						t.Fatal(err)
					}
					if id, txn := next(); id != reset.want || txn != x.txn {
						t.Errorf("after Reset(%d): frame %d of transaction %d, want %d of %d", reset.to, id, txn, reset.want, x.txn)
					}
				}
			})
		})
	}
}

// TestWhoHasToProveItself: a card gets one frame until it has acknowledged it, if it is one
// that begins at a certain id; others get more at once.
func TestWhoHasToProveItself(t *testing.T) {
	anywhere, driver := FPGA(), OpenCPI(false)
	anywhere.FirstFrame, driver.FirstFrame = 0, 500
	for _, x := range []struct {
		prof  Profile
		alone int
	}{{FPGA(), 1}, {anywhere, 3}, {driver, 3}} {
		withFakePeer(t, Config{}, x.prof, func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
			for range 3 {
				if err := c.Post(write(64, pattern(1, 1024), 0, 1)); err != nil {
					t.Fatal(err)
				}
			}
			got := s.recv(time.Millisecond)
			if len(got) != x.alone {
				t.Fatalf("%d frames before anything is acknowledged, want %d", len(got), x.alone)
			}
			b := s.encode(1)
			frame.PutAck(b, got[0].Seq, 1)
			s.raw(b)
			if len(s.recv(time.Millisecond)) != 3-x.alone {
				t.Error("the others do not follow")
			}
		})
	}
}

// TestOneTransactionAfterTheOther: what is urgent overtakes what waits, but not a
// transaction that a driver has begun to receive.
func TestOneTransactionAfterTheOther(t *testing.T) {
	withFakePeer(t, Config{}, OpenCPI(false), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		long := &Transaction{Completion: Word(0, 1), Segments: make([]Segment, 2*90)}
		for i := range long.Segments {
			long.Segments[i].Bytes = pattern(i, 1400)
		}
		urgent := write(64, pattern(1, 16), 0, 3)
		urgent.Urgent = true
		for _, x := range []*Transaction{long, write(64, pattern(1, 16), 0, 2), urgent} {
			if err := c.Post(x); err != nil {
				t.Fatal(err)
			}
		}
		var order []uint32
		for id := frame.Seq(1); ; id++ {
			got := s.recv(time.Millisecond)
			if len(got) == 0 {
				break
			}
			for _, f := range got {
				for cur := f.Cursor(); cur.Next(); {
					order = append(order, cur.Msg.CompletionValue)
				}
			}
			b := s.encode(id)
			frame.PutAck(b, got[0].Seq, uint8(len(got)))
			s.raw(b)
		}
		if n := len(order); n != len(long.Segments)+2 || !slices.Equal(slices.Compact(order), []uint32{1, 3, 2}) {
			t.Errorf("%d messages of transactions %v", n, slices.Compact(order))
		}
	})
}

// TestCardThatSpeaksOfOthersBefore: what a card acknowledges before it was sent something
// says nothing of what it is sent then (observation V2, docs/peers.md).
func TestCardThatSpeaksOfOthersBefore(t *testing.T) {
	withFakePeer(t, Config{}, FPGA(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		ack := func(seq, start frame.Seq, count uint8) {
			b := s.encode(seq)
			frame.PutAck(b, start, count)
			s.raw(b)
		}
		ack(1, 50, 1)
		s.recv(10 * doubtFor)
		var done []error
		tx := write(64, pattern(1, 16), 0, 1)
		tx.Done = func(_ *Transaction, err error) { done = append(done, err) }
		if err := c.Post(tx); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		ack(2, 2, 0) // as if it had taken ours, which may have been another one's
		if s.recv(0); len(done) != 0 {
			t.Error("what may be an earlier connection's acknowledges ours")
		}
		s.recv(doubtFor - time.Microsecond)
		ack(3, 1, 1)
		if s.recv(time.Second); len(done) != 1 || done[0] != nil || c.Err() != nil {
			t.Errorf("done %v, connection %v", done, c.Err())
		}
	})
	withFakePeer(t, Config{}, FPGA(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		if err := c.Post(write(64, pattern(1, 16), 0, 1)); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		b := s.encode(1)
		frame.PutAck(b, 50, 1)
		s.raw(b)
		if s.recv(doubtFor - time.Microsecond); c.Err() != nil {
			t.Errorf("given up too soon: %v", c.Err())
		}
		if s.recv(time.Microsecond); !errors.Is(c.Err(), ErrStaleCard) {
			t.Errorf("given up by now: %v", c.Err())
		}
	})
}

// TestCardGetsNoAcknowledgements: not even for copies, which are the network's.
func TestCardGetsNoAcknowledgements(t *testing.T) {
	withFakePeer(t, Config{}, FPGA(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		for range 3 {
			s.send(1000, data(1, 1, 1, 64, pattern(1, 16)))
			if got := s.recv(copyDelay); len(got) != 0 {
				t.Errorf("%d frames", len(got))
			}
		}
		if c.Stats().Duplicates != 2 {
			t.Error("no copies: nothing was tested")
		}
	})
}

// TestCardSaysWhatItWaitsFor: everything before the id with which a card's acknowledgement
// begins has come, even if it acknowledges none by itself (quirk F2).
func TestCardSaysWhatItWaitsFor(t *testing.T) {
	withFakePeer(t, Config{}, FPGA(), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		done := 0
		for i, count := range []uint8{1, 0, 0} {
			tx := write(64, pattern(1, 16), 0, 1)
			tx.Done = func(_ *Transaction, err error) { done++ }
			if err := c.Post(tx); err != nil {
				t.Fatal(err)
			}
			sent := s.recv(time.Millisecond)
			b := s.encode(frame.Seq(1 + i))
			frame.PutAck(b, sent[0].Seq.Add(1-int(count)), count)
			s.raw(b)
			if s.recv(time.Millisecond); done != i+1 {
				t.Errorf("%d transactions are done, want %d", done, i+1)
			}
		}
	})
}

// TestNothingAcknowledged: a driver's frame that acknowledges nothing, wherever that would
// begin, is no offence, and one that acknowledges a single id counts.
func TestNothingAcknowledged(t *testing.T) {
	withFakePeer(t, Config{FirstFrame: 1}, OpenCPI(false), func(t *testing.T, _ *Endpoint, c *Conn, s *fakePeer) {
		done := false
		tx := write(64, pattern(1, 16), 0, 1)
		tx.Done = func(_ *Transaction, err error) { done = err == nil }
		if err := c.Post(tx); err != nil {
			t.Fatal(err)
		}
		s.recv(time.Millisecond)
		for i, start := range []frame.Seq{1, 1000, 40000} {
			b := s.encode(frame.Seq(1 + i))
			frame.PutAck(b, start, 0)
			s.raw(b)
		}
		if s.recv(time.Millisecond); done || c.Stats().RefusedBy(RefusedAckOfUnsent) != 0 {
			t.Errorf("done %v, refused %v", done, c.Stats().Refused)
		}
		b := s.encode(5)
		frame.PutAck(b, 1, 1)
		s.raw(b)
		if s.recv(time.Millisecond); !done {
			t.Error("is not done")
		}
	})
}
