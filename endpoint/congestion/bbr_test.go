package congestion

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

const ms = time.Millisecond

// eachPath runs a test on paths of 10 and some of 100 Mbit/s, 2 to 300 ms, with queues of a quarter to four of what the path holds.
func eachPath(t *testing.T, losses []float64, test func(t *testing.T, b *bottleneck, rtt time.Duration, queue float64)) {
	for _, rate := range []float64{10e6, 100e6} {
		for _, rtt := range []time.Duration{2 * ms, 20 * ms, 100 * ms, 300 * ms} {
			for _, queue := range []float64{.25, 1, 4} {
				for _, loss := range losses {
					if rate > 10e6 && (loss > .01 || queue == 4) {
						continue // as with 10 Mbit/s, and ten times as many frames
					}
					t.Run(fmt.Sprintf("%.0fM %v queue %v loss %v", rate/1e6, rtt, queue, loss), func(t *testing.T) {
						b := newBottleneck(1, rate, max(queue*rate/8*rtt.Seconds(), 3000))
						b.loss = loss
						test(t, b, rtt, queue)
					})
				}
			}
		}
	}
}

// TestAlone checks what a flow carries that has a path for itself, what it drops at the queue, and how full the queue stands.
func TestAlone(t *testing.T) {
	eachPath(t, []float64{0, .01, .05}, func(t *testing.T, b *bottleneck, rtt time.Duration, queue float64) {
		f := b.flow(NewBBR(testMTU, 7), rtt, 0)
		b.run(max(5*time.Second, 30*rtt))
		carried := b.rates(5 * time.Second)[0] / 8 / b.rate
		dropped := float64(b.dropped) / float64(b.offered)
		b.delays = nil
		b.run(time.Duration(b.now) + 5*time.Second)
		// A path of 2 ms and 10 Mbit/s holds less than two frames, and four are always in flight.
		held := b.rate * rtt.Seconds() / testMTU
		least, most := .935-b.loss, .04
		if b.loss > .01 && queue < 1 {
			least = .6 // the queue is too short to tell its losses from those of the path
		}
		if held < 8 {
			most = .11
		}
		if carried < least || dropped > most {
			t.Errorf("%.3f of the path carried, need %.3f; %.3f dropped, may be %.3f: %v", carried, least, dropped, most, f.ctl)
		}
		if standing := quantile(b.delays, .95); queue == 4 && b.loss == 0 && held >= 8 && standing > rtt*5/4 {
			t.Errorf("frames wait %v in the queue, round trip %v: %v", standing, rtt, f.ctl)
		}
	})
}

// TestFirstMegabyte checks that it takes no longer than with CUBIC, and that little of it is dropped at the queue.
func TestFirstMegabyte(t *testing.T) {
	eachPath(t, []float64{0, .01}, func(t *testing.T, b *bottleneck, rtt time.Duration, queue float64) {
		rival := newBottleneck(1, b.rate*8, b.queue)
		rival.loss = b.loss
		took := func(b *bottleneck, ctl ack.Controller) time.Duration {
			f := b.flow(ctl, rtt, 0)
			f.left = 1e6
			b.run(time.Minute)
			return time.Duration(f.done)
		}
		ours, cubic := took(b, NewBBR(testMTU, 9)), took(rival, newCubic())
		most := cubic*11/10 + 10*ms
		if queue >= 1 && b.loss == 0 {
			most = cubic*21/20 + 2*ms
		}
		if ours == 0 || ours > most {
			t.Errorf("took %v, cubic %v", ours, cubic)
		}
		if dropped := float64(b.dropped) / float64(b.offered); dropped > .15 {
			t.Errorf("%.3f dropped", dropped)
		}
	})
}

// TestBusyHost checks that a flow whose host gives it a processor only now and then uses the path all the same.
func TestBusyHost(t *testing.T) {
	for _, rtt := range []time.Duration{20 * ms, 100 * ms} {
		for _, every := range []time.Duration{2 * ms, 5 * ms, 10 * ms} {
			b := newBottleneck(1, 100e6, 100e6/8*rtt.Seconds())
			f := b.flow(NewBBR(testMTU, 7), rtt, 0)
			f.ackEvery, f.busy = every, true
			b.run(3 * time.Second)
			if r, dropped := b.rates(3 * time.Second)[0], float64(b.dropped)/float64(b.offered); r < .9*100e6 || dropped > .03 {
				t.Errorf("round trip %v, a processor every %v: %.1f Mbit/s of 100, %.3f dropped: %v", rtt, every, r/1e6, dropped, f.ctl)
			}
		}
	}
}

