package ack

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

const (
	modelRate  = 1e6 // frames per second
	modelDelay = 50 * time.Microsecond
)

func reportModel(t *testing.T, what string, r modelFigures, ctl Controller) {
	t.Helper()
	t.Logf("%-28s speed %.3f loss %.3f timeouts %d; %v", what, r.speed, r.loss, r.timeouts, ctl)
}

// TestAdaptiveSteady covers small buffers, random loss and both together.
func TestAdaptiveSteady(t *testing.T) {
	const burstFIFO, ample = 3 * modelBurst, 4096
	tests := []struct {
		name         string
		b            modelLink
		speed, waste float64 // at least; at most beyond the random loss
	}{
		{"ample", modelLink{queue: ample}, 0.98, 0},
		{"fifo", modelLink{queue: burstFIFO}, 0.85, 0.15},
		{"fifo_slow", modelLink{queue: burstFIFO, rate: 200e3}, 0.85, 0.15},
		{"fifo_fast", modelLink{queue: burstFIFO, rate: 4e6}, 0.85, 0.15},
		{"frames_1", modelLink{queue: ample, lossFrame: 0.01}, 0.9, 0.01},
		{"frames_5", modelLink{queue: ample, lossFrame: 0.05}, 0.75, 0.01},
		{"bursts_1", modelLink{queue: ample, lossBurst: 0.01}, 0.9, 0.01},
		{"bursts_5", modelLink{queue: ample, lossBurst: 0.05}, 0.75, 0.02},
		{"bursts_5_fast", modelLink{queue: ample, lossBurst: 0.05, rate: 4e6}, 0.75, 0.02},
		{"fifo_frames_1", modelLink{queue: burstFIFO, lossFrame: 0.01}, 0.85, 0.15},
		{"fifo_frames_5", modelLink{queue: burstFIFO, lossFrame: 0.05}, 0.75, 0.15},
		{"fifo_bursts_1", modelLink{queue: burstFIFO, lossBurst: 0.01}, 0.85, 0.15},
		{"fifo_bursts_5", modelLink{queue: burstFIFO, lossBurst: 0.05}, 0.75, 0.15},
		// Far beyond what is promised: it must not starve.
		{"frames_20", modelLink{queue: ample, lossFrame: 0.2}, 0.5, 0.03},
		{"frames_40", modelLink{queue: ample, lossFrame: 0.4}, 0.1, 0.05},
	}
	for _, test := range fixture.Fewer(tests, tests[:5]) {
		t.Run(test.name, func(t *testing.T) {
			for seed := range uint64(2) {
				b := test.b
				b.seed, b.delay = seed, modelDelay
				if b.rate == 0 {
					b.rate = modelRate
				}
				a := NewAdaptive(modelMTU)
				m := newModel(b, a)
				reportModel(t, fmt.Sprintf("seed %d, first 20 ms", seed), m.measure(20 * time.Millisecond)[0], a)
				r := m.measure(80 * time.Millisecond)[0]
				reportModel(t, "then", r, a)
				if r.speed < test.speed {
					t.Errorf("speed %.3f, want at least %.2f", r.speed, test.speed)
				}
				if most := b.lossFrame + b.lossBurst + test.waste; r.loss > most {
					t.Errorf("loss %.3f, want at most %.3f", r.loss, most)
				}
			}
		})
	}
}

func TestAdaptiveRateStep(t *testing.T) {
	t.Log("seed 1")
	for _, queue := range []int{3 * modelBurst, 4096} {
		a := NewAdaptive(modelMTU)
		m := newModel(modelLink{rate: modelRate, queue: queue, delay: modelDelay, seed: 1}, a)
		m.measure(20 * time.Millisecond)
		for _, step := range []float64{4, 0.25, 0.25, 4} {
			m.rate *= step
			// A round is the queue of up to 1024 frames, or less.
			rounds := 30 * (m.delay + time.Duration(400/m.rate*1e9))
			reportModel(t, fmt.Sprintf("queue %d, rate x %v, at once", queue, step), m.measure(rounds)[0], a)
			r := m.measure(rounds)[0]
			reportModel(t, "then", r, a)
			if r.speed < 0.85 || r.loss > 0.2 {
				t.Errorf("queue %d, rate x %v: speed %.3f loss %.3f after 30 rounds", queue, step, r.speed, r.loss)
			}
			if got := a.Rate() / modelMTU; got < 0.8*m.rate || got > 1.5*m.rate {
				t.Errorf("estimated rate %.0f, want about %.0f", got, m.rate)
			}
		}
	}
}

