package tests

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// D2-1, D2-6, D2-13: it finds us by our own id, in the place of its own; flags
// are 0 or 1 (each double looks); transaction ids are not used again.
func TestQuirkD2R1R6R13WhatWeSend(t *testing.T) {
	rigTest(t, 1, func(t *testing.T, r *rig) {
		d := r.dg2(peers.DG2Config{})
		var wire rigFrames
		r.link(simnet.Link{Script: wire.script}, simnet.Link{})
		r.dial(dgrdma.OpenCPI2(), dgrdma.Config{})
		for _, size := range []int{0, 1, 4, 100, 1456, 5000} {
			r.send(50, size)
		}
		r.completed(true)
		for _, h := range wire.seen().headers {
			if h.Dst != 1 || h.Src != 1 && h.Src != 2 {
				t.Fatalf("frame from %d to %d", h.Src, h.Dst)
			}
		}
		if c := d.Counters(); c.NotForUs != 0 || c.Duplicates != 0 {
			t.Errorf("%d frames found no connection, %d seem copies", c.NotForUs, c.Duplicates)
		}
	})
}

// D2-2: it never acknowledges. Nothing waits for that, and nothing is sent
// again, not even when ids wrap.
func TestQuirkD2R2NeverAcknowledges(t *testing.T) {
	rigTest(t, 2, func(t *testing.T, r *rig) {
		r.dg2(peers.DG2Config{})
		quick := dgrdma.OpenCPI2()
		quick.Drain *= 25
		r.dial(quick, dgrdma.Config{})
		began := time.Now()
		for range 140 {
			r.send(500, 1450)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("70000 frames took %v", took)
		}
		r.completed(true)
		time.Sleep(time.Minute)
		s := r.conn.Stats()
		if s.FramesSent != 70000 || s.RetransmitsFast+s.RetransmitsTimed != 0 || s.Down || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// D2-2: by default it resends nothing and waits for nothing, so nothing is
// sent back.
func TestQuirkD2R2NothingSentBack(t *testing.T) {
	rigTest(t, 2, func(t *testing.T, r *rig) {
		d := r.dg2(peers.DG2Config{})
		r.link(simnet.Link{}, simnet.Link{Reorder: 0.2})
		r.dial(dgrdma.OpenCPI2(), dgrdma.Config{})
		for i := range 100 {
			d.Post(0x80+4*uint32(i), uint32(i+1), rigSlot(i, 3000), rigPattern(i, 3000))
			d.Flush()
		}
		time.Sleep(time.Second)
		for i := range 100 {
			r.await(0x80+4*uint32(i), uint32(i+1))
			r.holds(rigSlot(i, 3000), i, 3000)
		}
		if s := r.conn.Stats(); s.FramesSent != 0 {
			t.Errorf("%d frames were sent", s.FramesSent)
		}
	})
}

// D2-3, D2-4, D2-5: if it waits for acknowledgements, which shows when it
// resends, it gets them: in order, under new ids, and each once, as one that
// nobody waits for would count for a later frame.
func TestQuirkD2R3R4R5Acknowledged(t *testing.T) {
	for _, loss := range []float64{0, 0.1, 0.3} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			rigTest(t, 3, func(t *testing.T, r *rig) {
				d := r.dg2(peers.DG2Config{Retransmit: true})
				r.link(simnet.Link{}, simnet.Link{Loss: loss})
				r.dial(dgrdma.OpenCPI2(), dgrdma.Config{})
				for i := range 60 {
					d.Post(0x80+4*uint32(i), uint32(i+1), rigSlot(i, 3000), rigPattern(i, 3000))
					d.Flush()
					if i%10 == 9 {
						dg1Until(r, func() bool { return d.Outstanding() == 0 })
					}
				}
				for i := range 60 {
					r.await(0x80+4*uint32(i), uint32(i+1))
					r.holds(rigSlot(i, 3000), i, 3000)
				}
				r.send(100, 2000)
				c := d.Counters()
				if c.AcksStray != 0 || c.AcksIgnored != 0 || c.Duplicates != 0 {
					t.Errorf("%d acknowledgements poison its set, %d were in frames it took for copies (%d)",
						c.AcksStray, c.AcksIgnored, c.Duplicates)
				}
				if loss == 0 && c.AcksLate != 0 {
					t.Errorf("%d acknowledgements out of order", c.AcksLate)
				}
				if loss == 0 && c.Resent != 30 { // those before the first copy
					t.Errorf("%d frames were sent again: acknowledgements did not begin", c.Resent)
				}
				if s := r.conn.Stats(); s.Completions != 60 {
					t.Errorf("%d of 60 transactions completed", s.Completions)
				}
			})
		})
	}
}

