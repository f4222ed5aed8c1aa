package ack

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	modelMTU   = 1500
	modelBurst = 44 // frames of 1500 bytes in one offloaded send of 64 KiB
	modelBatch = 64 // frames that a receiver takes at once
)

// modelLink is a network with one queue in front of a server: the socket
// buffer and the process that reads it, or a switch port and its link.
type modelLink struct {
	rate      float64 // frames per second served
	queue     int     // frames that fit; a burst that does not fit whole is dropped
	delay     time.Duration
	lossFrame float64 // share of single frames lost
	lossBurst float64 // share of whole bursts lost, and of acknowledgements
	limit     int     // frames in flight that the protocol allows, 0: its default of 1024
	down      bool
	seed      uint64
}

type modelEvent struct {
	at   Instant
	turn int // keeps events of one moment in order
	do   func()
}

// netModel runs flows through a bottleneck in virtual time.
type netModel struct {
	modelLink
	now    Instant
	turn   int
	events []modelEvent // heap
	random *rand.Rand
	flows  []*modelFlow
	fifo   []modelRun
	queued int
	busy   bool
}

// modelRun is a run of frames of one flow; bit i of kept says that frame
// first+i has not been lost.
type modelRun struct {
	flow  *modelFlow
	first int
	n     int
	kept  uint64
}

func (r modelRun) frames() int {
	n := 0
	for k := r.kept; k != 0; k &= k - 1 {
		n++
	}
	return n
}

type modelFrame struct {
	sentAt Instant
	again  bool // a resend gives no round trip sample
	gone   bool // acknowledged or taken for lost
}

type modelFlow struct {
	*netModel
	ctl       Controller
	frames    []modelFrame // by order of sending
	oldest    int          // not gone
	highest   int          // acknowledged
	flight    int          // bytes
	resends   int          // waiting
	backlog   int          // new frames that the application still has
	lineFree  Instant      // when the sender's own link is idle
	heardAt   Instant
	timeout   time.Duration // current back-off, 0 if no timer runs
	timer     int           // number of the newest timer
	unacked   []modelRun    // at the receiver
	unackedN  int
	expected  int // next frame at the receiver
	delayedID int // number of the newest delayed acknowledgement

	delivered, sent, lost, timeouts int
}

const modelEndless = 1 << 30

func newModel(b modelLink, controllers ...Controller) *netModel {
	if b.limit == 0 {
		b.limit = 1024
	}
	m := &netModel{modelLink: b, random: rand.New(rand.NewPCG(b.seed, 0))}
	for _, c := range controllers {
		m.flows = append(m.flows, &modelFlow{netModel: m, ctl: c, backlog: modelEndless, highest: -1})
	}
	return m
}

func (m *netModel) at(t Instant, do func()) {
	m.turn++
	m.events = append(m.events, modelEvent{t, m.turn, do})
	for i := len(m.events) - 1; i > 0; {
		up := (i - 1) / 2
		if !m.less(i, up) {
			break
		}
		m.events[i], m.events[up] = m.events[up], m.events[i]
		i = up
	}
}

func (m *netModel) less(i, j int) bool {
	a, b := &m.events[i], &m.events[j]
	return a.at < b.at || a.at == b.at && a.turn < b.turn
}

func (m *netModel) pop() modelEvent {
	top := m.events[0]
	last := len(m.events) - 1
	m.events[0] = m.events[last]
	m.events = m.events[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return top
		}
		if down+1 < last && m.less(down+1, down) {
			down++
		}
		if !m.less(down, i) {
			return top
		}
		m.events[i], m.events[down] = m.events[down], m.events[i]
		i = down
	}
}

func (m *netModel) run(d time.Duration) {
	end := m.now.Add(d)
	for _, f := range m.flows {
		f.fill()
	}
	for len(m.events) > 0 && m.events[0].at <= end {
		e := m.pop()
		m.now = e.at
		e.do()
	}
	m.now = end
}

