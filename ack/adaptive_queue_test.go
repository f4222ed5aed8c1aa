package ack

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

const us = time.Microsecond

// modelWire is a link of so many bits per second with all the queue one may want: frames
// arrive one by one, and every second one is acknowledged.
func modelWire(rate float64, delay time.Duration) modelLink {
	return modelLink{rate: rate / 8 / modelMTU, delay: delay, queue: 1 << 20, limit: MaxHistory - 1, batch: 1, every: 2}
}

// frameTime is how long the bottleneck takes for so many frames.
func (m *netModel) frameTime(frames int) time.Duration {
	return time.Duration(float64(frames) / m.rate * float64(time.Second))
}

// waits returns how long a frame would wait that is sent at some moment of that time:
// for the sender's own link, and for those before it at the bottleneck.
func (m *netModel) waits(d time.Duration) (median, most time.Duration) {
	var all []time.Duration
	for end := m.now.Add(d); m.now < end; m.run(37 * us) {
		w := m.frameTime(m.queued)
		for _, f := range m.flows {
			w += max(0, f.lineFree.Sub(m.now))
		}
		all = append(all, w)
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)-1]
}

// settled runs a new flow for as long as it takes to find out what slack it needs, and
// some time more.
func settled(b modelLink) (*netModel, *Adaptive) {
	a := NewAdaptive(modelMTU)
	m := newModel(b, a)
	m.run(4*adaptiveJudgeTime + 16*m.frameTime(adaptiveSlackFrames) + 40*b.delay)
	return m, a
}

// acquainted is a flow that knows its round trip from single frames.
func acquainted(b modelLink) (*netModel, *Adaptive) {
	a := NewAdaptive(modelMTU)
	m := newModel(b, a)
	m.flows[0].backlog = 0
	for range 20 {
		m.flows[0].offer(m.every)
		m.run(10*ms + b.delay)
	}
	m.flows[0].backlog = modelEndless
	return m, a
}

// A bulk flow keeps its link busy with no more queue than the slack: 250 us, 16 frames,
// or another round trip.
func TestAdaptiveQueueIsShort(t *testing.T) {
	all := []float64{1e8, 1e9, 1e10}
	for _, rate := range fixture.Fewer(all, all[:1]) {
		for _, delay := range []time.Duration{0, 40 * us, 200 * us, 2 * ms, 20 * ms, 100 * ms} {
			for _, loss := range []float64{0, 0.01} {
				if rate*delay.Seconds() > 2e7 || loss > 0 && (rate > 1e9 || delay > 200*us) {
					continue // too many frames for a test
				}
				t.Run(fmt.Sprintf("%g/%v/%g", rate, delay, loss), func(t *testing.T) {
					t.Log("seed 1")
					b := modelWire(rate, delay)
					b.lossFrame, b.seed = loss, 1
					m, a := settled(b)
					d := 30*ms + 2*delay
					r := m.measure(d)[0]
					reportModel(t, "", r, a)
					median, most := m.waits(d)
					t.Logf("wait %v, at most %v", median, most)
					if r.speed < 0.995 || r.loss > 2*loss {
						t.Errorf("speed %.3f, loss %.3f", r.speed, r.loss)
					}
					if limit := max(adaptiveSlackTime, m.frameTime(adaptiveSlackLeast), delay) + m.frameTime(12); most > limit {
						t.Errorf("a frame waits %v, at most %v, want %v", median, most, limit)
					}
				})
			}
		}
	}
}

// The start is as fast as with the whole slack: shares of the link's rate in the
// first thirty round trips, measured when it was never less.
func TestAdaptiveQueueStart(t *testing.T) {
	for delay, want := range map[time.Duration]float64{200 * us: 0.995, 2 * ms: 0.948, 20 * ms: 0.840} {
		a := NewAdaptive(modelMTU)
		m := newModel(modelWire(1e9, delay), a)
		r := m.measure(max(50*ms, 30*delay))[0]
		reportModel(t, delay.String(), r, a)
		if r.speed < want {
			t.Errorf("round trip %v: speed %.3f, want %.3f", delay, r.speed, want)
		}
	}
}

// Acknowledgements that come in bursts cost no more than with the whole slack.
func TestAdaptiveQueueOfBursts(t *testing.T) {
	for _, rate := range []float64{1e8, 1e9} {
		for _, hold := range []time.Duration{300 * us, ms, 4 * ms, 10 * ms} {
			b := modelWire(rate, 40*us)
			m, a := acquainted(b)
			m.hold = hold
			start := m.measure(100 * ms)[0]
			r := m.measure(300 * ms)[0]
			reportModel(t, fmt.Sprintf("%g, each %v", rate, hold), r, a)
			whole := min(1, adaptiveSlackFrames/(m.rate*hold.Seconds()))
			if r.speed < 0.97*whole || start.speed < 0.9*whole {
				t.Errorf("%g, acknowledgements each %v: speed %.3f, then %.3f, want %.3f", rate, hold, start.speed, r.speed, whole)
			}
		}
	}
}

// So do pauses, as of a sender that others keep from its processor.
func TestAdaptiveQueueOfPauses(t *testing.T) {
	for _, test := range []struct{ stall, stalls time.Duration }{{ms, 8 * ms}, {ms, 50 * ms}, {4 * ms, 20 * ms}, {4 * ms, 100 * ms}} {
		m, a := acquainted(modelWire(1e9, 40*us))
		m.stall, m.stalls = test.stall, test.stalls
		m.run(100 * ms)
		r := m.measure(500 * ms)[0]
		reportModel(t, fmt.Sprintf("%v each %v", m.stall, m.stalls), r, a)
		idle := max(0, m.stall-m.frameTime(adaptiveSlackFrames))
		if whole := 1 - idle.Seconds()/m.stalls.Seconds(); r.speed < whole-0.012 {
			t.Errorf("pauses of %v each %v: speed %.3f, want %.3f", m.stall, m.stalls, r.speed, whole)
		}
	}
}

// Round trips that are always longer than the minimum that was once seen are no queue:
// the smaller window made the rate fall, and is given up.
func TestAdaptiveQueueOfLongerPaths(t *testing.T) {
	t.Log("seed 1")
	jitters := []time.Duration{300 * us, ms}
	for _, jitter := range fixture.Fewer(jitters, jitters[:1]) {
		b := modelWire(1e9, 40*us)
		b.seed, b.jitter = 1, jitter
		m, a := acquainted(b)
		m.run(100 * ms)
		r := m.measure(sec)[0]
		reportModel(t, fmt.Sprintf("jitter %v", jitter), r, a)
		if r.speed < 0.975 {
			t.Errorf("jitter %v: speed %.3f", jitter, r.speed)
		}
	}
	paths := []time.Duration{ms / 2, 2 * ms}
	for _, longer := range fixture.Fewer(paths, paths[:1]) {
		m, a := settled(modelWire(1e9, 40*us))
		m.delay += longer
		r := m.measure(sec)[0]
		reportModel(t, fmt.Sprintf("path longer by %v", longer), r, a)
		if r.speed < 0.975 {
			t.Errorf("path longer by %v: speed %.3f", longer, r.speed)
		}
	}
}
