package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// fpgaFrom is the FPGA profile with another first id, for engines that have
// been running.
func fpgaFrom(first frame.Seq) dgrdma.Profile {
	p := dgrdma.FPGA()
	p.FirstFrame = first
	return p
}

// F1: a missing id stops everything, so there is none: all are delivered, and
// nothing is sent that is not repeated.
func TestQuirkF1NoIDIsMissing(t *testing.T) {
	for seed, loss := range []float64{0.05, 0.3, 0.6} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			rigTest(t, uint64(seed+1), func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{})
				r.dial(dgrdma.FPGA(), dgrdma.Config{GiveUp: time.Minute})
				r.heard()
				r.link(simnet.Link{Loss: loss, Reorder: 0.1, ReorderBy: 300 * time.Microsecond}, simnet.Link{Loss: loss / 2})
				for range 10 {
					r.send(40, 3000)
				}
				r.completed(true)
				r.calm()
				time.Sleep(5 * time.Second)
				s := r.conn.Stats()
				used := s.FramesSent - s.RetransmitsFast - s.RetransmitsTimed
				if uint64(d.Base())-1 != used || s.InFlight != 0 {
					t.Errorf("%d ids used, those before %d received, %d in flight", used, d.Base(), s.InFlight)
				}
				if s.AcksAlone != 0 {
					t.Errorf("%d frames were sent that are not repeated", s.AcksAlone)
				}
			})
		})
	}
}

// F2: the engine acknowledges once. Whatever is lost of that, everything is
// done in the end, across the wrap of ids too.
func TestQuirkF2LostAckNeverRepeated(t *testing.T) {
	for _, first := range []frame.Seq{1, 65500} {
		for i, loss := range rigLosses() {
			t.Run(fmt.Sprintf("from %d/%s", first, loss.name), func(t *testing.T) {
				rigTest(t, uint64(10+i), func(t *testing.T, r *rig) {
					d := r.fpga(peers.FPGAConfig{First: first})
					r.dial(fpgaFrom(first), dgrdma.Config{})
					r.heard()
					r.link(simnet.Link{}, loss.link())
					for range 8 {
						r.send(12, 5000)
						r.send(1, 64)
						r.send(1, 0)
					}
					r.completed(true)
					if first == 65500 && d.Base() > 1000 {
						t.Errorf("ids did not wrap: %d", d.Base())
					}
				})
			})
		}
	}
}

// F2: and with losses in both directions, and frames that overtake others.
func TestQuirkF2LossBothWays(t *testing.T) {
	var took []time.Duration
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rigTest(t, 100+seed, func(t *testing.T, r *rig) {
				r.fpga(peers.FPGAConfig{First: 65400})
				r.dial(fpgaFrom(65400), dgrdma.Config{GiveUp: time.Minute})
				r.heard()
				r.link(
					simnet.Link{Loss: 0.2, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 500 * time.Microsecond},
					simnet.Link{Loss: 0.3, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 500 * time.Microsecond})
				began := time.Now()
				for range 8 {
					r.send(20, 4000)
				}
				r.completed(true)
				took = append(took, time.Since(began))
			})
		})
	}
	// A frame that waits for another tells nothing of the round trip: measured
	// by it, this takes a minute. One seed of a thousand takes 15 s all the same,
	// as 0.44 of all frames and their acknowledgements are lost: half of them
	// take less than 3 s.
	slices.Sort(took)
	if n := len(took); n > 0 && took[n/2] > 8*time.Second {
		t.Errorf("took %v", took)
	}
}

// F3: padding behind an empty frame is read as another header. Ours hold their
// own id there; near the wrap nothing else is harmless.
func TestQuirkF3PaddingIsHarmless(t *testing.T) {
	for first := frame.Seq(65500); first != 4; first++ {
		if first == 0 {
			continue // in a profile this means any
		}
		rigTest(t, uint64(first), func(t *testing.T, r *rig) {
			d := r.fpga(peers.FPGAConfig{First: first})
			loss := rigLoss{drop: func(i int) bool { return i%3 != 2 }}
			r.dial(fpgaFrom(first), dgrdma.Config{})
			r.heard()
			r.link(simnet.Link{}, loss.link())
			for range 20 {
				r.send(1, 100)
				r.send(2, 2000)
			}
			r.completed(true)
			c := d.Counters()
			if c.AckOnly != c.Probes || c.Probes == 0 {
				t.Errorf("%d empty frames, %d of them with their own id in the padding", c.AckOnly, c.Probes)
			}
		})
	}
}

