package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// dg1Until waits until the double has what it waits for.
func dg1Until(r *rig, ready func() bool) {
	r.t.Helper()
	for range 1_000_000 {
		if ready() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatalf("the peer waits for acknowledgements: %+v", r.conn.Stats())
}

// dg1Feed posts n transactions of size bytes from the double. As the layer
// above it does, it uses a slot again when it is free; and it keeps away from
// its assertion about ids (D1-6), which loss alone would trip.
func dg1Feed(r *rig, d *peers.DG1, n, size int) {
	r.t.Helper()
	const slots = 40
	var used [slots]uint32
	for i := range n {
		dg1Until(r, func() bool { return d.Span() < 100 && !d.Waits(used[i%slots]) })
		used[i%slots] = d.Post(0x100, uint32(i+1),
			peers.Part{Addr: rigSlot(i%slots, size), Data: rigPattern(i, size)},
			peers.Part{Addr: 0x300, Data: []byte("metadata")})
	}
	dg1Until(r, func() bool { return d.Outstanding() == 0 })
	for i := max(0, n-slots); i < n; i++ {
		r.holds(rigSlot(i%slots, size), i, size)
	}
	if s := r.conn.Stats(); s.Completions != uint64(n) {
		r.t.Errorf("%d of %d transactions completed", s.Completions, n)
	}
}

// D1, all rows at once: both directions full, with everything that can happen
// to frames. The double notes each assertion of the original.
func TestQuirkD1BothWaysUnderLoss(t *testing.T) {
	for _, udp := range []bool{false, true} {
		for seed, loss := range []float64{0, 0.02, 0.1, 0.3} {
			t.Run(fmt.Sprintf("udp %v/loss %v", udp, loss), func(t *testing.T) {
				rigTest(t, uint64(seed+1), func(t *testing.T, r *rig) {
					d := r.dg1(peers.DG1Config{UDP: udp})
					bad := simnet.Link{Loss: loss, Reorder: loss, ReorderBy: 3 * time.Millisecond}
					r.link(bad, bad)
					r.dial(dgrdma.OpenCPI(udp), dgrdma.Config{GiveUp: time.Minute})
					fed := make(chan struct{})
					go func() {
						defer close(fed)
						dg1Feed(r, d, 400, 2048)
					}()
					// Beyond the slots that the double writes to nothing is shared:
					// the directions have memories of their own.
					for range 10 {
						r.send(30, 3000)
						r.send(5, 0)
					}
					<-fed
					r.completed(false)
				})
			})
		}
	}
}

// D1-1: a transaction of one message says count 0, and its data counts.
func TestQuirkD1R1CountZeroWithData(t *testing.T) {
	rigTest(t, 1, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		for i, size := range []int{1, 4, 8, 100, 1456} {
			d.Post(0x100, uint32(i+1), peers.Part{Addr: rigSlot(i, 1456), Data: rigPattern(i, size)})
			r.await(0x100, uint32(i+1))
			r.holds(rigSlot(i, 1456), i, size)
		}
		d.Post(0x104, 77)
		r.await(0x104, 77)
	})
}

// D1-2, D1-8, D1-9, D1-10, D1-12, D1-20: what we send has counts from 1, fits
// its buffers whatever the wire could carry, keeps its table of transactions in
// order and is addressed to it.
func TestQuirkD1R2R8R9R10R12R20WhatWeSend(t *testing.T) {
	for _, udp := range []bool{false, true} {
		for _, mtu := range []int{400, 1500, 9000} {
			t.Run(fmt.Sprintf("udp %v/mtu %d", udp, mtu), func(t *testing.T) {
				rigTest(t, uint64(mtu), func(t *testing.T, r *rig) {
					d := r.dg1(peers.DG1Config{UDP: udp})
					var wire rigFrames
					r.link(simnet.Link{Script: wire.script}, simnet.Link{})
					r.dial(dgrdma.OpenCPI(udp), dgrdma.Config{MTU: mtu})
					for _, size := range []int{0, 1, 4, 64, 464, 465, 1456, 1457, 5000} {
						r.send(40, size)
					}
					r.send(1, 200000)
					r.send(700, 24)
					r.completed(false)
					limit := map[bool]int{false: 1488, true: 510}[udp]
					if n := d.Counters().Longest; n > limit || mtu > limit && n < limit-16 {
						t.Errorf("longest frame %d", n)
					}
					msgs := wire.seen().msgs
					for i, m := range msgs {
						if i > 0 && m.Txn != msgs[i-1].Txn && m.Txn != msgs[i-1].Txn+1 {
							t.Fatalf("transaction %d after %d", m.Txn, msgs[i-1].Txn)
						}
					}
				})
			})
		}
	}
}

