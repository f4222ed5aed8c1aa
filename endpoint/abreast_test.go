package endpoint

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// slowly is memory whose owner takes his time over each completion word.
type slowly struct {
	*Region
	takes time.Duration
}

func (s *slowly) Complete(src frame.EndpointID, m *frame.Message) {
	time.Sleep(s.takes)
	s.Region.Complete(src, m)
}

// TestTimeoutsWaitForTheReceiver: what is overdue by the clock while the receiver is busy may
// be acknowledged by what it has not looked at: that is not sent again. But what is lost is, a
// while later, though the receiver is never abreast.
func TestTimeoutsWaitForTheReceiver(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			link := simnet.Link{Latency: 50 * time.Microsecond}
			region, _ := NewRegion(1 << 16)
			busy := &slowly{region, 8 * time.Millisecond}
			p := newPair(t, pairConfig{link: link, a: Config{Memory: busy, NoHelp: true}, b: Config{NoHelp: true}})
			defer p.close()
			keepPosting(t, p, 20*time.Millisecond, 1, 100) // it is measured
			for range 40 {
				// The receiver of a is kept by what b writes, and what a writes is acknowledged
				// meanwhile.
				if err := p.toA.Post(write(64, pattern(1, 64), 4096, 1)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Microsecond)
				if lost {
					p.net.Link(addrA, addrB, simnet.Link{Latency: link.Latency, Loss: 1})
				}
				done := make(chan error, 1)
				x := write(64, pattern(2, 3000), 4096, 1)
				x.Done = func(_ *Transaction, err error) { done <- err }
				if err := p.toB.Post(x); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				if lost {
					p.net.Link(addrA, addrB, link)
				}
				for busyUntil := time.Now().Add(40 * time.Millisecond); lost && time.Now().Before(busyUntil); {
					if err := p.toA.Post(write(64, pattern(1, 64), 4096, 1)); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Millisecond)
				}
				if lost && len(done) == 0 && p.a.Stats().RetransmitsTimed == 0 {
					t.Fatal("what is lost is not sent again while the receiver is busy")
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if lost {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			if c := p.a.Stats().Counters; c.RetransmitsTimed+c.RetransmitsFast > 0 {
				t.Errorf("%d of %d frames left again", c.RetransmitsTimed+c.RetransmitsFast, c.FramesSent)
			}
		})
	}
}