// F3: the double has the defect: an empty frame that only the link padded makes
// the frame with id 0 seem received.
func TestQuirkF3DoubleHasIt(t *testing.T) {
	rigTest(t, 1, func(t *testing.T, r *rig) {
		d := peers.NewFPGA(r.there, rigOurs, peers.FPGAConfig{First: 65535})
		defer d.Close()
		c := r.net.Attach(rigOurs, simnet.Config{})
		h := frame.Header{Dst: 2, Src: 1, Seq: 65535}
		quirkRaw(t, c, h, nil)
		time.Sleep(10 * time.Millisecond)
		if d.Base() != 1 || len(d.Violations()) != 1 {
			t.Errorf("base %d, violations %q", d.Base(), d.Violations())
		}
	})
}

// F4: never more than the window is under way, as long as nothing is lost.
func TestQuirkF4Window(t *testing.T) {
	for _, width := range []int{32, 8} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			rigTest(t, uint64(width), func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{Width: width})
				r.dial(dgrdma.FPGA(), dgrdma.Config{Window: width})
				r.send(60, 10000)
				r.completed(true)
				if c := d.Counters(); c.Outside != 0 || c.Duplicates != 0 {
					t.Errorf("%d frames outside the window, %d copies", c.Outside, c.Duplicates)
				}
				if r.conn.Stats().WindowFull == 0 {
					t.Error("the window was never full: nothing was tested")
				}
			})
		})
	}
}

// F4: a window of 8 works under loss too.
func TestQuirkF4SmallWindowUnderLoss(t *testing.T) {
	rigTest(t, 4, func(t *testing.T, r *rig) {
		r.fpga(peers.FPGAConfig{Width: 8, AckEvery: 4})
		r.dial(dgrdma.FPGA(), dgrdma.Config{Window: 8, GiveUp: time.Minute})
		r.heard()
		r.link(simnet.Link{Loss: 0.1}, simnet.Link{Loss: 0.3})
		for range 5 {
			r.send(30, 3000)
		}
		r.completed(true)
	})
}

// F5: both ids start at 1. An engine that was reset hears nothing of the old
// ids, which is found out, and after Reset they start at 1 again.
func TestQuirkF5StartsAtOne(t *testing.T) {
	rigTest(t, 5, func(t *testing.T, r *rig) {
		d := r.fpga(peers.FPGAConfig{})
		var wire rigFrames
		r.link(simnet.Link{Script: wire.script}, simnet.Link{})
		r.dial(dgrdma.FPGA(), dgrdma.Config{GiveUp: 2 * time.Second})
		r.send(40, 2000)
		r.completed(true)
		if wire.seen().headers[0].Seq != 1 || wire.seen().msgs[0].Txn != 1 {
			t.Errorf("first frame %d, first transaction %d", wire.seen().headers[0].Seq, wire.seen().msgs[0].Txn)
		}

		d.Reset()
		err := r.conn.Write(context.Background(), &dgrdma.Transaction{Completion: dgrdma.Word(rigFlag, 9999)})
		if !errors.Is(err, dgrdma.ErrPeerDown) {
			t.Fatalf("to an engine that was reset: %v", err)
		}
		if d.Due() != 1 {
			t.Error("a transaction of before was completed")
		}
		n := len(wire.seen().headers)
		if err := r.conn.Reset(0); err != nil {
			t.Fatal(err)
		}
		r.txns = 0
		before := len(r.double.Completions())
		r.send(40, 2000)
		if got := len(r.double.Completions()) - before; got != 40 {
			t.Errorf("%d of 40 completed after the reset", got)
		}
		if wire.seen().headers[n].Seq != 1 {
			t.Errorf("first frame after the reset is %d", wire.seen().headers[n].Seq)
		}
	})
}