func TestAdaptiveFairness(t *testing.T) {
	all := []modelLink{
		{queue: 3 * modelBurst},
		{queue: 10 * modelBurst},
		{queue: 4096},
		{queue: 4096, lossBurst: 0.02},
		{queue: 4096, delay: time.Millisecond},
	}
	for _, b := range fixture.Fewer(all, all[:2]) {
		for _, late := range []time.Duration{0, 20 * time.Millisecond} {
			// Without random loss only the offset of the second flow differs from
			// run to run; one run of 80 ms can be rather unfair, see the log.
			const runs = 6
			worst, mean := 1.0, 0.0
			for i := range runs {
				start := late + time.Duration(i)*137*time.Microsecond
				b.rate, b.seed, b.delay = modelRate, uint64(i), max(b.delay, modelDelay)
				m := newModel(b, NewAdaptive(modelMTU), NewAdaptive(modelMTU))
				m.flows[1].backlog = 0
				m.at(Instant(start), func() { m.flows[1].offer(modelEndless) })
				m.measure(40 * time.Millisecond)
				r := m.measure(80 * time.Millisecond)
				x, y := r[0].speed, r[1].speed
				jain := (x + y) * (x + y) / 2 / (x*x + y*y)
				worst, mean = min(worst, jain), mean+jain/runs
				t.Logf("seed %d queue %d burst loss %.2f delay %v second %v later: speeds %.3f %.3f loss %.3f %.3f Jain %.3f",
					b.seed, b.queue, b.lossBurst, b.delay, start, x, y, r[0].loss, r[1].loss, jain)
				if x+y < 0.85 {
					t.Errorf("sum of speeds %.3f, want > 0.85", x+y)
				}
			}
			t.Logf("Jain mean %.3f worst %.3f", mean, worst)
			if mean < 0.7 {
				t.Errorf("mean Jain %.3f, want > 0.7", mean)
			}
		}
	}
}

func TestAdaptiveBlackout(t *testing.T) {
	t.Log("seed 1")
	for _, queue := range []int{3 * modelBurst, 4096} {
		a := NewAdaptive(modelMTU)
		m := newModel(modelLink{rate: modelRate, queue: queue, delay: modelDelay, seed: 1}, a)
		reportModel(t, "before", m.measure(50 * time.Millisecond)[0], a)
		m.down = true
		reportModel(t, "down", m.measure(time.Second)[0], a)
		m.down = false
		back := m.flows[0].delivered
		for m.flows[0].delivered == back {
			m.run(100 * time.Microsecond) // the sender's back-off is not the controller's
		}
		// A few rounds: six doublings and the queue of the whole window.
		reportModel(t, "first 2 ms", m.measure(2 * time.Millisecond)[0], a)
		r := m.measure(5 * time.Millisecond)[0]
		reportModel(t, "next 5 ms", r, a)
		if r.speed < 0.9 {
			t.Errorf("queue %d: speed %.3f soon after a blackout", queue, r.speed)
		}
	}
}

func TestAdaptiveApplicationLimited(t *testing.T) {
	t.Log("seed 1")
	a := NewAdaptive(modelMTU)
	m := newModel(modelLink{rate: 4e6, queue: 4096, delay: modelDelay, seed: 1}, a)
	f := m.flows[0]
	m.measure(20 * time.Millisecond)
	window, rate := a.Window(), a.Rate()
	f.backlog = 0
	for range 1000 {
		f.offer(3)
		m.run(300 * time.Microsecond)
	}
	t.Logf("window %d rate %.0f, after a trickle %d %.0f", window, rate, a.Window(), a.Rate())
	if a.Rate() < rate || a.Window() < window*3/4 {
		t.Errorf("a trickle made window and rate smaller: %v", a)
	}
	m.run(5 * time.Second) // idle
	f.offer(modelEndless)
	if got := a.Window(); got != adaptiveInitialFrames*modelMTU {
		t.Errorf("window %d after idleness, want the initial one", got)
	}
	reportModel(t, "first 1 ms after idleness", m.measure(time.Millisecond)[0], a)
	r := m.measure(5 * time.Millisecond)[0]
	reportModel(t, "next 5 ms", r, a)
	if r.speed < 0.95 {
		t.Errorf("speed %.3f soon after idleness", r.speed)
	}
}

