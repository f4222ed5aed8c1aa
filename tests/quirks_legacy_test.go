package tests

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// L1: it drops messages of exactly 4 bytes, so there are none: not for data of
// that length, and not as the rest of longer data.
func TestQuirkL1NoFourBytes(t *testing.T) {
	for _, udp := range []bool{false, true} {
		rigTest(t, 1, func(t *testing.T, r *rig) {
			r.legacy(peers.DG1Config{UDP: udp})
			r.dial(dgrdma.Legacy(udp), dgrdma.Config{})
			for size := range 40 {
				r.send(3, size)
			}
			for _, room := range []int{1454, 476} {
				for size := room &^ 15; size < room&^15+40; size++ {
					r.send(2, size)
				}
			}
			tx := &dgrdma.Transaction{Completion: dgrdma.Word(rigFlag, 1)}
			for i := range 60 {
				tx.Segments = append(tx.Segments, dgrdma.Segment{Addr: rigSlot(i, 4), Bytes: rigPattern(i, 4)})
			}
			if err := r.conn.Write(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			for i := range 60 {
				if got := r.double.Bytes(int(rigSlot(i, 4)), 4); string(got) != string(rigPattern(i, 4)) {
					t.Errorf("segment %d is %x", i, got)
				}
			}
		})
	}
}

// L2: one transaction at a time, and none whose id has bit 9 set.
func TestQuirkL2TransactionIDs(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			rigTest(t, 2, func(t *testing.T, r *rig) {
				r.legacy(peers.DG1Config{})
				var wire rigFrames
				r.link(simnet.Link{Loss: loss, Script: wire.script}, simnet.Link{Loss: loss})
				r.dial(dgrdma.Legacy(false), dgrdma.Config{GiveUp: time.Minute})
				for range 6 {
					r.send(250, 0)
				}
				r.send(100, 3000)
				r.completed(true)
				last := uint32(0)
				for _, m := range wire.seen().msgs {
					if m.Txn&512 != 0 {
						t.Fatalf("transaction %d", m.Txn)
					}
					last = max(last, m.Txn)
				}
				// Blocks of 512 are left out; id 0 is not used either.
				if last != 3072+(1600-511-512-512)-1 {
					t.Errorf("last transaction is %d", last)
				}
			})
		})
	}
}

// L3: it does not understand a range of acknowledgements that crosses the wrap.
func TestQuirkL3RangesEndAtTheWrap(t *testing.T) {
	for _, burst := range []int{1, 3, 20} {
		t.Run(fmt.Sprint(burst), func(t *testing.T) {
			rigTest(t, 3, func(t *testing.T, r *rig) {
				d := r.legacy(peers.DG1Config{First: 65500})
				var wire rigFrames
				r.link(simnet.Link{Script: wire.script}, simnet.Link{})
				r.dial(dgrdma.Legacy(false), dgrdma.Config{})
				for i := range 100 {
					d.Post(0x100, uint32(i+1), peers.Part{Addr: 0x1000, Data: rigPattern(i, 64)})
					if i%burst == 0 {
						time.Sleep(3 * time.Millisecond)
					}
				}
				r.await(0x100, 100)
				time.Sleep(100 * time.Millisecond)
				if c := d.Counters(); c.Resent != 0 || c.AcksGot != 100 {
					t.Errorf("%d acknowledged, %d frames sent again", c.AcksGot, c.Resent)
				}
				for _, h := range wire.seen().headers {
					if int(h.AckStart)+int(h.AckCount) > 65536 {
						t.Errorf("range of %d from %d", h.AckCount, h.AckStart)
					}
				}
			})
		})
	}
}

// L4: a frame without messages that comes twice is fatal: ours have ids of
// their own and are never repeated.
func TestQuirkL4AcksAreNotRepeated(t *testing.T) {
	rigTest(t, 4, func(t *testing.T, r *rig) {
		d := r.legacy(peers.DG1Config{})
		var wire rigFrames
		r.link(simnet.Link{Loss: 0.1, Script: wire.script}, simnet.Link{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1})
		r.dial(dgrdma.Legacy(false), dgrdma.Config{GiveUp: time.Minute})
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			dg1Feed(r, d, 200, 2048)
		}()
		for range 5 {
			r.send(20, 2000)
		}
		<-fed
		alone := make(map[frame.Seq]bool)
		for _, h := range wire.seen().headers {
			if h.HasMessages() {
				continue
			}
			if alone[h.Seq] {
				t.Fatalf("frame %d without messages was sent twice", h.Seq)
			}
			alone[h.Seq] = true
		}
		if len(alone) == 0 {
			t.Error("nothing was tested")
		}
	})
}