// fill sends what the window permits, in bursts.
func (f *modelFlow) fill() {
	window := f.ctl.Window()
	for f.flight < window && f.flight < f.limit*modelMTU && f.resends+f.backlog > 0 {
		room := (min(window, f.limit*modelMTU) - f.flight + modelMTU - 1) / modelMTU
		n := min(room, modelBurst, max(window/modelMTU/4, 1), f.resends+f.backlog)
		run := modelRun{flow: f, first: len(f.frames), n: n, kept: 1<<n - 1}
		for range n {
			again := f.resends > 0
			if again {
				f.resends--
			} else {
				f.backlog--
			}
			f.frames = append(f.frames, modelFrame{sentAt: f.now, again: again})
			f.ctl.OnSent(f.now, modelMTU)
			f.flight += modelMTU
		}
		f.sent += n
		// The sender's own link has four times the speed of the bottleneck.
		f.lineFree = max(f.lineFree, f.now).Add(time.Duration(float64(n) / f.rate / 4 * 1e9))
		f.at(f.lineFree.Add(f.delay/2), func() { f.arrive(run) })
	}
	if f.timeout == 0 && f.flight > 0 {
		f.heardAt = f.now
		f.arm(f.firstTimeout())
	}
}

func (m *netModel) firstTimeout() time.Duration { return max(5*time.Millisecond, 3*m.delay) }

func (f *modelFlow) arm(d time.Duration) {
	f.timeout = d
	f.timer++
	id := f.timer
	f.at(f.heardAt.Add(f.timeout), func() { f.expire(id) })
}

func (f *modelFlow) expire(id int) {
	if id != f.timer {
		return
	}
	if f.flight == 0 {
		f.timeout = 0
		return
	}
	if f.now < f.heardAt.Add(f.timeout) {
		f.arm(f.timeout)
		return
	}
	f.timeouts++
	f.lose(len(f.frames), true)
	f.ctl.EndBatch(f.now)
	f.heardAt = f.now
	f.arm(min(2*f.timeout, 100*time.Millisecond))
	f.fill()
}

func (f *modelFlow) lose(before int, timeout bool) {
	for ; f.oldest < before; f.oldest++ {
		if x := &f.frames[f.oldest]; !x.gone {
			x.gone = true
			f.flight -= modelMTU
			f.resends++
			f.lost++
			f.ctl.OnLost(f.now, modelMTU, timeout)
		}
	}
}

func (m *netModel) arrive(r modelRun) {
	if m.down || m.random.Float64() < m.lossBurst {
		return
	}
	if m.lossFrame > 0 {
		for i := range r.n {
			if m.random.Float64() < m.lossFrame {
				r.kept &^= 1 << i
			}
		}
	}
	n := r.frames()
	if n == 0 || m.queued+n > m.queue {
		return
	}
	m.queued += n
	m.fifo = append(m.fifo, r)
	if !m.busy {
		m.serve()
	}
}

// serve takes a batch from the queue, works on it and acknowledges it.
func (m *netModel) serve() {
	n, runs := 0, 0
	for runs < len(m.fifo) && (runs == 0 || n+m.fifo[runs].frames() <= modelBatch) {
		n += m.fifo[runs].frames()
		runs++
	}
	m.busy = runs > 0
	if !m.busy {
		return
	}
	batch := append([]modelRun(nil), m.fifo[:runs]...)
	m.fifo = append(m.fifo[:0], m.fifo[runs:]...)
	m.queued -= n
	m.at(m.now.Add(time.Duration(float64(n)/m.rate*1e9)), func() {
		for _, r := range batch {
			r.flow.receive(r)
		}
		for _, f := range m.flows {
			if f.unackedN >= 32 {
				f.acknowledge()
			}
		}
		m.serve()
	})
}