// D1-3, D1-4: each id is used once, by frames without messages too. Half of the acknowledgements are lost, so that both kinds mix.
func TestQuirkD1R3R4IDs(t *testing.T) {
	rigTest(t, 3, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		var wire rigFrames
		r.link(simnet.Link{Script: wire.script}, simnet.Link{Loss: 0.3})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{GiveUp: time.Minute})
		for i := range 20 {
			d.Post(0x100, uint32(i+1), peers.Part{Addr: 0x1000, Data: rigPattern(i, 3000)})
			r.send(5, 2000)
		}
		time.Sleep(time.Second)
		kinds := make(map[frame.Seq]bool)
		alone := 0
		for _, h := range wire.seen().headers {
			if has, known := kinds[h.Seq]; known && (!has || !h.HasMessages()) {
				t.Fatalf("id %d was used twice", h.Seq)
			}
			if kinds[h.Seq] = h.HasMessages(); !h.HasMessages() {
				alone++
			}
		}
		if alone == 0 {
			t.Error("no frame without messages: nothing was tested")
		}
		r.completed(false)
	})
}

// D1-3: wherever ids begin, the double, which has just been started, does not
// take the one with id 0 for a copy.
func TestQuirkD1R3FirstID(t *testing.T) {
	for _, random := range []uint32{0, 1, 65278, 65279, 65280, 65281, 65535, 65536, 0xFFFFFFFF} {
		for _, legacy := range []bool{false, true} {
			rigTest(t, uint64(random), func(t *testing.T, r *rig) {
				p := dgrdma.OpenCPI(false)
				if legacy {
					p = dgrdma.Legacy(false)
					r.legacy(peers.DG1Config{})
				} else {
					r.dg1(peers.DG1Config{})
				}
				var wire rigFrames
				r.link(simnet.Link{Script: wire.script}, simnet.Link{})
				r.dial(p, dgrdma.Config{Entropy: func() uint32 { return random }})
				r.send(300, 8)
				r.send(5, 100_000)
				r.completed(false)
				if first := wire.seen().headers[0].Seq; first < 1 || first > 65280 {
					t.Errorf("first id %d", first)
				}
			})
		}
	}
}

// D1-3, D1-4: the same across the wrap, by a sender of hardly anything but
// acknowledgements, which leave no trace in the double's table.
func TestQuirkD1R4IDsWrap(t *testing.T) {
	rigTest(t, 4, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		r.send(300, 0)
		for i := range 34_000 {
			d.Post(0x100, uint32(i+1))
			d.Post(0x104, uint32(i+1))
			time.Sleep(2100 * time.Microsecond) // each pair is acknowledged by itself
			d.Post(0x108, uint32(i+1))
			time.Sleep(2100 * time.Microsecond)
		}
		s := r.conn.Stats()
		if s.AcksAlone < 65536 {
			t.Errorf("%d frames without messages: ids did not wrap", s.AcksAlone)
		}
		r.send(300, 8)
		r.completed(false)
	})
}

