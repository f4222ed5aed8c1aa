package tests

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Observation V3 (docs/peers.md): the driver's ports give buffers back by
// requests that they post again and again. One whose acknowledgement was lost is
// sent again with the header of a later post. It is acknowledged, or the driver
// ends at its 256th frame after that.
func TestPostedAgainIsAcknowledged(t *testing.T) {
	const buffers, size = 2, 2048
	messages := fixture.Fewer(800, 200)
	for _, legacy := range []bool{false, true} {
		for _, udp := range []bool{false, true} {
			for _, loss := range []float64{0.01, 0.05} {
				t.Run(fmt.Sprintf("legacy %v/udp %v/loss %v", legacy, udp, loss), func(t *testing.T) {
					rigTest(t, uint64(1000*loss), func(t *testing.T, r *rig) {
						profile, start := dgrdma.OpenCPI(udp), r.dg1
						if legacy {
							profile, start = dgrdma.Legacy(udp), r.legacy
						}
						d := start(peers.DG1Config{UDP: udp})
						r.link(simnet.Link{Loss: loss}, simnet.Link{Loss: loss})
						r.dial(profile, dgrdma.Config{GiveUp: time.Minute})
						returns := make([]*peers.Request, buffers)
						for i := range returns {
							returns[i] = &peers.Request{FlagAddr: 0x100 + 4*uint32(i)}
						}
						consume := func(taken int) int {
							for _, c := range d.Completions()[taken:] {
								back := returns[c.Addr/4]
								d.Fill(back, func() { back.FlagValue++ })
								d.PostRequest(back)
								taken++
							}
							return taken
						}
						taken, failed := 0, make(chan error, 1)
						for i := range messages {
							b := i % buffers
							time.Sleep(time.Duration(i%4) * 35 * time.Millisecond) // now and then an acknowledgement travels alone
							for began := time.Now(); r.region.Load32(0x100+4*uint32(b)) != uint32(i/buffers); {
								taken = consume(taken)
								time.Sleep(500 * time.Microsecond)
								if time.Since(began) > time.Minute {
									t.Fatalf("message %d: the buffer is not given back: %+v", i, r.conn.Stats())
								}
							}
							if err := r.conn.Post(&dgrdma.Transaction{
								Segments:   []dgrdma.Segment{{Addr: rigSlot(b, size), Bytes: rigPattern(i, size)}},
								Completion: dgrdma.Word(4*uint32(b), uint32(i+1)),
								Done: func(_ *dgrdma.Transaction, err error) {
									if err != nil {
										select {
										case failed <- err:
										default: // one is enough
										}
									}
								},
							}); err != nil {
								t.Fatal(err)
							}
						}
						for taken < messages {
							taken = consume(taken)
							time.Sleep(time.Millisecond)
						}
						dg1Until(r, func() bool { return d.Outstanding() == 0 })
						select {
						case err := <-failed:
							t.Error(err)
						default:
						}
						if n := r.happened(dgrdma.PeerRestarted); n > 0 || d.Counters().Resent == 0 {
							t.Errorf("%d restarts suspected, %d frames sent again", n, d.Counters().Resent)
						}
					})
				})
			}
		}
	}
}

// Observation V3: a producer fills a buffer again before it posts it, and a frame
// that is sent again in between has the old header and the new data.
func TestFilledAgainIsAcknowledged(t *testing.T) {
	rigTest(t, 1, func(t *testing.T, r *rig) {
		d := r.dg1(peers.DG1Config{})
		r.link(simnet.Link{Script: func(i int, _ []byte) simnet.Verdict {
			if i == 0 {
				return simnet.Drop() // the first acknowledgement
			}
			return simnet.Deliver()
		}}, simnet.Link{})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		data := rigPattern(1, 64)
		q := &peers.Request{FlagAddr: 0x100, FlagValue: 1, Parts: []peers.Part{{Addr: 0x1000, Data: data}}}
		d.PostRequest(q)
		r.await(0x100, 1)
		d.Fill(q, func() { copy(data, rigPattern(2, 64)) })
		time.Sleep(time.Second)
		if d.Outstanding() != 0 || d.Counters().Resent == 0 {
			t.Errorf("%d frames wait, %d were sent again", d.Outstanding(), d.Counters().Resent)
		}
		r.holds(0x1000, 1, 64) // and is not written a second time
	})
}

