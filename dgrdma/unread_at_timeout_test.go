package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
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

// TestTimeoutsWaitForTheReceiver checks that a frame that is overdue by the clock while the
// receiver is busy is not sent again before the receiver has looked at all that came: its
// acknowledgement may be there.
func TestTimeoutsWaitForTheReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Link{Latency: 50 * time.Microsecond}
		region, _ := NewRegion(1 << 16)
		busy := &slowly{region, 8 * time.Millisecond}
		p := newPair(t, pairConfig{link: link, a: Config{Memory: busy, NoHelp: true}, b: Config{NoHelp: true}})
		defer p.close()
		keepPosting(t, p, 20*time.Millisecond, 1, 100) // it is measured
		for range 40 {
			// The receiver of a is kept by what b writes, and what a wrote is acknowledged
			// concurrently.
			if err := p.toA.Post(write(64, pattern(1, 64), 4096, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(40 * time.Microsecond)
			if err := p.toB.Write(t.Context(), write(64, pattern(2, 3000), 4096, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if c := p.a.Stats().Counters; c.RetransmitsTimed+c.RetransmitsFast > 0 {
			t.Errorf("%d of %d frames left again", c.RetransmitsTimed+c.RetransmitsFast, c.FramesSent)
		}
	})
}

// TestNothingLeavesAgainUnread checks that nothing leaves again while the receiver may have the acknowledgement, and that a connection is
// rarely looked at in that time: thousands of them wait at once.
func TestNothingLeavesAgainUnread(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	r.posts(40)
	r.acknowledges(0) // it is measured
	began := r.now
	r.e.finds(began)
	r.posts(40, 4000)
	looks := 0
	for ; r.now < began.Add(90*time.Millisecond); looks++ {
		if n := r.c.Stats().Counters; n.RetransmitsFast+n.RetransmitsTimed+n.SizeProbes > 0 {
			t.Fatalf("%d frames left again, and %d probes, %v after the receiver fell behind", n.RetransmitsFast+n.RetransmitsTimed, n.SizeProbes, r.now.Sub(began))
		}
		r.waits()
	}
	if looks > 20 {
		t.Errorf("looked %d times", looks)
	}
	r.e.emptied(r.now)
	for i := 0; r.c.Stats().RetransmitsTimed == 0; i++ {
		if i > 5 {
			t.Fatal("not sent again when the receiver has looked at all that came")
		}
		r.waits()
		r.e.emptied(r.now)
	}
}

// TestReceiveProgress checks that the receive progress says until when the receiver has looked at all that
// came.
func TestReceiveProgress(t *testing.T) {
	const ms = ack.Instant(time.Millisecond)
	var a receiveProgress
	at := func(now, want ack.Instant) {
		t.Helper()
		if got := a.until(now); got != want {
			t.Errorf("at %v: until %v, want %v", time.Duration(now), time.Duration(got), time.Duration(want))
		}
	}
	at(5*ms, 5*ms)
	a.finds(10 * ms)
	at(12*ms, 10*ms)
	at(9*ms, 9*ms) // by a clock that was read before
	a.finds(13 * ms)
	at(14*ms, 10*ms) // more came before than it has looked at
	a.looks()
	at(15*ms, 10*ms)
	at(10*ms+ack.Instant(mostBehind), 10*ms)
	at(11*ms+ack.Instant(mostBehind), 11*ms)
	a.emptied(13 * ms)
	at(16*ms, 13*ms) // it sends, before it looks again
	a.looks()
	at(17*ms, 17*ms)
	a.finds(20 * ms)
	at(21*ms, 20*ms)
	a.emptied(0) // nothing came while it waited
	at(22*ms, 22*ms)

	f := newFeed(t, Config{})
	f.native()
	f.give(f.encode(1, 2, bare(life, 1, 1)))
	if now := f.e.now(); f.e.until(now) == now {
		t.Error("nothing more was there, by who has not looked")
	}
	f.give(nil)
	if now := f.e.now(); f.e.until(now) != now {
		t.Error("who found nothing is behind")
	}
}

// TestReceiveProgressAfterAFullBatch checks that a receiver that took a whole batch, the last there was,
// and waits for more does not lag: what is lost then is sent again as soon as after one datagram
// less.
func TestReceiveProgressAfterAFullBatch(t *testing.T) {
	took := map[int]time.Duration{}
	for _, came := range []int{fullBatch - 1, fullBatch} {
		synctest.Test(t, func(t *testing.T) {
			link := simnet.Link{Latency: 50 * time.Microsecond}
			cfg := Config{MTU: 1488, NoHelp: true, Congestion: CongestionAdaptive}
			p := newPair(t, pairConfig{link: link, a: cfg, b: cfg})
			defer p.close()
			keepPosting(t, p, 20*time.Millisecond, 1, 3000) // it is measured
			before := p.a.Stats().FramesReceived
			if err := p.toA.Post(write(0, pattern(1, came*1424+100), 1<<19, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(60 * time.Microsecond)
			if got := p.a.Stats().FramesReceived - before; got != uint64(came) {
				t.Fatalf("%d frames came, want %d", got, came)
			}
			time.Sleep(5 * time.Millisecond)
			p.net.Link(addrA, addrB, simnet.Link{Latency: link.Latency, Loss: 1})
			done := make(chan error, 1)
			x := write(64, pattern(2, 3000), 4096, 1)
			x.Done = func(_ *Transaction, err error) { done <- err }
			began := time.Now()
			if err := p.toB.Post(x); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Microsecond)
			p.net.Link(addrA, addrB, link)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			took[came] = time.Since(began)
		})
	}
	if took[fullBatch] > 2*took[fullBatch-1] {
		t.Errorf("sent again and done after %v", took)
	}
}