func (f *modelFlow) receive(r modelRun) {
	f.delivered += r.frames()
	gap := r.first != f.expected || r.kept != 1<<r.n-1
	f.expected = r.first + r.n
	f.unacked = append(f.unacked, r)
	f.unackedN += r.frames()
	if gap {
		f.unackedN += 32
	} else if len(f.unacked) == 1 {
		f.delayedID++
		id := f.delayedID
		f.at(f.now.Add(2*time.Millisecond), func() {
			if id == f.delayedID && f.unackedN > 0 {
				f.acknowledge()
			}
		})
	}
}

func (f *modelFlow) acknowledge() {
	if f.down || f.random.Float64() < f.lossBurst {
		f.unackedN = 1 // the next acknowledgement repeats these
		return
	}
	runs := append([]modelRun(nil), f.unacked...)
	f.unacked, f.unackedN = f.unacked[:0], 0
	f.at(f.now.Add(f.delay/2), func() { f.acknowledged(runs) })
}

func (f *modelFlow) acknowledged(runs []modelRun) {
	for _, r := range runs {
		for i := range r.n {
			x := &f.frames[r.first+i]
			if r.kept>>i&1 == 0 || x.gone {
				continue
			}
			x.gone = true
			f.flight -= modelMTU
			f.highest = max(f.highest, r.first+i)
			sample := f.now.Sub(x.sentAt)
			if x.again {
				sample = -1
			}
			f.ctl.OnAcked(f.now, modelMTU, sample)
		}
	}
	f.lose(f.highest-2, false)
	f.ctl.EndBatch(f.now)
	f.heardAt = f.now
	f.timeout = f.firstTimeout()
	f.fill()
}

// offer gives the application's next frames to the sender.
func (f *modelFlow) offer(frames int) {
	f.backlog += frames
	f.fill()
}

// modelFigures is what a flow achieved in a stretch of time.
type modelFigures struct {
	speed    float64 // delivered, as share of the bottleneck's rate
	loss     float64 // lost, as share of the frames sent
	timeouts int
}

// measure runs the model and reports what its flows did meanwhile.
func (m *netModel) measure(d time.Duration) []modelFigures {
	before := make([]modelFlow, len(m.flows))
	for i, f := range m.flows {
		before[i] = *f
	}
	m.run(d)
	all := make([]modelFigures, len(m.flows))
	for i, f := range m.flows {
		all[i] = modelFigures{
			speed:    float64(f.delivered-before[i].delivered) / (m.rate * d.Seconds()),
			loss:     float64(f.lost-before[i].lost) / float64(max(f.sent-before[i].sent, 1)),
			timeouts: f.timeouts - before[i].timeouts,
		}
	}
	return all
}

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
	for _, test := range tests {
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
	for _, b := range []modelLink{
		{queue: 3 * modelBurst},
		{queue: 10 * modelBurst},
		{queue: 4096},
		{queue: 4096, lossBurst: 0.02},
		{queue: 4096, delay: time.Millisecond},
	} {
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
					a.OnSent(now, random.IntN(9000))
				}
				for range random.IntN(200) {
					switch random.IntN(3) {
					case 0:
						a.OnLost(now, random.IntN(9000), random.IntN(2) == 0)
					default:
						a.OnAcked(now, random.IntN(9000), sample)
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
			a.OnSent(now, modelMTU)
		}
		now = now.Add(time.Millisecond)
		for i := range 100 {
			if i == 0 {
				a.OnAcked(now, modelMTU, time.Millisecond)
			} else {
				a.OnLost(now, modelMTU, false)
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
				a.OnSent(now, modelMTU)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				a.OnSent(now, modelMTU)
				if i++; name == "loss" && i%16 == 0 {
					a.OnLost(now, modelMTU, false)
				} else {
					a.OnAcked(now, modelMTU, 100*time.Microsecond)
				}
				if i%modelBatch == 0 {
					now += 20000
					a.EndBatch(now)
				}
			}
		})
	}
}
