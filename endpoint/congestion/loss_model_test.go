package congestion

import (
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestBaseLoss checks that what a path loses by chance is known, and is not taken for congestion; and that what own frames overflow is not
// taken for chance.
func TestBaseLoss(t *testing.T) {
	for _, c := range []struct{ loss, least, most float64 }{{0, 0, .004}, {.01, .005, .02}, {.05, .035, .07}} {
		b := newBottleneck(4, 20e6, 20e6/8*.04)
		b.loss = c.loss
		ctl := NewBBR(testMTU, 7)
		b.flow(ctl, 40*ms, 0)
		b.run(20 * time.Second)
		if got := ctl.loss.base.share(); got < c.least || got > c.most {
			t.Errorf("%.4f is taken for chance, where %.2f is", got, c.loss)
		}
	}
}

// TestBaseLossAges checks that a flow which knew that its path loses frames by chance does not take for chance what others make it lose: they get as
// much as it has, although the queue is never empty again.
func TestBaseLossAges(t *testing.T) {
	for seed := range uint64(3) {
		for _, others := range []int{3, 15} {
			b := newBottleneck(seed, 10e6, 10e6/8*.04)
			b.loss = .12
			ctl := NewBBR(testMTU, seed)
			b.flow(ctl, 40*ms, 0)
			b.run(20 * time.Second)
			if got := ctl.loss.base.share(); got < .08 {
				t.Errorf("seed %d: a path that loses .12 by chance is taken to lose %.3f", seed, got)
			}
			b.loss = 0
			for i := range others {
				b.flow(NewBBR(testMTU, seed+uint64(10+i)), 40*ms, 20*time.Second+time.Duration(i)*10*ms)
			}
			b.run(50 * time.Second)
			r := b.rates(90 * time.Second)
			if j := jain(r); j < .9 {
				t.Errorf("seed %d, %d others: Jain's index is %.3f of %v Mbit/s: %v", seed, others, j, mbit(r), ctl)
			}
		}
	}
}

// TestBaseLossOfProbes checks that nothing is learned of chance while more is sent than arrives.
func TestBaseLossOfProbes(t *testing.T) {
	const bandwidth = 1e6
	for state := Startup; state <= ProbeRTT; state++ {
		for _, rate := range []float64{bandwidth, 1.05 * bandwidth} {
			b := NewBBR(testMTU, 1)
			b.state, b.pace.rate = state, rate
			b.path.rtt, b.path.longest[1] = 40*ms, 80*ms
			b.bandwidth.highest[1] = bandwidth
			for order := range uint32(2000) {
				b.OnSent(0, order, testMTU)
				if order%8 == 7 {
					b.OnLost(0, order-4, testMTU, false)
				} else if order%8 != 3 {
					b.OnAcked(0, order, testMTU, 40*ms)
				}
			}
			probes := state == Drain || state == Refill || state == Up || state != Startup && rate > bandwidth
			if got := b.loss.base.share() > .1; got == probes {
				t.Errorf("%v, pacing rate %v: %.3f is taken for chance", state, rate, b.loss.base.share())
			}
		}
	}
}

// TestPolicerWithSpikes checks that a policer is not flooded where a radio holds frames back now and then, so that all others seem to have met no queue.
func TestPolicerWithSpikes(t *testing.T) {
	const seeds = 4
	dropped := 0.0
	for seed := range uint64(seeds) {
		b := newBottleneck(seed, 20e6, 2*testMTU)
		b.spikes, b.spike = .001, 50*ms
		b.flow(NewBBR(testMTU, seed), 40*ms, 0)
		b.flow(newCubic(), 40*ms, 100*ms)
		b.run(40 * time.Second)
		dropped += float64(b.dropped) / float64(b.offered) / seeds
	}
	t.Logf("%.3f dropped", dropped)
	if dropped > .07 {
		t.Error("more than .07")
	}
}

// TestBaseLossOfStartup checks that what seemed to be lost by chance in Startup is forgotten when congestion ends it: the bursts of flows that begin
// together overflow a queue that was empty.
func TestBaseLossOfStartup(t *testing.T) {
	b := NewBBR(testMTU, 1)
	b.path.rtt, b.path.longest[1] = 40*ms, 80*ms
	b.bandwidth.highest[1] = 1e6
	for order := range uint32(200) {
		b.OnSent(0, order, testMTU)
		if order%8 == 7 {
			b.OnLost(0, order-4, testMTU, false)
		} else if order%8 != 3 {
			b.OnAcked(0, order, testMTU, 40*ms)
		}
	}
	if got := b.loss.base.share(); b.state != Startup || got < .08 {
		t.Fatalf("%v: %.3f is taken for chance", b.state, got)
	}
	b.OnMarked(0, 1)
	b.EndBatch(ack.Instant(ms))
	if got := b.loss.base.share(); b.state == Startup || got != 0 {
		t.Errorf("%v: %.3f is taken for chance", b.state, got)
	}
}

// TestPolicer checks that a path without a queue, which drops what is too much, is not flooded.
func TestPolicer(t *testing.T) {
	b := newBottleneck(4, 20e6, 2*testMTU)
	ctl := NewBBR(testMTU, 7)
	b.flow(ctl, 40*ms, 0)
	b.run(5 * time.Second)
	offered, dropped := b.offered, b.dropped
	r := b.rates(20 * time.Second)
	if share := float64(b.dropped-dropped) / float64(b.offered-offered); share > .08 || r[0] < .7*20e6 {
		t.Errorf("%.3f dropped, %v Mbit/s of 20: %v", share, mbit(r), ctl)
	}
}

// TestMetQueue checks that a round trip says of a queue what it can say, and no more.
func TestMetQueue(t *testing.T) {
	m := minimumRTT{rtt: 40 * ms}
	m.longest[1] = 50 * ms
	for rtt, want := range map[time.Duration]queueing{0: unknown, 41 * ms: empty, 43 * ms: filled, 50 * ms: filled} {
		if got := m.met(rtt); got != want {
			t.Errorf("%v: %d, want %d", rtt, got, want)
		}
	}
	m.longest[1] = 42 * ms
	if got := m.met(42 * ms); got != unknown {
		t.Errorf("where round trips are alike, one says %d", got)
	}
}

// TestCruiseGivesWay checks that a flow that cruises answers what others have the queue overflow with as CUBIC does, once for a window, and that
// losses by chance are not answered.
func TestCruiseGivesWay(t *testing.T) {
	for _, c := range []struct {
		name        string
		burst, loss float64
		least, most float64
	}{
		{"nothing", 0, 0, .99, 1},
		{"others fill the queue", 1.1, 0, lossBeta * lossBeta, lossBeta + .05},
		{"losses by chance", 0, .01, .95, 1},
	} {
		const rate, rtt = 20e6 / 8, 40 * ms
		b := newBottleneck(5, 8*rate, rate*rtt.Seconds())
		b.loss = c.loss
		ctl := NewBBR(testMTU, 7)
		b.flow(ctl, rtt, 0)
		for b.run(15 * time.Second); ctl.state != Cruise || b.now.Sub(ctl.probe.began) < 10*rtt; {
			b.run(time.Duration(b.now) + ms)
		}
		before := ctl.bandwidth.bounded()
		if c.burst > 0 {
			b.free = b.now.Add(time.Duration(c.burst * b.queue / b.rate * 1e9))
		}
		b.run(time.Duration(b.now) + 5*rtt)
		if share := ctl.bandwidth.bounded() / before; ctl.state != Cruise || share < c.least || share > c.most {
			t.Errorf("%s: %.2f of the rate is left, may be %.2f to %.2f: %v", c.name, share, c.least, c.most, ctl)
		}
	}
}

// TestSpikes checks that frames which a radio holds back for 50 ms now and then do not have losses of a short queue taken for those of chance: others get
// their share, and little is dropped.
func TestSpikes(t *testing.T) {
	for seed := range uint64(3) {
		for _, beside := range []string{"cubic", "bbr"} {
			b := newBottleneck(seed, 20e6, 15_000)
			b.spikes, b.spike = .001, 50*ms
			b.flow(NewBBR(testMTU, seed), 40*ms, 0)
			var ctl ack.Controller = newCubic()
			if beside == "bbr" {
				ctl = NewBBR(testMTU, seed+9)
			}
			b.flow(ctl, 40*ms, 100*ms)
			b.run(10 * time.Second)
			offered, dropped := b.offered, b.dropped
			r := b.rates(30 * time.Second)
			if share := float64(b.dropped-dropped) / float64(b.offered-offered); r[1] < .15*20e6 || r[0] < .15*20e6 || share > .02 {
				t.Errorf("seed %d: beside %s %v Mbit/s, and %.3f is dropped", seed, beside, mbit(r), share)
			}
		}
	}
}

// TestGrowsDespiteLoss checks that a flow whose queue is empty, and which loses frames by chance, finds that the path has become ten times faster, mostly within
// 12 s.
func TestGrowsDespiteLoss(t *testing.T) {
	for _, loss := range []float64{.01, .03} {
		var all []float64
		for seed := range uint64(5) {
			b := newBottleneck(seed, 10e6, 100e6/8*.04)
			b.loss = loss
			ctl := NewBBR(testMTU, seed)
			b.flow(ctl, 40*ms, 0)
			b.run(8 * time.Second)
			b.rate = 100e6 / 8
			b.run(20 * time.Second)
			all = append(all, b.rates(26*time.Second)...)
		}
		slices.Sort(all)
		if all[0] < .3*100e6 || all[2] < .8*100e6 {
			t.Errorf("%v Mbit/s of 100 with %v of loss", mbit(all), loss)
		}
	}
}