// share runs flows on 20 Mbit/s with a queue of so many round trips of 40 ms, begun so long one after the other, and returns what each gets
// of it in the 30 s from half a minute after the last one began.
func share(seed uint64, queue float64, every time.Duration, flows ...*flow) []float64 {
	b := newBottleneck(seed, 20e6, queue*20e6/8*.04)
	for i, f := range flows {
		b.flow(f.ctl, f.rtt, time.Duration(i)*every)
	}
	b.run(time.Duration(len(flows)-1)*every + 30*time.Second)
	return b.rates(30 * time.Second)
}

func someBBR(seed uint64, n int, rtt time.Duration) (flows []*flow) {
	for i := range n {
		flows = append(flows, &flow{ctl: NewBBR(testMTU, seed*100+uint64(i)), rtt: rtt})
	}
	return flows
}

func someCubic(n int, rtt time.Duration) (flows []*flow) {
	for range n {
		flows = append(flows, &flow{ctl: newCubic(), rtt: rtt})
	}
	return flows
}

// TestBesideCubic checks that both sides get what they are due.
func TestBesideCubic(t *testing.T) {
	for _, queue := range []float64{.25, 1, 4} {
		for _, rivals := range []int{1, 4} {
			t.Run(fmt.Sprintf("queue %v, %d of cubic", queue, rivals), func(t *testing.T) {
				const seeds = 6
				ours := 0.0
				for seed := range uint64(seeds) {
					r := share(seed, queue, 0, append(someBBR(seed, 1, 40*ms), someCubic(rivals, 40*ms)...)...)
					ours += r[0] / 20e6 / seeds
				}
				t.Logf("%.2f of the path", ours)
				if rivals == 1 && (ours < .3 || ours > .7) || rivals == 4 && (ours > .4 || ours < .1) {
					t.Error("that is not a share")
				}
			})
		}
	}
}

// TestBesideItself checks that flows get equal shares, whenever they began.
func TestBesideItself(t *testing.T) {
	for _, queue := range []float64{.25, 1, 4} {
		for _, n := range []int{2, 4, 8} {
			for _, every := range []time.Duration{0, 8 * time.Second} {
				t.Run(fmt.Sprintf("queue %v, %d every %v", queue, n, every), func(t *testing.T) {
					sum := 0.0
					for seed := range uint64(2) {
						sum += jain(share(seed, queue, every, someBBR(seed, n, 40*ms)...))
					}
					t.Logf("Jain's index is %.3f", sum/2)
					if sum/2 < .93 {
						t.Error("less than .93")
					}
				})
			}
		}
	}
}

// TestLongerRoundTrip checks that a flow of a longer round trip is not starved, also where the other one fills the queue when it begins.
func TestLongerRoundTrip(t *testing.T) {
	const seeds = 3
	for _, queue := range []float64{.25, 1, 4} {
		for _, unlucky := range []uint32{0, 7} {
			var shares [2]float64
			for seed := range uint64(seeds) {
				b := newBottleneck(seed, 20e6, queue*20e6/8*.04)
				b.flow(NewBBR(testMTU, seed), 40*ms, 0)
				b.flow(NewBBR(testMTU, seed+100), 200*ms, 0).unlucky = unlucky
				b.run(6 * time.Second)
				for i, r := range b.rates(19 * time.Second) {
					shares[i] += r / 20e6 / seeds
				}
			}
			t.Logf("queue %v, %d frames lost at first: %.2f of the path", queue, unlucky, shares)
			if min(shares[0], shares[1]) < .15 {
				t.Error("less than .15")
			}
		}
	}
}

// TestRateChanges checks that a path that becomes slower is not flooded, and that one that becomes faster is used.
func TestRateChanges(t *testing.T) {
	b := newBottleneck(1, 100e6, 100e6/8*.04)
	f := b.flow(NewBBR(testMTU, 7), 40*ms, 0)
	b.run(10 * time.Second)
	b.rate = 10e6 / 8
	b.run(13 * time.Second)
	offered, dropped := b.offered, b.dropped
	b.run(20 * time.Second)
	if share := float64(b.dropped-dropped) / float64(b.offered-offered); share > .05 {
		t.Errorf("%.3f dropped from 3 s after the path became slower: %v", share, f.ctl)
	}
	b.rate = 100e6 / 8
	b.run(25 * time.Second)
	if r := b.rates(5 * time.Second); r[0] < .9*100e6 {
		t.Errorf("%v Mbit/s from 5 s after the path became faster: %v", mbit(r), f.ctl)
	}
}

// TestIdleRestart checks that a flow that was idle begins again at the rate that it had, and with no burst.
func TestIdleRestart(t *testing.T) {
	b := newBottleneck(1, 20e6, 20e6/8*.04/4)
	f := b.flow(NewBBR(testMTU, 7), 40*ms, 0)
	b.run(10 * time.Second)
	f.left = 0
	b.run(12 * time.Second)
	dropped := b.dropped
	f.left = -1
	b.at(b.now, f.send)
	if r := b.rates(time.Second); r[0] < .8*20e6 || b.dropped-dropped > 5*testMTU {
		t.Errorf("%v Mbit/s of 20 in the second after idleness, %d bytes dropped", mbit(r), b.dropped-dropped)
	}
}