// F5: nor is that found out too late where our ids, near their wrap, come to the first ones again.
// What the new life acknowledges, the old one had not.
func TestQuirkF5RestartNearWrap(t *testing.T) {
	for _, used := range []int{5, 20, 26, 30} {
		t.Run(fmt.Sprint(used), func(t *testing.T) {
			rigTest(t, 5, func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{First: 65510})
				r.dial(fpgaFrom(65510), dgrdma.Config{GiveUp: 2 * time.Second})
				for range used {
					r.send(1, 1300)
				}
				time.Sleep(2 * time.Second) // what the network holds back is over
				r.send(1, 1300)
				d.Reset()
				const n = 20
				results := make(chan error, n)
				for i := range n {
					if err := r.conn.Post(&dgrdma.Transaction{
						Segments:   []dgrdma.Segment{{Addr: rigSlot(i, 1300), Bytes: rigPattern(i+500, 1300)}},
						Completion: dgrdma.Word(rigFlag, uint32(i+1)),
						Done:       func(_ *dgrdma.Transaction, err error) { results <- err },
					}); err != nil {
						t.Fatal(err)
					}
				}
				for range n {
					if err := <-results; !errors.Is(err, dgrdma.ErrPeerDown) {
						t.Errorf("with the ids from %d on, to an engine that was reset: %v", 65511+used, err)
					}
				}
			})
		})
	}
}

// F6: transaction ids are contiguous, and fewer than 64 are open; small
// transactions share frames, so the window of frames is not enough.
func TestQuirkF6OpenTransactions(t *testing.T) {
	for seed, loss := range []float64{0, 0.2} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			rigTest(t, uint64(60+seed), func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{})
				r.dial(dgrdma.FPGA(), dgrdma.Config{GiveUp: time.Minute})
				r.heard()
				r.link(simnet.Link{Loss: loss}, simnet.Link{Loss: loss})
				for range 5 {
					r.send(600, 40)
				}
				r.completed(true)
				c := d.Counters()
				if c.MostOpen > 64 || loss > 0 && c.MostOpen < 20 {
					t.Errorf("%d transactions were open", c.MostOpen)
				}
				if c.Shared == 0 {
					t.Error("no frame was shared: nothing was tested")
				}
			})
		})
	}
}

// F7: completions come in the order of ids, so none may be left out: a
// transaction that is taken back must not have had an id.
func TestQuirkF7NoneIsAbandoned(t *testing.T) {
	rigTest(t, 7, func(t *testing.T, r *rig) {
		d := r.fpga(peers.FPGAConfig{})
		r.dial(dgrdma.FPGA(), dgrdma.Config{GiveUp: time.Minute})
		r.heard()
		r.link(simnet.Link{Loss: 0.2, Reorder: 0.3}, simnet.Link{Loss: 0.2, Reorder: 0.3})
		const n = 200
		results := make(chan error, n)
		for i := range n {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*300*time.Microsecond)
			go func() {
				defer cancel()
				results <- r.conn.Write(ctx, &dgrdma.Transaction{
					Segments:   []dgrdma.Segment{{Addr: rigSlot(i, 2000), Bytes: rigPattern(i, 2000)}},
					Completion: dgrdma.Word(rigFlag, uint32(i+1)),
				})
			}()
		}
		done, given := 1, 0 // with the one that was heard
		for range n {
			switch err := <-results; {
			case err == nil:
				done++
			case errors.Is(err, context.DeadlineExceeded):
				given++
			default:
				t.Fatal(err)
			}
		}
		if done == 1 || given == 0 {
			t.Errorf("%d done, %d taken back: nothing was tested", done, given)
		}
		if got := len(d.Completions()); got != done || d.Due() != uint32(done+1) {
			t.Errorf("%d done, %d completed, due is %d", done, got, d.Due())
		}
	})
}

