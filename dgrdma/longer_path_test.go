package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/transport/simnet"
)

// keepPosting keeps that many transactions of size bytes under way for that time, and returns how
// many frames left in it, and how many of them again.
func keepPosting(t *testing.T, p *pair, duration time.Duration, depth, size int) (sent, again uint64) {
	t.Helper()
	before := p.a.Stats().Counters
	end, over := time.Now().Add(duration), make(chan error, depth)
	data := pattern(3, size)
	for range depth {
		x := write(0, data, uint32(size+64)&^63, 1)
		x.Done = func(x *Transaction, err error) {
			if err == nil && time.Now().Before(end) {
				err = p.toB.Post(x)
				if err == nil {
					return
				}
			}
			over <- err
		}
		if err := p.toB.Post(x); err != nil {
			t.Fatal(err)
		}
	}
	for range depth {
		if err := <-over; err != nil {
			t.Fatal(err)
		}
	}
	c := p.a.Stats().Counters
	return c.FramesSent - before.FramesSent, c.RetransmitsFast + c.RetransmitsTimed - before.RetransmitsFast - before.RetransmitsTimed
}

// TestPathBecomesLonger checks that few frames leave again for nothing, and afterwards none, when a
// path of 1 Gbit/s becomes longer once, and loses nothing: a timeout that turns out to be too short
// is not relied on any more, and the acknowledgement of its probe does not make a whole window seem
// lost.
func TestPathBecomesLonger(t *testing.T) {
	all := []time.Duration{5 * time.Millisecond, time.Millisecond, 50 * time.Millisecond}
	for _, longer := range fewer(all, all[:1]) {
		windows := []struct{ window, depth, size int }{{32, 4, 1 << 18}, {3, 1, 4200}, {1024, 4, 1 << 18}}
		for _, w := range fewer(windows, windows[:2]) {
			synctest.Test(t, func(t *testing.T) {
				link := simnet.Link{Latency: 50 * time.Microsecond, Rate: 1e9}
				cfg := Config{MTU: 1488, Window: w.window}
				p := newPair(t, pairConfig{link: link, a: cfg, b: cfg})
				defer p.close()
				if _, again := keepPosting(t, p, 200*time.Millisecond, w.depth, w.size); again > 0 {
					t.Fatalf("%d frames left again on a path that does not change", again)
				}
				link.Latency = longer / 2
				p.net.Link(addrA, addrB, link)
				p.net.Link(addrB, addrA, link)
				for i, most := range []uint64{24, 0} {
					if sent, again := keepPosting(t, p, fewer(time.Second, 400*time.Millisecond), w.depth, w.size); again > most {
						t.Errorf("window %d, from 0.1 ms to %v, second %d: %d of %d frames left again", w.window, longer, i, again, sent)
					}
				}
			})
		}
	}
}

// TestPathBecomesLongerForBursts checks that frames that come together and are acknowledged
// together leave later after a timeout that was too short. Frames of one transaction come together,
// as with segments that the kernel joined, and are acknowledged together with the copies of the
// oldest and the newest. What was sent once is no measure then, and the copies neither: the next
// frames are, which leave with a longer timeout (RFC 6298 section 5.7).
func TestPathBecomesLongerForBursts(t *testing.T) {
	for _, frames := range []int{3, 40} {
		synctest.Test(t, func(t *testing.T) {
			link := simnet.Link{Latency: 50 * time.Microsecond}
			cfg := Config{MTU: 1488}
			p := newPair(t, pairConfig{link: link, a: cfg, b: cfg})
			defer p.close()
			keepPosting(t, p, 20*time.Millisecond, 1, frames*1300)
			link.Latency = 2500 * time.Microsecond
			p.net.Link(addrA, addrB, link)
			p.net.Link(addrB, addrA, link)
			for i, most := range []uint64{24, 0} {
				if sent, again := keepPosting(t, p, 5*time.Second, 1, frames*1300); again > most {
					t.Errorf("%d frames, from 0.1 to 5 ms, 5 s number %d: %d of %d left again", frames, i, again, sent)
				}
			}
		})
	}
}