// L5: a transfer has one transaction id for all its posts.
func TestQuirkL5SameIDAgain(t *testing.T) {
	rigTest(t, 5, func(t *testing.T, r *rig) {
		d := r.legacy(peers.DG1Config{})
		r.link(simnet.Link{Loss: 0.1}, simnet.Link{Loss: 0.1})
		r.dial(dgrdma.Legacy(false), dgrdma.Config{})
		for i := range 50 {
			d.PostAs(7, 0x100, uint32(i+1),
				peers.Part{Addr: 0x1000, Data: rigPattern(i, 3000)}, peers.Part{Addr: 0x300, Data: []byte("metadata")})
			r.await(0x100, uint32(i+1))
			r.holds(0x1000, i, 3000)
			d.PostAs(8, 0x104, uint32(i+1), peers.Part{Addr: 0x2000, Data: rigPattern(i, 100)})
			r.await(0x104, uint32(i+1))
			r.holds(0x2000, i, 100)
			dg1Until(r, func() bool { return d.Outstanding() == 0 })
		}
		if s := r.conn.Stats(); s.Completions != 100 || s.Open != 0 {
			t.Errorf("%d completed, %d open", s.Completions, s.Open)
		}
	})
}

// L6: it does not know that a transaction can have no completion.
func TestQuirkL6NoSentinel(t *testing.T) {
	rigTest(t, 6, func(t *testing.T, r *rig) {
		d := r.legacy(peers.DG1Config{})
		r.dial(dgrdma.Legacy(false), dgrdma.Config{})
		err := r.conn.Post(&dgrdma.Transaction{
			Segments: []dgrdma.Segment{{Addr: 0x1000, Bytes: []byte("data")}},
		})
		if err != dgrdma.ErrNoCompletion {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if n := d.Counters().Frames; n != 0 {
			t.Errorf("%d frames were sent", n)
		}
	})
}

// TestQuirkL7ReleasedNeverAcknowledges checks which profile fits released versions, in which nothing acknowledges
// by itself (O3). With the one for other versions all is written and fails, and what the driver
// sends anyway acknowledges no more than two frames. One that expects no acknowledgements has all done.
func TestQuirkL7ReleasedNeverAcknowledges(t *testing.T) {
	for _, udp := range []bool{true, false} {
		unheard := dgrdma.Legacy(udp)
		unheard.NoAcks, unheard.NeverRetransmits = true, true
		unheard.PeerBuffer, unheard.Drain = dgrdma.OpenCPI2().PeerBuffer, dgrdma.OpenCPI2().Drain
		t.Run(fmt.Sprintf("udp %v/not acknowledged", udp), func(t *testing.T) {
			rigTest(t, 1, func(t *testing.T, r *rig) {
				r.legacy(peers.DG1Config{UDP: udp, Released: true})
				r.dial(dgrdma.Legacy(udp), dgrdma.Config{})
				err := r.conn.Write(t.Context(), &dgrdma.Transaction{
					Segments: []dgrdma.Segment{{Addr: rigData, Bytes: rigPattern(0, 1000)}}, Completion: dgrdma.Word(rigFlag, 1),
				})
				if !errors.Is(err, dgrdma.ErrPeerDown) || !bytes.Equal(r.double.Bytes(rigData, 1000), rigPattern(0, 1000)) {
					t.Errorf("written, and: %v", err)
				}
			})
		})
		t.Run(fmt.Sprintf("udp %v/it answers", udp), func(t *testing.T) {
			rigTest(t, 1, func(t *testing.T, r *rig) {
				d := r.legacy(peers.DG1Config{UDP: udp, Released: true})
				r.dial(dgrdma.Legacy(udp), dgrdma.Config{})
				for i := range 50 {
					done := make(chan error, 1)
					go func() {
						done <- r.conn.Write(t.Context(), &dgrdma.Transaction{
							Segments: []dgrdma.Segment{{Addr: rigData, Bytes: rigPattern(i, 400)}}, Completion: dgrdma.Word(rigFlag, uint32(i+1)),
						})
					}()
					dg1Until(r, func() bool { return len(d.Completions()) == i+1 })
					d.Post(0x100, uint32(i+1)) // as a port does that returns a buffer
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				}
			})
		})
		t.Run(fmt.Sprintf("udp %v/none expected", udp), func(t *testing.T) {
			rigTest(t, 1, func(t *testing.T, r *rig) {
				d := r.legacy(peers.DG1Config{UDP: udp, Released: true, Buffer: peers.DefaultBuffer})
				r.dial(unheard, dgrdma.Config{})
				for _, size := range []int{0, 4, 400, 1700, 20_000} {
					r.send(20, size)
				}
				r.completed(true)
				for i := range 20 {
					d.Post(0x100, uint32(i+1), peers.Part{Addr: rigSlot(i, 3000), Data: rigPattern(i, 3000)})
					r.await(0x100, uint32(i+1))
				}
			})
		})
	}
}
