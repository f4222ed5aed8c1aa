package tests

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// D1-12: a transaction's place in its table is its id modulo 512. A slow one
// must not be met by one 512 later: here the first frame is lost again and
// again while others could go on.
func TestQuirkD1R12OpenTransactions(t *testing.T) {
	rigTest(t, 12, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		r.link(simnet.Link{Script: func(_ int, b []byte) simnet.Verdict {
			if f, _ := frame.Parse(b); f.Seq%97 == 2 && time.Now().UnixNano()/1e8%3 != 0 {
				return simnet.Drop()
			}
			return simnet.Deliver()
		}}, simnet.Link{})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{GiveUp: time.Minute})
		r.send(4000, 60)
		r.send(200, 3000)
		r.completed(false)
		if c := d.Counters(); c.Duplicates+c.Messages == 0 {
			t.Error("nothing was tested")
		}
	})
}

// D1-13: it may send a frame to the wrong peer. What is addressed to another,
// or comes from one we do not know, is not applied and not acknowledged.
func TestQuirkD1R13Misdirected(t *testing.T) {
	rigTest(t, 13, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		other := r.net.Attach(simnet.Addr(3), simnet.Config{})
		defer other.Close()
		evil := []quirkMessage{{frame.Message{Txn: 1, CompletionAddr: 0x100, CompletionValue: 9, Addr: 0x1000}, []byte("evil")}}
		for seq := frame.Seq(1); seq < 10; seq++ {
			quirkRawTo(t, other, rigOurs, frame.Header{Dst: 7, Src: 2, Seq: seq}, evil) // for another
			quirkRawTo(t, other, rigOurs, frame.Header{Dst: 1, Src: 2, Seq: seq}, evil) // a known id, from elsewhere
			quirkRawTo(t, other, rigOurs, frame.Header{Dst: 1, Src: 3, Seq: seq}, evil) // an unknown id
		}
		time.Sleep(10 * time.Millisecond)
		s := r.ep.Stats()
		if s.RefusedBy(dgrdma.RefusedDestination) != 9 || s.RefusedBy(dgrdma.RefusedSource) != 18 || s.FramesSent != 0 {
			t.Errorf("%+v", s)
		}
		d.Post(0x104, 1, peers.Part{Addr: 0x1000, Data: []byte("good")})
		r.await(0x104, 1)
		if !bytes.Equal(r.region.Bytes()[0x1000:0x1004], []byte("good")) || r.region.Load32(0x100) != 0 {
			t.Error("memory holds what was not for us")
		}
	})
}

// D1-14: ids are counted over all peers of a process, and may be on the wire
// out of order.
func TestQuirkD1R14TransactionIDs(t *testing.T) {
	rigTest(t, 14, func(t *testing.T, r *rig) {
		process := new(peers.Process)
		d := r.dg1(peers.DG1Config{Process: process})
		r.link(simnet.Link{Loss: 0.1}, simnet.Link{Loss: 0.1})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		elsewhere := peers.NewDG1(r.net.Attach(simnet.Addr(3), simnet.Config{}), simnet.Addr(4), peers.DG1Config{Process: process})
		defer elsewhere.Close()
		word := func(i int) uint32 { return rigMemory - 4096 + 4*uint32(i) }
		for i := 0; i < 200; i += 2 {
			for range i % 7 {
				elsewhere.NextTransaction()
			}
			first, second := d.NextTransaction(), d.NextTransaction()
			d.PostAs(second, word(i+1), 1, peers.Part{Addr: rigSlot(i+1, 3000), Data: rigPattern(i+1, 3000)})
			d.PostAs(first, word(i), 1, peers.Part{Addr: rigSlot(i, 3000), Data: rigPattern(i, 3000)})
			dg1Until(r, func() bool { return d.Span() < 100 })
		}
		for i := range 200 {
			r.await(word(i), 1)
			r.holds(rigSlot(i, 3000), i, 3000)
		}
		if s := r.conn.Stats(); s.Open != 0 || s.Completions != 200 {
			t.Errorf("%d open, %d completed", s.Open, s.Completions)
		}
	})
}

// D1-15: between and behind messages there is anything. It goes nowhere.
func TestQuirkD1R15Junk(t *testing.T) {
	rigTest(t, 15, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		for n := 1; n < 40; n++ {
			d.Post(0x100, uint32(n),
				peers.Part{Addr: 0x1000 + uint32(64*n), Data: rigPattern(n, n)},
				peers.Part{Addr: 0x8000 + uint32(64*n), Data: rigPattern(n+1, n)})
			r.await(0x100, uint32(n))
			r.holds(0x1000+uint32(64*n), n, n)
			r.holds(0x8000+uint32(64*n), n+1, n)
			for _, end := range []int{0x1000 + 64*n + n, 0x8000 + 64*n + n} {
				if !bytes.Equal(r.region.Bytes()[end:end+8], make([]byte, 8)) {
					t.Fatalf("data of %d bytes: padding was written at %#x", n, end)
				}
			}
		}
	})
}

// D1-18: it resends for ever. Each copy is acknowledged again and none is
// applied again.
func TestQuirkD1R18ResendsForEver(t *testing.T) {
	for _, lost := range []int{1, 5, 30} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			rigTest(t, 18, func(t *testing.T, r *rig) {
				d := r.dg1(peers.DG1Config{})
				r.link(simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
					if i < lost {
						return simnet.Drop()
					}
					return simnet.Deliver()
				}}, simnet.Link{Duplicate: 0.2})
				r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
				for i := range 20 {
					d.Post(0x200+4*uint32(i), 1, peers.Part{Addr: rigSlot(i, 2048), Data: rigPattern(i, 2048)})
				}
				r.await(0x200+4*19, 1)
				// The layer above takes the words; a copy must not set them again.
				for i := range uint32(20) {
					r.region.Store32(0x200+4*i, 0)
				}
				dg1Until(r, func() bool { return d.Outstanding() == 0 })
				time.Sleep(time.Second)
				s := r.conn.Stats()
				if s.Completions != 20 || s.MessagesPlaced != 40 || s.Duplicates == 0 {
					t.Errorf("%d completed, %d messages, %d copies", s.Completions, s.MessagesPlaced, s.Duplicates)
				}
				for i := range uint32(20) {
					if r.region.Load32(0x200+4*i) != 0 {
						t.Errorf("word %d was written twice", i)
					}
				}
			})
		})
	}
}

// D1-19: it acknowledges 80 ms late, one range at a time. Nothing is sent again
// for that.
func TestQuirkD1R19LateAcks(t *testing.T) {
	rigTest(t, 19, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		for range 5 {
			r.send(60, 2000)
			r.send(1, 8)
			time.Sleep(300 * time.Millisecond)
		}
		r.completed(false)
		s := r.conn.Stats()
		if n := s.RetransmitsFast + s.RetransmitsTimed; n != 0 || d.Counters().Duplicates != 0 {
			t.Errorf("%d frames were sent again", n)
		}
	})
}
