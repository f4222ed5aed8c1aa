package ack

import (
	"math/rand/v2"
	"slices"
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
	jitter    time.Duration // of each way, less than that; nothing is overtaken
	lossFrame float64       // share of single frames lost
	lossBurst float64       // share of whole bursts lost, and of acknowledgements
	limit     int           // frames in flight that the protocol allows, 0: its default of 1024
	batch     int           // frames that are served at once, 0: modelBatch
	every     int           // frames that share an acknowledgement, 0: modelBatch/2
	hold      time.Duration // acknowledgements arrive at multiples of it, 0: at once
	stall     time.Duration // for so long no acknowledgement arrives,
	stalls    time.Duration // every so often
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
	ctl         Controller
	frames      []modelFrame // by order of sending
	oldest      int          // not gone
	highest     int          // acknowledged
	flight      int          // bytes
	resends     int          // waiting
	backlog     int          // new frames that the application still has
	lineFree    Instant      // when the sender's own link is idle
	there, back Instant      // when the latest frame, and acknowledgement, arrives
	heardAt     Instant
	timeout     time.Duration // current back-off, 0 if no timer runs
	timer       int           // number of the newest timer
	unacked     []modelRun    // at the receiver
	unackedN    int
	expected    int // next frame at the receiver
	delayedID   int // number of the newest delayed acknowledgement

	delivered, sent, lost, timeouts int
}

const modelEndless = 1 << 30

func newModel(b modelLink, controllers ...Controller) *netModel {
	if b.limit == 0 {
		b.limit = 1024
	}
	if b.batch == 0 {
		b.batch = modelBatch
	}
	if b.every == 0 {
		b.every = modelBatch / 2
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
			f.ctl.OnSent(f.now, 0, modelMTU)
			f.flight += modelMTU
		}
		f.sent += n
		// The sender's own link has four times the speed of the bottleneck.
		f.lineFree = max(f.lineFree, f.now).Add(time.Duration(float64(n) / f.rate / 4 * 1e9))
		f.there = max(f.there, f.lineFree.Add(f.delay/2+f.jittered()))
		f.at(f.there, func() { f.arrive(run) })
	}
	if f.timeout == 0 && f.flight > 0 {
		f.heardAt = f.now
		f.arm(f.firstTimeout())
	}
}

func (m *netModel) firstTimeout() time.Duration {
	return max(5*time.Millisecond, 3*m.delay, 3*m.hold)
}

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
			f.ctl.OnLost(f.now, 0, modelMTU, timeout)
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

// cut splits the first run in the queue where it is larger than a batch.
func (m *netModel) cut() {
	r := m.fifo[0]
	if r.n <= m.batch {
		return
	}
	head, tail := r, r
	head.n, tail.first, tail.n = m.batch, r.first+m.batch, r.n-m.batch
	head.kept, tail.kept = r.kept&(1<<m.batch-1), r.kept>>m.batch
	m.fifo[0] = head
	m.fifo = slices.Insert(m.fifo, 1, tail)
}

func (m *netModel) jittered() time.Duration {
	if m.jitter == 0 {
		return 0
	}
	return time.Duration(m.random.Int64N(int64(m.jitter)))
}

// serve takes a batch from the queue, works on it and acknowledges it.
func (m *netModel) serve() {
	n, runs := 0, 0
	if len(m.fifo) > 0 {
		m.cut()
	}
	for runs < len(m.fifo) && (runs == 0 || n+m.fifo[runs].frames() <= m.batch) {
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
			if f.unackedN >= f.every {
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
	f.back = max(f.back, f.now.Add(f.delay/2+f.jittered()))
	if f.hold > 0 {
		f.back = (f.back + Instant(f.hold) - 1) / Instant(f.hold) * Instant(f.hold)
	}
	if f.stall > 0 {
		if since := f.back % Instant(f.stalls); since < Instant(f.stall) {
			f.back += Instant(f.stall) - since
		}
	}
	f.at(f.back, func() { f.acknowledged(runs) })
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
			f.ctl.OnAcked(f.now, 0, modelMTU, sample)
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