// D1-5: it overlooks acknowledgements in copies, so ours are in new frames; and
// those in its copies count.
func TestQuirkD1R5AcksInCopies(t *testing.T) {
	t.Run("ours", func(t *testing.T) {
		rigTest(t, 5, func(t *testing.T, r *rig) {
			d := r.dg1(peers.DG1Config{})
			r.link(simnet.Link{}, simnet.Link{Loss: 0.3})
			r.dial(dgrdma.OpenCPI(false), dgrdma.Config{GiveUp: time.Minute})
			fed := make(chan struct{})
			go func() {
				defer close(fed)
				dg1Feed(r, d, 100, 2048)
			}()
			for range 10 {
				r.send(10, 2000)
			}
			<-fed
			if c := d.Counters(); c.Duplicates == 0 || c.AcksIgnored != 0 {
				t.Errorf("%d copies, %d with acknowledgements", c.Duplicates, c.AcksIgnored)
			}
		})
	})
	t.Run("its", func(t *testing.T) {
		rigTest(t, 5, func(t *testing.T, r *rig) {
			r.dial(dgrdma.OpenCPI(false), dgrdma.Config{FirstFrame: 1})
			h := frame.Header{Dst: 1, Src: 2, Seq: 1}
			words := []quirkMessage{{Message: frame.Message{Txn: 1, CompletionAddr: 0x100, CompletionValue: 1}}}
			quirkRawTo(t, r.there, rigOurs, h, words)
			r.await(0x100, 1)
			done := make(chan error, 1)
			err := r.conn.Post(&dgrdma.Transaction{Completion: dgrdma.Word(0, 1), Done: func(_ *dgrdma.Transaction, err error) { done <- err }})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			h.AckStart, h.AckCount = 1, 1
			quirkRawTo(t, r.there, rigOurs, h, words)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if s := r.conn.Stats(); s.Duplicates != 1 || s.AcksReceived != 1 {
				t.Errorf("%+v", s.Counters)
			}
		})
	})
}

// D1-6: it dies if it gets 256 frames ahead. Nothing waits long for its
// acknowledgement, at any rate.
func TestQuirkD1R6PromptAcks(t *testing.T) {
	for _, pause := range []time.Duration{10 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			rigTest(t, 6, func(t *testing.T, r *rig) {
				d := r.dg1(peers.DG1Config{})
				r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
				for i := range 2000 {
					d.Post(0x100, uint32(i+1), peers.Part{Addr: 0x1000, Data: rigPattern(i, 1000)})
					time.Sleep(pause)
				}
				time.Sleep(20 * time.Millisecond)
				c := d.Counters()
				if c.LongestWait > 2*time.Millisecond+4*rigLatency || c.AcksGot != 2000 || c.Resent != 0 {
					t.Errorf("waited %v for acknowledgement, %d came, %d resent", c.LongestWait, c.AcksGot, c.Resent)
				}
			})
		})
	}
}

// D1-11: addresses are checked before anything is sent.
func TestQuirkD1R11Bounds(t *testing.T) {
	rigTest(t, 11, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		for _, tx := range []dgrdma.Transaction{
			{Segments: []dgrdma.Segment{{Addr: rigMemory - 3, Bytes: []byte("data")}}},
			{Segments: []dgrdma.Segment{{Addr: 0xFFFFFFFE, Bytes: []byte("data")}}},
			{Completion: dgrdma.Word(rigMemory-3, 0)},
			{Completion: dgrdma.Word(0xFFFFFFFF, 1)},
		} {
			if err := r.conn.Post(&tx); !errors.Is(err, dgrdma.ErrBounds) {
				t.Errorf("%+v: %v", tx, err)
			}
		}
		time.Sleep(time.Second)
		if n := d.Counters().Frames; n != 0 {
			t.Errorf("%d frames were sent", n)
		}
		tx := dgrdma.Transaction{
			Segments:   []dgrdma.Segment{{Addr: rigMemory - 8, Bytes: []byte("data")}},
			Completion: dgrdma.Word(rigMemory-4, 5),
		}
		if err := r.conn.Write(context.Background(), &tx); err != nil || d.Bytes(rigMemory-4, 1)[0] != 5 {
			t.Error("at the very end: ", err)
		}
	})
}