func TestAdaptiveLongFat(t *testing.T) {
	t.Log("seed 1")
	a := NewAdaptive(modelMTU)
	const rate = 1e9 / 8 / modelMTU
	m := newModel(modelLink{rate: rate, queue: 16384, delay: 20 * time.Millisecond, limit: 16383, seed: 1}, a)
	reportModel(t, "first 300 ms", m.measure(300 * time.Millisecond)[0], a)
	r := m.measure(2 * time.Second)[0]
	reportModel(t, "then", r, a)
	if r.speed < 0.95 {
		t.Errorf("speed %.3f", r.speed)
	}
	// The queue that the flow itself keeps must not become its round trip.
	r = m.measure(10 * time.Second)[0]
	reportModel(t, "next 10 s", r, a)
	if r.speed < 0.95 || a.MinRTT() > 30*time.Millisecond {
		t.Errorf("speed %.3f minimum round trip %v", r.speed, a.MinRTT())
	}
}

func TestAdaptiveDegenerateInput(t *testing.T) {
	for _, sample := range []time.Duration{-1, 0, time.Hour} {
		for _, tick := range []Instant{0, 1, -1} {
			a := NewAdaptive(0)
			random := rand.New(rand.NewPCG(1, 0))
			var now Instant
			for range 10000 {
				for range random.IntN(200) {
					a.OnSent(now, 0, random.IntN(9000))
				}
				for range random.IntN(200) {
					switch random.IntN(3) {
					case 0:
						a.OnLost(now, 0, random.IntN(9000), random.IntN(2) == 0)
					default:
						a.OnAcked(now, 0, random.IntN(9000), sample)
					}
				}
				a.EndBatch(now)
				now += tick
				if w := a.Window(); w < adaptiveMinimumFrames || int64(w) > adaptiveUnlimited {
					t.Fatalf("sample %v tick %d: window %d", sample, tick, w)
				}
			}
			if a.NextSend(now, 1) > now {
				t.Error("a frame was delayed")
			}
		}
	}
}

func TestAdaptiveNeverBelowMinimum(t *testing.T) {
	a := NewAdaptive(modelMTU)
	var now Instant
	for range 1000 {
		for range 100 {
			a.OnSent(now, 0, modelMTU)
		}
		now = now.Add(time.Millisecond)
		for i := range 100 {
			if i == 0 {
				a.OnAcked(now, 0, modelMTU, time.Millisecond)
			} else {
				a.OnLost(now, 0, modelMTU, false)
			}
		}
		a.EndBatch(now)
	}
	t.Log(a)
	if got := a.Window(); got != adaptiveMinimumFrames*modelMTU {
		t.Errorf("window %d under a loss of 99 %%, want the minimum", got)
	}
	if a.Cap() != a.Window() {
		t.Errorf("cap %d, window %d", a.Cap(), a.Window())
	}
}

// BenchmarkAdaptive measures one frame: sent and acknowledged, and its share
// of a batch.
func BenchmarkAdaptive(b *testing.B) {
	for _, name := range []string{"clean", "loss"} {
		b.Run(name, func(b *testing.B) {
			a := NewAdaptive(modelMTU)
			var now Instant
			for range modelBatch {
				a.OnSent(now, 0, modelMTU)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				a.OnSent(now, 0, modelMTU)
				if i++; name == "loss" && i%16 == 0 {
					a.OnLost(now, 0, modelMTU, false)
				} else {
					a.OnAcked(now, 0, modelMTU, 100*time.Microsecond)
				}
				if i%modelBatch == 0 {
					now += 20000
					a.EndBatch(now)
				}
			}
		})
	}
}