// TestIdleOnSlowerPath checks that a flow that was idle does not flood a path that became slower: little more than a window of before is dropped.
func TestIdleOnSlowerPath(t *testing.T) {
	for _, queue := range []float64{.25, 1, 4} {
		const rate, rtt = 100e6 / 8, 40 * ms
		holds := rate * rtt.Seconds()
		b := newBottleneck(1, 8*rate, queue*holds)
		ctl := NewBBR(testMTU, 7)
		f := b.flow(ctl, rtt, 0)
		b.run(10 * time.Second)
		f.left = 0
		b.run(12 * time.Second)
		b.rate, b.queue = b.rate/10, b.queue/10
		dropped := b.dropped
		f.left = -1
		b.at(b.now, f.send)
		r := b.rates(2 * time.Second)
		if n := float64(b.dropped-dropped) / holds; n > 2 || r[0] < .7*8*b.rate {
			t.Errorf("queue %v: %.1f times what the path held before is dropped, %v Mbit/s of 10 arrive: %v", queue, n, mbit(r), ctl)
		}
	}
}

// TestZeroAllocs checks that frames cost no memory once some are in flight.
func TestZeroAllocs(t *testing.T) {
	for name, ctl := range map[string]ack.Controller{"bbr": NewBBR(testMTU, 1), "by path": NewByPath(testMTU, 1, false)} {
		now, order := ack.Instant(0), uint32(0)
		turn := func() {
			for range 20 {
				order++
				ctl.OnSent(now, order, testMTU)
			}
			now = now.Add(10 * ms)
			for i := range uint32(20) {
				if i == 7 {
					ctl.OnLost(now, order-i, testMTU, false)
					continue
				}
				ctl.OnAcked(now, order-i, testMTU, 10*ms)
			}
			ctl.EndBatch(now)
			ctl.NextSend(now, testMTU)
			ctl.OnAppLimited(now)
		}
		turn()
		if n := fixture.Allocations(1000, turn); n != 0 {
			t.Errorf("%s: %v allocations per batch", name, n)
		}
	}
}

// TestInspect: a flow says what it does, in the names of the document, and its estimates are those of the path.
func TestInspect(t *testing.T) {
	const rtt, rate = 40 * ms, 20e6 / 8
	b := newBottleneck(1, 8*rate, 50_000)
	ctl := NewBBR(testMTU, 7)
	b.flow(ctl, rtt, 0)
	if got := ctl.Inspect(); got.Controller != "bbr" || got.State != "Startup" || got.Bandwidth != 0 || got.MinRTT != 0 || got.InflightLongTerm != 0 || got.InflightShortTerm != 0 {
		t.Errorf("before the first frame: %+v", got)
	}
	seen := make(map[string]bool)
	bounded := false
	for range 3000 {
		b.run(time.Duration(b.now) + 10*ms)
		got := ctl.Inspect()
		seen[got.State] = true
		if bounded = bounded || got.InflightLongTerm > 0; got.InflightLongTerm < 0 || got.InflightShortTerm < 0 || got.InflightLongTerm > 1e9 {
			t.Fatalf("%+v", got)
		}
	}
	for _, state := range []string{"Startup", "Drain", "ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeBW_REFILL", "ProbeBW_UP"} {
		if !seen[state] {
			t.Errorf("never in %s: %v", state, seen)
		}
	}
	got := ctl.Inspect()
	if got.Bandwidth < .9*rate || got.Bandwidth > 1.1*rate || got.PacingRate < .8*rate || got.PacingRate > 1.4*rate || got.MinRTT < rtt || got.MinRTT > rtt+2*ms || !bounded {
		t.Errorf("of a path of %v bytes/s and %v, whose queue overflowed: %+v, bounded %v", rate, rtt, got, bounded)
	}
}

// TestManyFlows checks that for a minute sixteen flows share a path that has no room for the least window of each, with none left out.
func TestManyFlows(t *testing.T) {
	for _, queue := range []float64{.25, 1, 4} {
		seed := uint64(11)
		b := newBottleneck(seed, 10e6, queue*10e6/8*.04)
		for i := range 16 {
			b.flow(NewBBR(testMTU, uint64(i)), 40*ms, time.Duration(i)*10*ms)
		}
		b.run(10 * time.Second)
		rates := b.rates(50 * time.Second)
		if j := jain(rates); j < .9 || slices.Min(rates) < .02*10e6 {
			t.Errorf("seed %d, queue %v: Jain's index is %.3f of %v Mbit/s", seed, queue, j, mbit(rates))
		}
	}
}
