package tests

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/endpoint"
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
		tx := &endpoint.Transaction{
			Segments:   []endpoint.Segment{{Addr: rigSlot(s, size), Bytes: rigPattern(s, size)}},
			Completion: endpoint.Word(rigFlag, uint32(s+1)),
		}
		tx.Done = func(tx *endpoint.Transaction, err error) {
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
	for _, longer := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
		for _, n := range []int{1, 20} {
			for _, size := range []int{100, 1300, 4000, 20000} {
				rigTest(t, 1, func(t *testing.T, r *rig) {
					r.fpga(peers.FPGAConfig{First: 1})
					r.dial(endpoint.FPGA(), endpoint.Config{})
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