// D2-7: it writes no completion if either word is all ones. On receiving, only
// both together mean none.
func TestQuirkD2R7AllOnes(t *testing.T) {
	rigTest(t, 7, func(t *testing.T, r *rig) {
		d := r.dg2(peers.DG2Config{})
		r.dial(dgrdma.OpenCPI2(), dgrdma.Config{})
		d.Post(0x100, 0xFFFFFFFF, 0x1000, rigPattern(0, 64))
		d.Post(frame.NoCompletion, frame.NoCompletion, 0x2000, rigPattern(1, 64))
		d.Flush()
		r.await(0x100, 0xFFFFFFFF)
		synctest.Wait()
		r.holds(0x2000, 1, 64)
		if s := r.conn.Stats(); s.Completions != 2 {
			t.Errorf("%d transactions completed", s.Completions)
		}
		if err := r.conn.Write(t.Context(), &dgrdma.Transaction{
			Segments: []dgrdma.Segment{{Addr: 0x1000, Bytes: rigPattern(2, 64)}},
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		if !bytes.Equal(d.Bytes(0x1000, 64), rigPattern(2, 64)) || len(d.Completions()) != 0 {
			t.Error("a transaction without completion")
		}
	})
}

// D2-8: an address outside its memory ends its process: it is refused here.
func TestQuirkD2R8Bounds(t *testing.T) {
	rigTest(t, 8, func(t *testing.T, r *rig) {
		d := r.dg2(peers.DG2Config{})
		r.dial(dgrdma.OpenCPI2(), dgrdma.Config{})
		for addr := uint32(rigMemory - 99); addr != 0; addr += 1 << 19 {
			tx := &dgrdma.Transaction{Segments: []dgrdma.Segment{{Addr: addr, Bytes: rigPattern(0, 100)}}}
			if err := r.conn.Post(tx); !errors.Is(err, dgrdma.ErrBounds) {
				t.Fatalf("address %#x: %v", addr, err)
			}
			if addr > 1<<32-1<<19 {
				break
			}
		}
		if err := r.conn.Post(&dgrdma.Transaction{Completion: dgrdma.Word(rigMemory-1, 0)}); !errors.Is(err, dgrdma.ErrBounds) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if n := d.Counters().Frames; n != 0 {
			t.Errorf("%d frames were sent", n)
		}
	})
}

// D2-9: its last message has up to 3 bytes more than the data. With that much
// slack behind a buffer they do no harm; beyond the memory they are refused.
func TestQuirkD2R9Surplus(t *testing.T) {
	for n := 1233; n <= 1237; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			rigTest(t, uint64(n), func(t *testing.T, r *rig) {
				d := r.dg2(peers.DG2Config{})
				mem, err := dgrdma.NewRegion(0x1000 + (n+3)&^3)
				if err != nil {
					t.Fatal(err)
				}
				r.region = mem
				r.dial(dgrdma.OpenCPI2(), dgrdma.Config{Memory: mem})
				d.Post(0x100, uint32(n), 0x1000, rigPattern(3, n))
				d.Flush()
				r.await(0x100, uint32(n))
				r.holds(0x1000, 3, n)

				d.Post(0x104, 1, 0x1004, rigPattern(4, n))
				d.Flush()
				time.Sleep(time.Millisecond)
				s := r.conn.Stats()
				if s.RefusedBy(dgrdma.RefusedBounds) != 1 || mem.Load32(0x104) != 0 {
					t.Errorf("%+v", s.Counters)
				}
			})
		})
	}
}