// F8, F9: count 0 goes with length 0 and only with that. The double notes
// anything else.
func TestQuirkF8F9CountsAndLengths(t *testing.T) {
	rigTest(t, 8, func(t *testing.T, r *rig) {
		d := r.fpga(peers.FPGAConfig{})
		var wire rigFrames
		r.link(simnet.Link{Script: wire.script}, simnet.Link{})
		r.dial(dgrdma.FPGA(), dgrdma.Config{Coalesce: time.Millisecond})
		for size := range 60 {
			r.send(3, size)
			r.send(1, 0)
		}
		r.send(20, 1400)
		r.send(1, 65535)
		r.completed(true)

		// Empty segments become no message, and their addresses do not matter.
		err := r.conn.Write(context.Background(), &dgrdma.Transaction{
			Segments: []dgrdma.Segment{
				{Addr: 3}, {Addr: 0x1000, Bytes: []byte("data")}, {Addr: 7, Bytes: []byte{}}, {Addr: 0x2000, Bytes: []byte("more")},
			},
			Completion: dgrdma.Word(rigFlag, 1),
		})
		if err != nil || string(d.Bytes(0x1000, 4)) != "data" || string(d.Bytes(0x2000, 4)) != "more" {
			t.Errorf("empty segments: %v", err)
		}
		err = r.conn.Write(context.Background(), &dgrdma.Transaction{
			Segments: []dgrdma.Segment{{Addr: 3}}, Completion: dgrdma.Word(rigFlag, 2),
		})
		if err != nil {
			t.Error(err)
		}
		for _, m := range wire.seen().msgs {
			if (m.Count == 0) != (m.Len == 0) {
				t.Fatalf("transaction %d: count %d, length %d", m.Txn, m.Count, m.Len)
			}
		}
	})
}

// F10: a transaction without completion is refused at once.
func TestQuirkF10NoSentinel(t *testing.T) {
	rigTest(t, 10, func(t *testing.T, r *rig) {
		d := r.fpga(peers.FPGAConfig{})
		r.dial(dgrdma.FPGA(), dgrdma.Config{})
		err := r.conn.Post(&dgrdma.Transaction{
			Segments: []dgrdma.Segment{{Addr: 0x1000, Bytes: []byte("data")}},
		})
		if err != dgrdma.ErrNoCompletion {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if d.Counters().Frames != 0 {
			t.Error("something was sent")
		}
	})
}

// F11: every message begins at a multiple of the bus width, whatever the frame
// size; lengths are whole words, filled with zeros.
func TestQuirkF11Alignment(t *testing.T) {
	for _, mtu := range []int{200, 1487, 1490, 1500, 8999} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			rigTest(t, uint64(mtu), func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{Bus: 16})
				r.dial(dgrdma.FPGA(), dgrdma.Config{MTU: mtu})
				for _, size := range []int{1, 3, 5, 15, 17, 100, 1460, 5001, 20003} {
					r.send(7, size)
					if pad := (4 - size%4) % 4; !bytes.Equal(d.Bytes(int(rigSlot(6, size))+size, pad), make([]byte, pad)) {
						t.Errorf("size %d: what was added is not zero", size)
					}
				}
				r.completed(true)
			})
		})
	}
	rigTest(t, 11, func(t *testing.T, r *rig) {
		r.fpga(peers.FPGAConfig{})
		r.dial(dgrdma.FPGA(), dgrdma.Config{})
		for addr := uint32(1); addr < 16; addr++ {
			tx := &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: addr, Bytes: []byte("x")}}, Completion: dgrdma.Word(rigFlag, 0)}
			if err := r.conn.Post(tx); !errors.Is(err, dgrdma.ErrAlignment) {
				t.Errorf("address %d: %v", addr, err)
			}
		}
		tx := &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: rigMemory - 16, Bytes: make([]byte, 17)}}, Completion: dgrdma.Word(rigFlag, 0)}
		if err := r.conn.Post(tx); !errors.Is(err, dgrdma.ErrBounds) {
			t.Error(err)
		}
	})
}

// F18: the engine's receive FIFO holds 10 KiB, here 7 frames that leave it at
// line rate. What it drops is sent again.
func TestQuirkF18SmallFIFO(t *testing.T) {
	rigTest(t, 18, func(t *testing.T, r *rig) {
		r.fpga(peers.FPGAConfig{})
		r.link(simnet.Link{Rate: 1e9, Queue: 7}, simnet.Link{})
		r.dial(dgrdma.FPGA(), dgrdma.Config{})
		began := time.Now()
		for range 5 {
			r.send(50, 10000)
		}
		r.completed(true)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
		if s := r.net.LinkStats(rigOurs, rigPeer); s.TailDropped == 0 {
			t.Error("nothing was dropped: nothing was tested")
		}
	})
}
