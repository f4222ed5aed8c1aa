package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// keepSending keeps n transactions of that size under way for that time, and returns how many
// frames left meanwhile, and how many of them again.
func (r *rig) keepSending(n, size int, duration time.Duration) (sent, again uint64) {
	r.t.Helper()
	before := r.ep.Stats().Counters
	end, over := time.Now().Add(duration), make(chan error, n)
	for s := range n {
		r.txns++
		tx := &dgrdma.Transaction{
			Segments:   []dgrdma.Segment{{Addr: rigSlot(s, size), Bytes: rigPattern(s, size)}},
			Completion: dgrdma.Word(rigFlag, uint32(s+1)),
		}
		tx.Done = func(tx *dgrdma.Transaction, err error) {
			if err == nil && time.Now().Before(end) {
				if err = r.conn.Post(tx); err == nil {
					return
				}
			}
			over <- err
		}
		if err := r.conn.Post(tx); err != nil {
			r.t.Fatal(err)
		}
	}
	for range n {
		if err := <-over; err != nil {
			r.t.Fatal(err)
		}
	}
	c := r.ep.Stats().Counters
	return c.FramesSent - before.FramesSent, c.RetransmitsFast + c.RetransmitsTimed - before.RetransmitsFast - before.RetransmitsTimed
}

// F2: a path to a card becomes longer once, and loses nothing. What waits at the card for a frame
// that is sent again is no measure of the path. What leaves again for nothing ends, mostly at once.
func TestQuirkF2PathBecomesLonger(t *testing.T) {
	all := []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond}
	for _, longer := range fixture.Fewer(all, all[:1]) {
		for _, n := range []int{1, 20} {
			for _, size := range fixture.Fewer([]int{100, 1300, 4000, 20000}, []int{100, 20000}) {
				rigTest(t, 1, func(t *testing.T, r *rig) {
					r.fpga(peers.FPGAConfig{First: 1})
					r.dial(dgrdma.FPGA(), dgrdma.Config{})
					r.heard()
					r.keepSending(n, size, time.Second/5)
					link := simnet.Link{Latency: longer / 2}
					r.net.Link(rigOurs, rigPeer, link)
					r.net.Link(rigPeer, rigOurs, link)
					r.keepSending(n, size, 3*time.Second)
					if sent, again := r.keepSending(n, size, time.Second); again > sent/10 {
						t.Errorf("%v, %d of %d bytes, 3 s later: %d of %d frames left again", longer, n, size, again, sent)
					}
				})
			}
		}
	}
}

// F2: with these windows, loads and paths copies were acknowledged as if they were as fast as the
// path had been, and everything left twice, for ever.
func TestQuirkF2StormEnds(t *testing.T) {
	for _, c := range []struct {
		window, every, n, size int
		longer                 time.Duration
	}{
		{32, 8, 1, 20000, 34500 * time.Microsecond}, {8, 8, 20, 20000, 37500 * time.Microsecond}, {32, 1, 20, 20000, 19500 * time.Microsecond},
		{4, 4, 20, 4000, 6500 * time.Microsecond}, {32, 8, 4, 4000, 11500 * time.Microsecond},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			rigTest(t, 1, func(t *testing.T, r *rig) {
				r.fpga(peers.FPGAConfig{First: 1, AckEvery: c.every, Width: c.window})
				r.dial(dgrdma.FPGA(), dgrdma.Config{Window: c.window})
				r.heard()
				r.keepSending(c.n, c.size, time.Second/10)
				link := simnet.Link{Latency: c.longer / 2}
				r.net.Link(rigOurs, rigPeer, link)
				r.net.Link(rigPeer, rigOurs, link)
				r.keepSending(c.n, c.size, 3*time.Second)
				if sent, again := r.keepSending(c.n, c.size, 3*time.Second); again > sent/100 {
					t.Errorf("3 s later: %d of %d frames left again; RTT %v", again, sent, r.conn.Stats().RTT)
				}
			})
		})
	}
}

