package ack

import (
	"math/rand/v2"
	"slices"
	"time"
)

// cumulativeWorld is a path of 1 Gbit/s that keeps the order, to a peer that acknowledges each
// frame once, by the first id that it lacks, and somebody who has it carry transactions.
type cumulativeWorld struct {
	s    Sender
	now  Instant
	way  time.Duration
	rnd  *rand.Rand
	load cumulativeLoad

	jitter time.Duration
	room   int       // of the peer, for frames that came and left no room to others; 0: any
	queue  []Instant // when those there will have left
	busy   Instant   // the wire is, until then
	there  []cumulativeFrame
	back   []cumulativeAck

	lack  Wide // the first id that the peer lacks
	got   map[Wide]bool
	since Instant // when what it acknowledges next came

	data    map[Wide]int // the transactions of the ids under way
	left    []int        // frames of each that are not acknowledged
	next    int          // frame to be sent, of all of them
	probe   bool
	done    Instant       // when the last transaction was
	sent    int           // frames
	again   int           // of them copies, and probes
	arrived int           // frames of transactions that are acknowledged
	longest time.Duration // without a transaction done
}

// cumulativeLoad is what is asked of a path: so many transactions at a time, of so many frames.
type cumulativeLoad struct {
	window, transactions, frames int
	probes                       bool // an empty frame asks with each timeout what is there
	never                        bool // frames are not sent again
}

type cumulativeFrame struct {
	at Instant
	id Wide
}

type cumulativeAck struct {
	at  Instant
	run Range
}

// What cards do, and their profile says.
const (
	cumulativeWidth = 32
	cumulativeMost  = 12 // ids an acknowledgement
	cumulativeEvery = 8
	cumulativeWait  = 1500 * time.Microsecond
)

func newCumulativeWorld(load cumulativeLoad) *cumulativeWorld {
	w := &cumulativeWorld{
		now: Instant(time.Hour), way: 50 * time.Microsecond, rnd: rand.New(rand.NewPCG(1, 1)), load: load,
		lack: 1, got: make(map[Wide]bool), data: make(map[Wide]int), left: make([]int, load.transactions),
	}
	for i := range w.left {
		w.left[i] = load.frames
	}
	w.done = w.now
	cfg := SenderConfig{
		First: 1, Window: load.window, Span: 128, MinRTO: 5 * ms, MaxRTO: sec, AckDelay: 3 * ms, GiveUp: time.Hour,
		Cumulative: true, FreshAlone: true,
	}
	if load.never {
		cfg.MinRTO, cfg.MaxRTO = time.Hour, time.Hour
	}
	w.s.Init(w.now, cfg, &FixedWindow{})
	return w
}

func (w *cumulativeWorld) delay() time.Duration {
	if w.jitter == 0 {
		return w.way
	}
	return w.way + time.Duration(w.rnd.Int64N(int64(w.jitter)))
}

func (w *cumulativeWorld) transmit(id Wide) {
	const frameTakes = 12 * time.Microsecond
	w.sent++
	if w.room > 0 {
		for len(w.queue) > 0 && w.queue[0] <= w.now {
			w.queue = w.queue[1:]
		}
		if len(w.queue) >= w.room {
			return
		}
	}
	w.busy = max(w.busy, w.now).Add(frameTakes)
	w.queue = append(w.queue, w.busy)
	f := cumulativeFrame{w.busy.Add(w.delay()), id}
	if n := len(w.there); n > 0 {
		f.at = max(f.at, w.there[n-1].at)
	}
	w.there = append(w.there, f)
}

// run is how many ids the peer has to acknowledge.
func (w *cumulativeWorld) run() (n int) {
	for n < cumulativeMost && w.got[w.lack+Wide(n)] {
		n++
	}
	return n
}

func (w *cumulativeWorld) receive(id Wide) {
	if d := id.Diff(w.lack); d < 0 || d >= cumulativeWidth || w.got[id] {
		return
	}
	before := w.run()
	w.got[id] = true
	if n := w.run(); n >= cumulativeEvery {
		w.acknowledge()
	} else if before == 0 && n > 0 {
		w.since = w.now
	}
}

func (w *cumulativeWorld) acknowledge() {
	n := w.run()
	a := cumulativeAck{w.now.Add(w.delay()), Range{w.lack.Seq(), uint8(n)}}
	if n := len(w.back); n > 0 {
		a.at = max(a.at, w.back[n-1].at)
	}
	w.back = append(w.back, a)
	for range n {
		delete(w.got, w.lack)
		w.lack++
	}
	w.since = w.now
}

func (w *cumulativeWorld) acknowledged(r Range) {
	ids, _ := w.s.AppendAcked(nil, w.now, r)
	for _, q := range ids {
		i, ok := w.data[w.s.Wide(q)]
		if !ok {
			continue // a probe
		}
		delete(w.data, w.s.Wide(q))
		w.arrived++
		if w.left[i]--; w.left[i] == 0 {
			w.left = append(w.left, w.load.frames)
			w.longest = max(w.longest, w.now.Sub(w.done))
			w.done = w.now
		}
	}
	w.s.EndBatch(w.now)
}

func (w *cumulativeWorld) pack() {
	s := &w.s
	for q, ok := s.NextLost(w.now); ok; q, ok = s.NextLost(w.now) {
		s.Resend(w.now, q)
		w.again++
		w.transmit(s.Wide(q))
	}
	for s.Lost() == 0 && w.next < len(w.left)*w.load.frames && s.Limit(w.now, 1400) == Open {
		id := s.Wide(s.Track(w.now, 1400))
		w.data[id] = w.next / w.load.frames
		w.next++
		w.transmit(id)
	}
	if w.probe && s.MayProbe() {
		w.again++
		w.transmit(s.Wide(s.Track(w.now, 46)))
	}
	w.probe = false
}

// advance lets that much time pass.
func (w *cumulativeWorld) advance(d time.Duration) {
	const never = Instant(1<<63 - 1)
	for end := w.now.Add(d); ; {
		w.pack()
		frame, ack, wait, deadline := never, never, never, never
		if len(w.there) > 0 {
			frame = w.there[0].at
		}
		if len(w.back) > 0 {
			ack = w.back[0].at
		}
		if w.run() > 0 {
			wait = w.since.Add(cumulativeWait)
		}
		if at, armed := w.s.Deadline(); armed {
			deadline = max(at, w.now)
		}
		at := min(frame, ack, wait, deadline)
		if at > end {
			w.now = end
			w.longest = max(w.longest, w.now.Sub(w.done))
			return
		}
		switch w.now = at; at {
		case ack:
			r := w.back[0].run
			w.back = slices.Delete(w.back, 0, 1)
			w.acknowledged(r)
		case frame:
			id := w.there[0].id
			w.there = slices.Delete(w.there, 0, 1)
			w.receive(id)
		case wait:
			w.acknowledge()
		default:
			w.probe = w.s.Expire(w.now, w.now) == Probe && w.load.probes
		}
	}
}

// over returns how many frames leave in that time, how many of them again, and how many of
// transactions are acknowledged.
func (w *cumulativeWorld) over(d time.Duration) (sent, again, arrived int) {
	w.sent, w.again, w.arrived = 0, 0, 0
	w.advance(d)
	return w.sent, w.again, w.arrived
}