// rigLife is one life of a peer: frames as it sends them, by hand.
type rigLife struct {
	r    *rig
	next frame.Seq
	txn  uint32
}

// post sends a transaction of one message under the next id.
func (l *rigLife) post(addr, flagAddr, flag uint32, data []byte) {
	l.next++
	l.txn++
	l.again(addr, flagAddr, flag, data)
}

func (l *rigLife) again(addr, flagAddr, flag uint32, data []byte) {
	quirkRawTo(l.r.t, l.r.there, rigOurs, frame.Header{Dst: 1, Src: 2, Seq: l.next}, []quirkMessage{{
		frame.Message{Txn: l.txn, CompletionAddr: flagAddr, CompletionValue: flag, Count: 1, Index: 1, Addr: addr}, data,
	}})
}

// acked reports whether an acknowledgement of that id was sent since before.
func (f *rigFrames) acked(before int, q frame.Seq) bool {
	for _, h := range f.seen().headers[before:] {
		if d := q.Diff(h.AckStart); d >= 0 && d < int(h.AckCount) {
			return true
		}
	}
	return false
}

// Observation V4 (docs/peers.md): a peer that starts again and sends the like is
// not told that it arrived. It is refused, which is said, and after Reset taken.
func TestRestartWithTheLike(t *testing.T) {
	const last7 = 0x02000000 // the least of the bits that a tag once lost
	for _, c := range []struct {
		name    string
		profile dgrdma.Profile
		first   int           // frames of the first life
		pause   time.Duration // from its first frame on
		flag    uint32        // added to the flags of the second
		txn     uint32        // skipped by it
		before  uint32        // and by the first
	}{
		{"same frames later", dgrdma.OpenCPI(false), 3, 3 * time.Second, 0, 0, 0},
		{"same frames later/legacy", dgrdma.Legacy(false), 3, 3 * time.Second, 0, 0, 0},
		{"same frames later/fpga", dgrdma.FPGA(), 3, 3 * time.Second, 0, 0, 0},
		{"other opcode at once", dgrdma.OpenCPI(false), 3, 10 * time.Millisecond, last7, 0, 0},
		{"other opcode at once/opencpi2", dgrdma.OpenCPI2(), 3, 10 * time.Millisecond, last7, 0, 0},
		{"other transaction later", dgrdma.OpenCPI(false), 3, 3 * time.Second, 0, 1, 0},
		{"older transaction at once", dgrdma.OpenCPI(false), 3, 10 * time.Millisecond, 0, 0, 10},
		{"older transaction at once/legacy", dgrdma.Legacy(false), 3, 10 * time.Millisecond, 0, 0, 10},
		{"256 behind", dgrdma.OpenCPI(false), 257, 3 * time.Second, 0, 0, 0},
		{"far behind", dgrdma.OpenCPI(false), 5000, 30 * time.Second, 0, 0, 0},
		{"far behind/legacy", dgrdma.Legacy(false), 5000, 30 * time.Second, 0, 0, 0},
		{"all of the first 256", dgrdma.OpenCPI(false), 255, 3 * time.Second, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			rigTest(t, 4, func(t *testing.T, r *rig) {
				var wire rigFrames
				r.link(simnet.Link{Script: wire.script}, simnet.Link{})
				r.dial(c.profile, dgrdma.Config{})
				began := time.Now()
				one := rigLife{r: r, txn: c.before}
				for i := range c.first {
					one.post(0x1000, 0x100, uint32(i+1)|1, rigPattern(i, 64))
					time.Sleep(2 * time.Microsecond)
				}
				r.await(0x100, uint32(c.first)|1)
				time.Sleep(c.pause - time.Since(began))
				r.region.Store32(0x100, 0)
				before := len(wire.seen().headers)
				two := rigLife{r: r, txn: c.txn}
				n := min(c.first, 200)
				for i := range n {
					two.post(0x1000, 0x100, uint32(i+1)|1|c.flag, rigPattern(i+1000, 64))
				}
				time.Sleep(time.Second)
				for q := range frame.Seq(n) {
					if wire.acked(before, q+1) {
						t.Fatalf("frame %d of %d of the second life was acknowledged", q+1, n)
					}
				}
				if r.region.Load32(0x100) != 0 || r.happened(dgrdma.PeerRestarted) != 1 {
					t.Errorf("word %#x, %d restarts suspected", r.region.Load32(0x100), r.happened(dgrdma.PeerRestarted))
				}
				if err := r.conn.Reset(0); err != nil {
					t.Fatal(err)
				}
				again := rigLife{r: r, txn: c.txn}
				for i := range n {
					again.post(0x1000, 0x100, uint32(i+1)|1|c.flag, rigPattern(i+1000, 64))
				}
				r.await(0x100, uint32(n)|1|c.flag)
				r.holds(0x1000, n-1+1000, 64)
			})
		})
	}
}

