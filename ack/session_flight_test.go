package ack

import (
	"bytes"
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// flightWorld is a sender of one session, a network, and a receiver, in virtual time.
type flightWorld struct {
	t      *testing.T
	r      *rand.Rand
	now    Instant
	f      Flight
	w      ReceivedIDs
	events events
	n      int

	delay func() time.Duration // of one frame; below 0: it is lost
	// ackDelay is that of an acknowledgement; nil: delay is.
	ackDelay func() time.Duration
	ackLost  func() bool
	batch    time.Duration // how long the receiver collects what it acknowledges
	pace     time.Duration // between new frames
	marks    float64       // the share of those that can carry a mark that get one
	told     frame.Marks
	// piggybacks is the share of acknowledgements that are cumulative alone.
	piggybacks float64
	paced      Instant

	arrived map[uint32]int // how often each frame was applied
	done    map[uint32]bool
	lost    int  // transmissions
	late    int  // ids that had been withheld
	acks    bool // one is being collected
}

type event struct {
	at Instant
	n  int // events of one moment happen in the order in which they were made
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

const flightRTO = 20 * time.Millisecond

func newFlightWorld(t *testing.T, seed uint64, epoch uint32, window int) *flightWorld {
	w := &flightWorld{t: t, r: rand.New(rand.NewPCG(seed, 7)), arrived: map[uint32]int{}, done: map[uint32]bool{}}
	w.f.Init(0, FlightConfig{Epoch: epoch, Window: window, MinRTO: flightRTO, MaxRTO: time.Second, AckDelay: time.Millisecond, AckEvery: 2, GiveUp: 10 * time.Second}, &FixedWindow{})
	w.w.Begin(epoch)
	w.ackLost = func() bool { return false }
	return w
}

func (w *flightWorld) after(d time.Duration, do func()) {
	w.n++
	heap.Push(&w.events, event{w.now.Add(d), w.n, do})
}

// transmit puts a frame on the wire.
func (w *flightWorld) transmit(id uint32, copied uint8) {
	if d := w.delay(); d >= 0 {
		capable := w.f.Marking()
		w.after(d, func() { w.receive(id, copied, capable) })
	} else {
		w.lost++
	}
}

func (w *flightWorld) receive(id uint32, copied uint8, capable bool) {
	switch w.w.Check(id) {
	case Fresh:
		w.w.Arrive(w.now, id, copied)
		w.arrived[id]++
		switch {
		case capable && w.marks > 0 && w.r.Float64() < w.marks:
			w.told.Congested++
		case capable:
			w.told.Capable++
		}
	case Copied:
		w.w.ArriveAgain(w.now, id, copied)
	case Beyond:
		w.t.Fatalf("id %d is beyond the window: up to %d", id, w.w.UpTo())
	}
	if !w.acks {
		w.acks = true
		w.after(w.batch, w.acknowledge)
	}
}

func (w *flightWorld) acknowledge() {
	w.acks = false
	a := Acknowledgement{UpTo: w.w.UpTo(), Ranges: w.w.AppendRanges(nil), Echo: w.w.Echo(w.now), HasEcho: true, Marks: w.told}
	if w.piggybacks > 0 && w.r.Float64() < w.piggybacks {
		a = Acknowledgement{UpTo: a.UpTo}
	}
	if w.ackLost() {
		return
	}
	delay := w.delay
	if w.ackDelay != nil {
		delay = w.ackDelay
	}
	if d := delay(); d >= 0 {
		w.after(d, func() {
			ids, ok := w.f.AppendAcked(nil, w.now, &a)
			if !ok {
				w.t.Fatalf("%+v was refused", a)
			}
			for _, id := range ids {
				if w.done[id] || w.arrived[id] == 0 {
					w.t.Fatalf("frame %d acknowledged: before %v, arrived %d times", id, w.done[id], w.arrived[id])
				}
				w.done[id] = true
			}
			w.f.EndBatch(w.now)
		})
	}
}

// send has that many frames go, and returns how many were sent again.
func (w *flightWorld) send(frames int) (again int) {
	w.t.Helper()
	left, resent := frames, 0
	for steps := 0; left > 0 || w.f.InFlight() > 0; steps++ {
		if steps > 100*frames+10_000 {
			w.t.Fatalf("%d frames wait for ever, %d are not sent", w.f.InFlight(), left)
		}
		for {
			if w.f.Withheld() {
				w.late++
				w.transmit(w.f.TrackWithheld(w.now, 20), 0)
			} else if id, ok := w.f.NextLost(w.now); ok {
				resent++
				w.transmit(id, w.f.Resend(w.now, id))
			} else if left > 0 && w.now >= w.paced && w.f.Limit(w.now, 1000) == Open {
				left--
				if w.pace > 0 {
					w.paced = w.now.Add(w.pace)
					w.after(w.pace, func() {})
				}
				w.transmit(w.f.Track(w.now, 1000), 0)
			} else {
				break
			}
		}
		at, armed := w.f.Deadline()
		if len(w.events) > 0 && (!armed || w.events[0].at <= at) {
			e := heap.Pop(&w.events).(event)
			w.now = e.at
			e.do()
		} else if armed {
			w.now = max(w.now, at)
			if w.f.Expire(w.now, w.now) == Dead {
				w.t.Fatal("the peer is dead")
			}
		}
	}
	return resent
}

// TestFlightDelivers checks that each frame arrives and is acknowledged once, whatever the network does, over the end of the ids.
func TestFlightDelivers(t *testing.T) {
	for _, epoch := range []uint32{0, 0xFFFFFFFF - 300, 0x7FFFFFFF - 300} {
		for _, loss := range []float64{0, .01, .1, .4} {
			for _, jitter := range []time.Duration{0, 100 * time.Microsecond, 5 * time.Millisecond} {
				seed := rand.Uint64()
				w := newFlightWorld(t, seed, epoch, 100)
				w.f.cfg.GiveUp = time.Minute // where 40 % are lost, both ways, 10 s pass without an acknowledgement now and then
				w.delay = func() time.Duration {
					if w.r.Float64() < loss {
						return -1
					}
					return time.Millisecond + time.Duration(w.r.Int64N(int64(jitter+1)))
				}
				w.batch = time.Duration(w.r.Int64N(int64(200 * time.Microsecond)))
				w.send(1000)
				if len(w.done) != 1000 || w.f.InFlight() != 0 || w.f.bytes != 0 {
					t.Errorf("seed %d: %d of 1000 done, %d in flight, %d bytes", seed, len(w.done), w.f.InFlight(), w.f.bytes)
				}
				for id, n := range w.arrived {
					if n != 1 {
						t.Errorf("seed %d: frame %d was applied %d times", seed, id, n)
					}
				}
			}
		}
	}
}

// TestFlightSendsAgainWhatIsLost checks that on a network that keeps the order a frame is sent again as often as it is lost, and
// seldom otherwise: an acknowledgement that is lost costs nothing where another one follows, as that tells the same.
func TestFlightSendsAgainWhatIsLost(t *testing.T) {
	for _, acks := range []float64{0, .3} {
		seed := rand.Uint64()
		w := newFlightWorld(t, seed, 0, 200)
		w.delay = func() time.Duration {
			if w.r.Float64() < .05 {
				return -1
			}
			return time.Millisecond
		}
		w.ackLost = func() bool { return w.r.Float64() < acks }
		w.pace, w.batch = 20*time.Microsecond, 50*time.Microsecond
		if again := w.send(20_000); again > w.lost+w.lost/20 {
			t.Errorf("seed %d, acknowledgements lost %v: %d sent again, %d lost", seed, acks, again, w.lost)
		}
	}
}

// TestFlightMeasures checks that round trips are measured exactly although each frame is lost now and then, and although the peer
// holds acknowledgements back.
func TestFlightMeasures(t *testing.T) {
	seed := rand.Uint64()
	w := newFlightWorld(t, seed, 0, 50)
	w.delay = func() time.Duration {
		if w.r.Float64() < .2 {
			return -1
		}
		return 3 * time.Millisecond
	}
	w.batch = 700 * time.Microsecond
	samples := 0
	for range 500 {
		w.send(10)
		if d, ok := w.f.Measured(); ok {
			samples++
			if d != 6*time.Millisecond {
				t.Fatalf("seed %d: a round trip of %v, want 6ms", seed, d)
			}
		}
	}
	if samples < 300 || w.f.rtt.Smoothed() != 6*time.Millisecond {
		t.Errorf("seed %d: %d samples, smoothed %v", seed, samples, w.f.rtt.Smoothed())
	}
}

// TestFlightLearnsToReorder checks that where the network reorders, and loses nothing, frames are soon no more sent again, and that
// this is forgotten when it has only lost for a while.
func TestFlightLearnsToReorder(t *testing.T) {
	seed := rand.Uint64()
	w := newFlightWorld(t, seed, 0, 100)
	n := 0
	w.delay = func() time.Duration { // two links, one of which takes 4 ms longer
		if n++; n%2 == 0 {
			return 5 * time.Millisecond
		}
		return time.Millisecond
	}
	w.batch = 50 * time.Microsecond
	first := w.send(3000)
	if more := w.send(10_000); more > 100 {
		t.Errorf("seed %d: %d of 10000 frames sent again, after %d of the first 3000", seed, more, first)
	}
	if w.f.late < 2*time.Millisecond || w.f.late > 10*time.Millisecond {
		t.Errorf("seed %d: frames may be late by %v, where they are by 4ms", seed, w.f.late)
	}
	w.delay = func() time.Duration {
		if w.r.Float64() < .02 {
			return -1
		}
		return time.Millisecond
	}
	w.send(30_000)
	if w.f.late > time.Millisecond {
		t.Errorf("seed %d: frames may still be late by %v, where none is", seed, w.f.late)
	}
}

// TestFlightRefuses checks that an acknowledgement of ids that were never used changes nothing.
func TestFlightRefuses(t *testing.T) {
	for name, a := range map[string]Acknowledgement{
		"beyond":         {UpTo: 14},
		"far beyond":     {UpTo: 10 + 1<<31},
		"before":         {UpTo: 9},
		"a span beyond":  {UpTo: 11, Ranges: []frame.Range{{First: 13, Count: 2}}},
		"a long span":    {UpTo: 11, Ranges: []frame.Range{{First: 13, Count: 1 << 20}}},
		"an empty span":  {UpTo: 11, Ranges: []frame.Range{{First: 13, Count: 0}}},
		"an echo beyond": {UpTo: 11, HasEcho: true, Echo: Echo{ID: 14}},
	} {
		w := newFlightWorld(t, 1, 10, 100)
		for range 3 {
			w.f.Track(0, 100)
		}
		before := w.f
		before.frames = slices.Clone(before.frames)
		ids, ok := w.f.AppendAcked(nil, 1, &a)
		if ok || len(ids) != 0 || w.f.InFlight() != 3 || !slices.Equal(before.frames, w.f.frames) {
			t.Errorf("%s: %v, %v", name, ids, ok)
		}
	}
}

// TestFlightOldAcknowledgements checks that acknowledgements that come late, or twice, or out of order, change nothing.
func TestFlightOldAcknowledgements(t *testing.T) {
	w := newFlightWorld(t, 1, 0, 100)
	for range 6 {
		w.f.Track(0, 100)
	}
	old := Acknowledgement{UpTo: 1, Ranges: []frame.Range{{First: 3, Count: 1}}}
	for i, c := range []struct {
		a    Acknowledgement
		want []uint32
	}{
		{Acknowledgement{UpTo: 0, Ranges: []frame.Range{{First: 2, Count: 1}, {First: 5, Count: 1}}}, []uint32{2, 5}},
		{old, []uint32{1, 3}},
		{old, nil},
		{Acknowledgement{UpTo: 0, Ranges: []frame.Range{{First: 2, Count: 1}, {First: 5, Count: 1}}}, nil},
		{Acknowledgement{UpTo: 6}, []uint32{4, 6}},
		{old, nil},
		{Acknowledgement{UpTo: 0}, nil},
	} {
		if ids, ok := w.f.AppendAcked(nil, Instant(i), &c.a); !ok || !slices.Equal(ids, c.want) {
			t.Errorf("acknowledgement %d: %v, %v, want %v", i, ids, ok, c.want)
		}
	}
}

// TestFlightGivesUp checks that a peer is dead that acknowledges nothing for GiveUp, and that this process may stand still for longer.
func TestFlightGivesUp(t *testing.T) {
	w := newFlightWorld(t, 1, 0, 100)
	w.f.Track(0, 100)
	tries := 0
	for {
		at, armed := w.f.Deadline()
		if !armed {
			t.Fatal("nothing is waited for")
		}
		w.now = at
		if w.f.Expire(at, at) == Dead {
			break
		}
		for id, ok := w.f.NextLost(at); ok; id, ok = w.f.NextLost(at) {
			tries++
			w.f.Resend(at, id)
		}
	}
	if w.now != Instant(10*time.Second) || tries < 10 || tries > 30 {
		t.Errorf("dead after %v and %d tries", time.Duration(w.now), tries)
	}
	w = newFlightWorld(t, 1, 0, 100)
	w.f.Track(0, 100)
	if w.f.Expire(Instant(time.Hour), Instant(time.Hour)) == Dead {
		t.Error("dead, though this process stood still")
	}
}

// TestFlightFrameThatNeverArrives checks that a peer is dead to which one frame never arrives, as it is too long for the path, although
// it acknowledges all that follows: when that was sent mostCopies times, every 500 ms, and not while the oldest frame changes.
func TestFlightFrameThatNeverArrives(t *testing.T) {
	for _, arrives := range []Instant{0, Instant(15 * time.Second)} {
		w := newFlightWorld(t, 1, 0, 1000)
		w.f.Track(0, 1000)
		dead := Instant(0)
		for now := Instant(0); dead == 0 && now < Instant(time.Minute); now = now.Add(500 * time.Millisecond) {
			id := w.f.Track(now, 100)
			a := Acknowledgement{UpTo: w.f.Oldest() - 1, Ranges: []frame.Range{{First: id, Count: 1}}}
			if arrives > 0 && now >= arrives {
				a = Acknowledgement{UpTo: 1}
				arrives = 0
			}
			if _, ok := w.f.AppendAcked(nil, now, &a); !ok {
				t.Fatalf("%+v is refused", a)
			}
			w.f.EndBatch(now)
			if w.f.Expire(now, now) == Dead {
				dead = now
			}
			for id, ok := w.f.NextLost(now); ok; id, ok = w.f.NextLost(now) {
				w.f.Resend(now, id)
			}
		}
		want := Instant((mostCopies + 1) * 500 * time.Millisecond)
		if w.f.Oldest() > 1 {
			want += Instant(15 * time.Second)
		}
		if dead != want {
			t.Errorf("dead at %v, want %v, and the oldest frame is %d", time.Duration(dead), time.Duration(want), w.f.Oldest())
		}
	}
}

// TestFlightLives checks that a peer of which frames come is not dead, though it acknowledges nothing for long, until one frame was sent
// mostCopies times and twice the time to give up has passed; and that it is dead when nothing is heard any more.
func TestFlightLives(t *testing.T) {
	for _, x := range []struct {
		silent Instant // nothing comes from then on
		each   time.Duration
		want   Instant
	}{
		{Instant(time.Hour), time.Second, Instant((mostCopies + 1) * time.Second)},
		{Instant(time.Hour), 100 * time.Millisecond, Instant(20 * time.Second)},
		{Instant(30 * time.Second), time.Second, Instant(40 * time.Second)},
	} {
		w := newFlightWorld(t, 1, 0, 1000)
		w.f.Track(0, 100)
		dead := Instant(0)
		for now := Instant(x.each); dead == 0 && now < Instant(2*time.Minute); now = now.Add(x.each) {
			if now <= x.silent {
				w.f.Lives(now)
			}
			if w.f.Expire(now, now) == Dead {
				dead = now
			}
			if w.f.wire.n > 0 {
				w.f.lose(now, w.f.frame(1), true)
			}
			w.f.Resend(now, 1)
		}
		if dead != x.want {
			t.Errorf("silent after %v: dead at %v, want %v", time.Duration(x.silent), time.Duration(dead), time.Duration(x.want))
		}
	}
}

// TestFlightEchoAcknowledges checks that the frame that arrived last is acknowledged, though no range has it: a short frame has no room for all
// ranges, and the newest may be between them. It is acknowledged once, and measures.
func TestFlightEchoAcknowledges(t *testing.T) {
	w := newFlightWorld(t, 1, 0, 100)
	for range 10 {
		w.f.Track(0, 100)
	}
	now := Instant(3 * time.Millisecond)
	for i, want := range [][]uint32{{1, 2, 10, 5}, nil, nil} {
		a := Acknowledgement{UpTo: 2, Ranges: []frame.Range{{First: 10, Count: 1}}, HasEcho: true, Echo: Echo{ID: 5}}
		if i == 2 {
			a = Acknowledgement{HasEcho: true} // nothing has arrived
		}
		if ids, ok := w.f.AppendAcked(nil, now, &a); !ok || !slices.Equal(ids, want) {
			t.Errorf("acknowledgement %d: %v, %v, want %v", i, ids, ok, want)
		}
	}
	if d := w.f.RTT().Smoothed(); d != 3*time.Millisecond {
		t.Errorf("a round trip takes %v", d)
	}
	var unused Flight
	unused.Init(0, w.f.cfg, &FixedWindow{})
	if ids, ok := unused.AppendAcked(nil, now, &Acknowledgement{HasEcho: true}); !ok || ids != nil {
		t.Errorf("%v, %v of a session in which nothing left", ids, ok)
	}
}

// check compares what f counts with its frames.
func (w *flightWorld) check() {
	w.t.Helper()
	wire, lost, bytes := 0, 0, 0
	for id := w.f.oldest; id != w.f.next; id++ {
		s := w.f.frame(id)
		switch s.state {
		case slotSent:
			wire++
			bytes += int(s.bytes)
		case slotLost:
			lost++
		}
		if s.id != id {
			w.t.Fatalf("place of %d has %d", id, s.id)
		}
	}
	if wire != w.f.wire.n || lost != w.f.lost.n || bytes != w.f.bytes || int(w.f.next-w.f.oldest) > w.f.cfg.Window {
		w.t.Fatalf("%d on the wire, %d lost, %d bytes from %d to %d; counted %d, %d, %d", wire, lost, bytes, w.f.oldest, w.f.next, w.f.wire.n, w.f.lost.n, w.f.bytes)
	}
}

// FuzzFlight checks that a Flight counts right, whatever a peer acknowledges.
func FuzzFlight(f *testing.F) {
	f.Add(uint32(0), []byte{0, 0, 0, 1, 2, 0, 2, 3, 9})
	f.Add(uint32(0xFFFFFFFE), []byte{0, 0, 0, 0, 1, 1, 2, 1, 3, 3, 2, 0, 1, 255})
	f.Add(uint32(7), append(append([]byte{128}, bytes.Repeat([]byte{0, 0}, 60)...), 2, 3, 2, 0, 1, 1, 2, 3, 2, 0, 1))
	f.Fuzz(func(t *testing.T, epoch uint32, steps []byte) {
		w := newFlightWorld(t, 1, epoch, 64)
		if len(steps) > 0 && steps[0] > 127 {
			w = newFarWorld(t, 1, epoch, 64) // where ids are withheld
		}
		waits := map[uint32]bool{}
		oldest := func() uint32 {
			for id := w.f.Next() - 64; id != w.f.Next(); id++ {
				if waits[id] {
					return id
				}
			}
			return w.f.Next()
		}
		at := func(i int) uint32 { return uint32(steps[i%len(steps)]) }
		for i := 0; i < len(steps) && i < 300; i++ {
			w.now = w.now.Add(time.Duration(at(i+1)) * time.Millisecond)
			switch at(i) % 4 {
			case 0:
				if w.f.Limit(w.now, 100) == Open {
					next := w.f.Next()
					id := w.f.Track(w.now, int(at(i+1)))
					waits[next], waits[id] = true, true // two of them if one is withheld
				}
			case 1:
				if w.f.Expire(w.now, w.now) == Dead {
					return
				}
				if w.f.Withheld() {
					w.f.TrackWithheld(w.now, 20)
				}
				for id, ok := w.f.NextLost(w.now); ok; id, ok = w.f.NextLost(w.now) {
					w.f.Resend(w.now, id)
				}
			default:
				a := Acknowledgement{UpTo: w.f.oldest + at(i+1)%8 - 3, HasEcho: at(i)%4 == 3, Echo: Echo{ID: w.f.oldest + at(i+2)%80, Copy: uint8(at(i+3) % 8), Again: at(i+3) > 127,
					Delay: time.Duration(at(i+2)) * 100 * time.Microsecond}}
				for n := range at(i+2) % 4 {
					a.Ranges = append(a.Ranges, frame.Range{First: a.UpTo + 2 + 10*n + at(i+3)%8, Count: int(at(i+4) % 9)})
				}
				before := w.f.InFlight()
				ids, ok := w.f.AppendAcked(nil, w.now, &a)
				if !ok && len(ids) > 0 || w.f.InFlight() != before-len(ids) {
					t.Fatalf("%+v: %v, %v, %d in flight of %d", a, ids, ok, w.f.InFlight(), before)
				}
				for _, id := range ids {
					if !waits[id] || w.f.withheld.is(id) {
						t.Fatalf("%+v acknowledges %#x", a, id)
					}
					delete(waits, id)
				}
				w.f.EndBatch(w.now)
			}
			if got, want := w.f.Oldest(), oldest(); got != want || w.f.InFlight() != len(waits) {
				t.Fatalf("the oldest is %#x, want %#x; %d in flight, want %d", got, want, w.f.InFlight(), len(waits))
			}
			w.check()
		}
	})
}

// TestFlightNeedsNoMemory checks that frames that are sent, lost and acknowledged take no memory but that of the window.
func TestFlightNeedsNoMemory(t *testing.T) {
	w := newFlightWorld(t, 1, 0, 64)
	ids := make([]uint32, 0, 64)
	ranges := make([]frame.Range, 1)
	cycle := func() {
		w.now = w.now.Add(time.Second)
		first := w.f.Next()
		for range 64 {
			w.f.Track(w.now, 1000)
		}
		w.now = w.now.Add(time.Millisecond)
		ranges[0] = frame.Range{First: first + 8, Count: 56}
		ids, _ = w.f.AppendAcked(ids[:0], w.now, &Acknowledgement{UpTo: first + 6, Ranges: ranges, Echo: Echo{ID: first + 63}, HasEcho: true})
		w.f.EndBatch(w.now)
		w.now = w.now.Add(time.Millisecond)
		w.f.Expire(w.now, w.now)
		for id, ok := w.f.NextLost(w.now); ok; id, ok = w.f.NextLost(w.now) {
			w.f.Resend(w.now, id)
		}
		ids, _ = w.f.AppendAcked(ids[:0], w.now, &Acknowledgement{UpTo: first + 63})
	}
	cycle()
	if n := fixture.Allocations(100, cycle); n != 0 || w.f.InFlight() != 0 {
		t.Errorf("%v allocations, %d in flight", n, w.f.InFlight())
	}
}

func BenchmarkFlight(b *testing.B) {
	var f Flight
	f.Init(0, FlightConfig{Window: 1024, MinRTO: flightRTO, MaxRTO: time.Second, GiveUp: 10 * time.Second}, &FixedWindow{})
	ids := make([]uint32, 0, 64)
	now := Instant(0)
	for range b.N {
		now++
		if id := f.Track(now, 1400); id%44 == 0 {
			ids, _ = f.AppendAcked(ids[:0], now, &Acknowledgement{UpTo: id, Echo: Echo{ID: id}, HasEcho: true})
			f.EndBatch(now)
		}
	}
}

// TestAcknowledgedBehindAllIDs checks that acknowledgements count in a session that has used all ids and begins with the first ones again, those
// of ids before its epoch included.
func TestAcknowledgedBehindAllIDs(t *testing.T) {
	const epoch = 1000
	var f Flight
	f.Init(0, FlightConfig{Epoch: epoch, Window: 64, MinRTO: flightRTO, MaxRTO: time.Second, GiveUp: 10 * time.Second}, &FixedWindow{})
	for _, next := range []uint32{epoch + 1, epoch + 1<<30, epoch + 1<<31 + 1, epoch - 5} {
		f.next, f.oldest = next, next // all between was sent and acknowledged
		for range 10 {
			f.Track(0, 100)
		}
		for i := range uint32(9) {
			a := Acknowledgement{UpTo: next + i, HasEcho: true, Echo: Echo{ID: next + i}, Ranges: []frame.Range{{First: next + i + 2, Count: 1}}}
			if i == 8 {
				a.Ranges = nil
			}
			if _, ok := f.AppendAcked(nil, 1, &a); !ok || int32(f.Oldest()-a.UpTo) <= 0 {
				t.Errorf("after %d frames, the acknowledgement of frame %d is not believed", next-epoch-1, i)
			}
		}
		if _, ok := f.AppendAcked(nil, 1, &Acknowledgement{UpTo: f.Next()}); ok {
			t.Errorf("after %d frames, an acknowledgement is believed of one that never left", next-epoch-1)
		}
	}
}

// TestFirstTimeout checks when a frame is sent again before a round trip is known: where the path may be a long one after a second (RFC 6298, 2.1), as long as that is not more than the
// most; and that a round trip that is known counts then.
func TestFirstTimeout(t *testing.T) {
	for _, x := range []struct{ first, most, trip, want time.Duration }{
		{0, time.Second, 0, 4 * flightRTO},
		{time.Second, time.Second, 0, time.Second},
		{time.Second, 300 * time.Millisecond, 0, 300 * time.Millisecond},
		{time.Second, time.Second, 100 * time.Millisecond, 300 * time.Millisecond},
	} {
		var f Flight
		f.Init(0, FlightConfig{Window: 8, MinRTO: flightRTO, FirstRTO: x.first, MaxRTO: x.most, GiveUp: 10 * time.Second}, &FixedWindow{})
		f.RTT().Assume(x.trip)
		f.Track(0, 100)
		if at, armed := f.Deadline(); !armed || at.Sub(0) != x.want {
			t.Errorf("%+v: sent again after %v", x, at.Sub(0))
		}
	}
}