// keepPosting keeps n transactions of that size under way until the test ends.
func (r *rig) keepPosting(n, size int) {
	r.t.Helper()
	for s := range n {
		tx := &dgrdma.Transaction{
			Segments:   []dgrdma.Segment{{Addr: rigSlot(s, size), Bytes: rigPattern(s, size)}},
			Completion: dgrdma.Word(rigFlag, uint32(s+1)),
			Done: func(tx *dgrdma.Transaction, err error) {
				if err == nil {
					_ = r.conn.Post(tx) // fails when the test ends
				}
			},
		}
		if err := r.conn.Post(tx); err != nil {
			r.t.Fatal(err)
		}
	}
}

// F2, F18: where a timeout delivers one frame, that is not always the empty one that asks what the
// card has.
func TestQuirkF2ProbesStarveNoData(t *testing.T) {
	for _, room := range fixture.Fewer([]int{1, 2}, []int{1}) {
		all := []time.Duration{100 * time.Microsecond, 8 * time.Millisecond, 40 * time.Millisecond, 100 * time.Millisecond}
		for _, longer := range fixture.Fewer(all, all[:1]) {
			for _, every := range fixture.Fewer([]int{1, 8}, []int{8}) {
				t.Run(fmt.Sprintf("room for %d, %v, every %d", room, longer, every), func(t *testing.T) {
					rigTest(t, 1, func(t *testing.T, r *rig) {
						r.fpga(peers.FPGAConfig{First: 1, AckEvery: every})
						r.dial(dgrdma.FPGA(), dgrdma.Config{GiveUp: time.Minute})
						r.heard()
						r.keepSending(20, 4000, time.Second/5)
						link := simnet.Link{Latency: longer / 2, Rate: 1e9}
						r.net.Link(rigPeer, rigOurs, link)
						link.Queue = room
						r.net.Link(rigOurs, rigPeer, link)
						r.keepPosting(20, 4000)
						time.Sleep(20 * time.Second)
						before := r.conn.Stats()
						time.Sleep(20 * time.Second)
						s := r.conn.Stats()
						if done := s.TransactionsDone - before.TransactionsDone; done < 20 {
							t.Errorf("%d transactions in 20 s, of %d frames %d empty; RTT %v", done, s.FramesSent-before.FramesSent, s.Probes-before.Probes, s.RTT)
						}
					})
				})
			}
		}
	}
}

// F18: a card with room for few frames loses some of each window. Nothing stands still for a second,
// with jitter or without.
func TestQuirkF18LittleRoom(t *testing.T) {
	for _, c := range []struct {
		n, room int
		rate    int64
		jitter  time.Duration
	}{
		{4, 2, 1e9, 2810 * time.Microsecond}, {4, 2, 1e9, 0}, {4, 3, 1e9, 2810 * time.Microsecond}, {20, 4, 1e9, 2810 * time.Microsecond},
		{20, 7, 1e9, 2810 * time.Microsecond}, {20, 1, 1e8, 0},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			rigTest(t, 1, func(t *testing.T, r *rig) {
				r.fpga(peers.FPGAConfig{First: 1})
				r.dial(dgrdma.FPGA(), dgrdma.Config{GiveUp: time.Minute})
				r.heard()
				link := simnet.Link{Latency: 135 * time.Microsecond, Jitter: c.jitter, Rate: c.rate}
				r.net.Link(rigPeer, rigOurs, link)
				link.Queue = c.room
				r.net.Link(rigOurs, rigPeer, link)
				r.keepPosting(c.n, 10000)
				for second, before := 0, uint64(0); second < fixture.Fewer(30, 8); second++ {
					time.Sleep(time.Second)
					if now := r.conn.Stats().TransactionsDone; now == before {
						t.Fatalf("no transaction done from second %d on; %+v", second, r.conn.Stats())
					} else {
						before = now
					}
				}
			})
		})
	}
}