// Observation V4: ids of the first life that had no messages, and would be new, are as
// old as those around them.
func TestRestartUnderIDsWithoutMessages(t *testing.T) {
	rigTest(t, 6, func(t *testing.T, r *rig) {
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		one := rigLife{r: r}
		for i := range 300 {
			if one.next%3 == 1 {
				one.next++
				quirkRawTo(t, r.there, rigOurs, frame.Header{Dst: 1, Src: 2, Seq: one.next}, nil)
			}
			one.post(0x1000, 0x100, uint32(i+1), rigPattern(i, 64))
			time.Sleep(time.Microsecond)
		}
		r.await(0x100, 300)
		two := rigLife{r: r}
		for i := range 20 {
			two.post(0x2000, 0x104, uint32(i+1), rigPattern(i, 64))
		}
		time.Sleep(time.Second)
		if got := r.region.Load32(0x104); got != 0 {
			t.Errorf("frame %d of the second life was taken, and others were not", got)
		}
	})
}

// Observations V3 and V4: in the midst of a life a frame may come again after an
// outage, and what the network held back is no sign of a restart.
func TestNoRestartAfterAnOutage(t *testing.T) {
	rigTest(t, 5, func(t *testing.T, r *rig) {
		var wire rigFrames
		r.link(simnet.Link{Script: wire.script}, simnet.Link{})
		r.dial(dgrdma.OpenCPI(false), dgrdma.Config{})
		life := rigLife{r: r}
		for i := range 400 {
			life.post(0x1000, 0x100, uint32(i+1), rigPattern(i, 64))
		}
		r.await(0x100, 400)
		time.Sleep(20 * time.Second)
		before := len(wire.seen().headers)
		life.again(0x1000, 0x100, 400, rigPattern(399, 64))
		time.Sleep(10 * time.Millisecond)
		if !wire.acked(before, 400) {
			t.Error("a frame that came again after an outage was not acknowledged")
		}
		life.post(0x1000, 0x100, 401, rigPattern(400, 64))
		held := rigLife{r: r, next: 9, txn: 9}
		held.post(0x1000, 0x100, 10, rigPattern(9, 64))
		time.Sleep(10 * time.Millisecond)
		if n := r.happened(dgrdma.PeerRestarted); n != 0 {
			t.Errorf("%d restarts suspected", n)
		}
		if got := binary.LittleEndian.Uint32(r.region.Bytes()[0x100:]); got != 401 {
			t.Errorf("word is %d", got)
		}
	})
}
