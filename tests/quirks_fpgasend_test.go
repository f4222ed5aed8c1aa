package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// F13: the engine looks at no acknowledgement, so none is sent, and what was
// lost stays lost: the rest goes on, and the loss is told when room is needed.
func TestQuirkF13NeverRepeats(t *testing.T) {
	rigTest(t, 13, func(t *testing.T, r *rig) {
		d := r.fpga(peers.FPGAConfig{})
		r.link(simnet.Link{}, simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
			if i%10 == 3 {
				return simnet.Drop()
			}
			return simnet.Deliver()
		}})
		r.dial(dgrdma.FPGA(), dgrdma.Config{OpenIncoming: 4})
		const n = 100 // of two frames each
		for i := range n {
			d.Write(rigSlot(i, 2800), rigPattern(i, 2800), 0x100, uint32(i+1))
			time.Sleep(time.Millisecond)
		}
		s := r.conn.Stats()
		if want := uint64(n * 9 / 10 * 2); s.FramesReceived < want-2 || s.FramesReceived > want+40 {
			t.Errorf("%d frames received", s.FramesReceived)
		}
		if s.Completions == n || s.Completions < n*7/10 {
			t.Errorf("%d of %d transactions completed", s.Completions, n)
		}
		lost := n - int(s.Completions)
		if s.OpenEvicted == 0 || r.happened(dgrdma.TransactionLost) != int(s.OpenEvicted) || int(s.OpenEvicted)+s.Open != lost {
			t.Errorf("%d lost, %d given up, %d open, told of %d", lost, s.OpenEvicted, s.Open, r.happened(dgrdma.TransactionLost))
		}
		if s.FramesSent != 0 {
			t.Errorf("%d frames were sent to one who does not look", s.FramesSent)
		}
		r.holds(rigSlot(n-1, 2800), n-1, 2800)
	})
}

// F14: the engine acknowledges everything; answering that would not end.
func TestQuirkF14NoPingPong(t *testing.T) {
	rigTest(t, 14, func(t *testing.T, r *rig) {
		d := r.fpga(peers.FPGAConfig{})
		r.dial(dgrdma.FPGA(), dgrdma.Config{})
		r.send(100, 3000)
		for i := range 50 {
			d.Write(rigSlot(i, 512), rigPattern(i, 512), 0x100, uint32(i+1))
		}
		r.await(0x100, 50)
		time.Sleep(time.Second)
		before := r.net.TotalStats().Sent
		time.Sleep(time.Minute)
		if after := r.net.TotalStats().Sent; after != before {
			t.Errorf("%d frames in an idle minute", after-before)
		}
		if s := r.conn.Stats(); s.AcksAlone+s.AcksCarried != 0 {
			t.Errorf("%d acknowledgements were sent", s.AcksAlone+s.AcksCarried)
		}
	})
}

// F15: doorbells come as data of 4 bytes without completion, and wake who waits
// for the word.
func TestQuirkF15DoorbellIsData(t *testing.T) {
	rigTest(t, 15, func(t *testing.T, r *rig) {
		d := r.fpga(peers.FPGAConfig{Coalesce: time.Millisecond})
		r.dial(dgrdma.FPGA(), dgrdma.Config{})
		for i := range uint32(20) {
			addr := 0x200 + 4*(i%4)
			woken := make(chan error)
			go func() { woken <- r.region.WaitFor(context.Background(), addr, i+1) }()
			time.Sleep(time.Millisecond)
			d.Write(rigSlot(int(i), 100), rigPattern(int(i), 100), 0x100, i+1)
			d.Doorbell(addr, i+1)
			if err := <-woken; err != nil {
				t.Fatal(err)
			}
			// Frames from here on cannot overtake: nothing is lost on this link.
			r.holds(rigSlot(int(i), 100), int(i), 100)
		}
		r.await(0x100, 20)
		if s := r.conn.Stats(); s.Completions != 40 || s.Open != 0 {
			t.Errorf("%d transactions completed, %d open", s.Completions, s.Open)
		}
	})
}

// F16: of some lengths the engine with the widest bus announces one message too
// many. They are completed when a younger transaction shows that nothing is
// missing.
func TestQuirkF16AnnouncesTooMany(t *testing.T) {
	for _, words := range []int{720, 721, 722, 723, 1081, 1082} {
		for _, reorder := range []float64{0, 0.5} {
			t.Run(fmt.Sprintf("%d words/reorder %v", words, reorder), func(t *testing.T) {
				rigTest(t, uint64(words), func(t *testing.T, r *rig) {
					d := r.fpga(peers.FPGAConfig{Bus: 16, MTU: 1500})
					r.link(simnet.Link{}, simnet.Link{Reorder: reorder, ReorderBy: 300 * time.Microsecond})
					var wire rigFrames
					if reorder == 0 {
						r.link(simnet.Link{}, simnet.Link{Script: wire.script})
					}
					r.dial(dgrdma.FPGA(), dgrdma.Config{})
					const n = 20
					for i := range n {
						d.Write(rigSlot(i, 4*words), rigPattern(i, 4*words), 0x200+4*uint32(i), uint32(i+1))
					}
					d.Doorbell(0x100, 1)
					time.Sleep(10 * time.Millisecond)
					for i := range n {
						if v := r.region.Load32(0x200 + 4*uint32(i)); v != uint32(i+1) {
							t.Fatalf("word of transaction %d is %d", i, v)
						}
						r.holds(rigSlot(i, 4*words), i, 4*words)
					}
					if s := r.conn.Stats(); s.Open != 0 {
						t.Errorf("%d transactions are open", s.Open)
					}
					if reorder == 0 && words%360 <= 2 && words%360 > 0 && int(wire.seen().msgs[0].Count) != words/360+1 {
						t.Errorf("%d messages announced: the double lacks the defect", wire.seen().msgs[0].Count)
					}
				})
			})
		}
	}
}