// TestPathBecomesLongerForFew checks that a timeout copies all of one or two frames that are under
// way, and that the next ones know the longer path.
func TestPathBecomesLongerForFew(t *testing.T) {
	for _, longer := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		for _, size := range []int{1300, 2600} {
			synctest.Test(t, func(t *testing.T) {
				link := simnet.Link{Latency: 50 * time.Microsecond, Rate: 1e9}
				cfg := Config{MTU: 1488}
				p := newPair(t, pairConfig{link: link, a: cfg, b: cfg})
				defer p.close()
				keepPosting(t, p, 200*time.Millisecond, 1, size)
				link.Latency = longer / 2
				p.net.Link(addrA, addrB, link)
				p.net.Link(addrB, addrA, link)
				for i, most := range []uint64{24, 0, 0} {
					if sent, again := keepPosting(t, p, time.Second, 1, size); again > most {
						t.Errorf("size %d, from 0.1 ms to %v, second %d: %d of %d frames left again", size, longer, i, again, sent)
					}
				}
			})
		}
	}
}

// TestPathBecomesLongerInFlight checks that what was under way has a round trip half of the old
// path when it becomes longer, and that the next ones are copied when the copy takes as long as
// they took before.
func TestPathBecomesLongerInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := simnet.Link{Latency: 2500 * time.Microsecond, Rate: 1e9}
		cfg := Config{MTU: 1488, Congestion: CongestionAdaptive}
		p := newPair(t, pairConfig{link: link, a: cfg, b: cfg})
		defer p.close()
		time.AfterFunc(time.Second, func() {
			link.Latency = 7500 * time.Microsecond
			p.net.Link(addrA, addrB, link)
			p.net.Link(addrB, addrA, link)
		})
		keepPosting(t, p, 5*time.Second, 1, 2600)
		if sent, again := keepPosting(t, p, 10*time.Second, 1, 2600); again > 0 || p.toB.Stats().Window < 1<<16 {
			t.Errorf("%d of %d frames left again; window %d", again, sent, p.toB.Stats().Window)
		}
	})
}

// TestOneAtATimeThroughLoss checks that one transaction after the other waits for timeouts alone,
// and no longer than the path and the losses make it.
func TestOneAtATimeThroughLoss(t *testing.T) {
	for _, c := range []struct {
		way time.Duration
		min float64 // transactions a second: with waits that grow with losses half of it
	}{{50 * time.Microsecond, 85}, {2500 * time.Microsecond, 45}} {
		done := 0
		const runs, lasts = 6, 12 * time.Second
		for seed := range runs {
			synctest.Test(t, func(t *testing.T) {
				link := simnet.Link{Latency: c.way, Rate: 1e8}
				cfg := Config{MTU: 1488, GiveUp: 30 * time.Second}
				p := newPair(t, pairConfig{link: link, a: cfg, b: cfg})
				defer p.close()
				keepPosting(t, p, time.Second/2+time.Duration(seed)*time.Millisecond, 1, 1300)
				link.Loss = 0.2
				p.net.Link(addrA, addrB, link)
				p.net.Link(addrB, addrA, link)
				for end := time.Now().Add(lasts); time.Now().Before(end); done++ {
					if err := p.toB.Write(t.Context(), write(64, pattern(1, 1300), 0, 1)); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
		if rate := float64(done) / runs / lasts.Seconds(); rate < c.min {
			t.Errorf("way %v: %.1f a second", c.way, rate)
		} else {
			t.Logf("way %v: %.1f a second", c.way, rate)
		}
	}
}

// TestSmallOnesNotSentAgain checks that small transactions one after the other in both directions
// are not sent again on a path that loses nothing: the peer may hold the acknowledgement of one
// frame back until a second one comes, and has it then.
func TestSmallOnesNotSentAgain(t *testing.T) {
	for _, every := range [][2]time.Duration{
		{time.Millisecond, 3 * time.Millisecond}, {1500 * time.Microsecond, 10 * time.Millisecond}, {time.Millisecond, 1900 * time.Microsecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, pairConfig{link: simnet.Link{Latency: 50 * time.Microsecond}})
			defer p.close()
			keepPosting(t, p, 20*time.Millisecond, 1, 100) // it is measured
			over := make(chan bool)
			for i, c := range []*Conn{p.toB, p.toA} {
				go func() {
					for range 2 * time.Second / every[i] {
						time.Sleep(every[i])
						if err := c.Post(write(0, pattern(1, 64), 4096, 1)); err != nil {
							t.Error(err)
						}
					}
					over <- true
				}()
			}
			<-over
			<-over
			time.Sleep(time.Second)
			for _, e := range []*Endpoint{p.a, p.b} {
				if c := e.Stats().Counters; c.RetransmitsFast+c.RetransmitsTimed > 0 {
					t.Errorf("every %v: %d of %d frames left again", every, c.RetransmitsFast+c.RetransmitsTimed, c.FramesSent)
				}
			}
		})
	}
}