// F16: a transaction that really misses a message is not taken for one that
// announced too many, however the rest arrives.
func TestQuirkF16NotAHole(t *testing.T) {
	for lost := range 6 {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			rigTest(t, uint64(lost), func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{Bus: 16})
				r.link(simnet.Link{}, simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
					if i == lost {
						return simnet.Drop()
					}
					return simnet.Deliver()
				}})
				r.dial(dgrdma.FPGA(), dgrdma.Config{})
				for i := range 3 {
					d.Write(rigSlot(i, 2800), rigPattern(i, 2800), 0x200+4*uint32(i), 1)
				}
				for range 10 {
					d.Doorbell(0x100, 1)
				}
				time.Sleep(time.Second)
				for i := range 3 {
					if v := r.region.Load32(0x200 + 4*uint32(i)); (v == 1) != (i != lost/2) {
						t.Errorf("frame %d lost, word of transaction %d is %d", lost, i, v)
					}
				}
			})
		})
	}
}

// F17: its MTU counts the link header; set to the link's or 14 more, its frames
// are taken.
func TestQuirkF17FrameSize(t *testing.T) {
	for _, mtu := range []int{1500, 1514} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			rigTest(t, uint64(mtu), func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{MTU: mtu, Coalesce: 500 * time.Microsecond})
				var wire rigFrames
				r.link(simnet.Link{}, simnet.Link{Script: wire.script})
				r.dial(dgrdma.FPGA(), dgrdma.Config{})
				for i := range 10 {
					d.Write(rigSlot(i, 16384), rigPattern(i, 16384), 0x100, uint32(i+1))
				}
				r.await(0x100, 10)
				longest := 0
				for i := range 10 {
					r.holds(rigSlot(i, 16384), i, 16384)
				}
				for _, n := range wire.seen().lengths {
					longest = max(longest, n)
				}
				if longest > mtu-14 || longest < mtu-14-8 {
					t.Errorf("longest frame %d", longest)
				}
			})
		})
	}
}

// F19: two links taken in turn: frames arrive out of order all the time, in
// both directions.
func TestQuirkF19TwoLinks(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rigTest(t, seed, func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{First: 65530})
				slow := func(i int, _ []byte) simnet.Verdict {
					return simnet.Delay(time.Duration(i%2) * 400 * time.Microsecond)
				}
				r.link(simnet.Link{Script: slow, Jitter: 100 * time.Microsecond}, simnet.Link{Script: slow, Jitter: 100 * time.Microsecond})
				r.dial(fpgaFrom(65530), dgrdma.Config{})
				for i := range 60 {
					d.Write(rigSlot(i, 5000), rigPattern(i, 5000), 0x100+4*uint32(i), uint32(i+1))
				}
				r.send(60, 4000)
				r.completed(true)
				for i := range 60 {
					r.await(0x100+4*uint32(i), uint32(i+1))
					r.holds(rigSlot(i, 5000), i, 5000)
				}
				if s := r.conn.Stats(); s.Completions != 60 || s.Refused[dgrdma.RefusedForeign] != 0 {
					t.Errorf("%+v", s.Counters)
				}
			})
		})
	}
}

// F5, DGRDMA-041: an engine that began anew under our feet uses ids again that
// we know. What it sends then is refused, not taken for copies, until Reset.
func TestQuirkF5EngineRestarts(t *testing.T) {
	rigTest(t, 5, func(t *testing.T, r *rig) {
		d := r.fpga(peers.FPGAConfig{})
		r.dial(dgrdma.FPGA(), dgrdma.Config{})
		for i := range 5 {
			d.Write(0x1000, rigPattern(i, 64), 0x100, uint32(i+1))
		}
		r.await(0x100, 5)
		d.Reset()
		for i := range 5 {
			// Of several frames each, so that they differ from those before.
			d.Write(0x2000, rigPattern(i+70, 3000), 0x104, uint32(i+71))
		}
		time.Sleep(10 * time.Millisecond)
		s := r.conn.Stats()
		if s.RefusedBy(dgrdma.RefusedForeign) == 0 || r.happened(dgrdma.FrameRefused) == 0 {
			t.Errorf("refused: %v", s.Refused)
		}
		if err := r.conn.Reset(0); err != nil {
			t.Fatal(err)
		}
		d.Reset()
		d.Write(0x1000, rigPattern(78, 64), 0x104, 78)
		r.await(0x104, 78)
		r.holds(0x1000, 78, 64)
	})
}
