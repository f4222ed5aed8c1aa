package bottleneck_test

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

const ms = time.Millisecond

// bench drives a queue: frames are numbered in the order in which they come.
type bench struct {
	t    *testing.T
	q    *bottleneck.Queue[int]
	flow *bottleneck.Flow
	now  time.Duration
	next int

	left  []bottleneck.Left[int]
	drops []drop
}

type drop struct {
	what int
	why  bottleneck.Reason
}

func newBench(t *testing.T, cfg bottleneck.Config) *bench {
	b := &bench{t: t}
	b.q = bottleneck.New(cfg, func(what int, why bottleneck.Reason) { b.drops = append(b.drops, drop{what, why}) })
	b.flow = b.q.NewFlow()
	return b
}

// enter has a frame come after what left until then.
func (b *bench) enter(at time.Duration, size int, capable bool) {
	b.runUntil(at)
	b.q.Enter(at, b.flow, size, capable, b.next)
	b.next++
}

// flood has frames come at even distances.
func (b *bench) flood(from, until, every time.Duration, size int, capable bool) {
	for at := from; at < until; at += every {
		b.enter(at, size, capable)
	}
}

func (b *bench) runUntil(now time.Duration) {
	b.t.Helper()
	if now < b.now {
		b.t.Fatalf("back from %v to %v", b.now, now)
	}
	b.now = now
	for at, ok := b.q.Due(); ok && at <= now; at, ok = b.q.Due() {
		b.left = append(b.left, b.q.Leave())
	}
}

func (b *bench) wantLeft(want ...bottleneck.Left[int]) {
	b.t.Helper()
	if len(b.left) != len(want) {
		b.t.Fatalf("left: %v, want %v", b.left, want)
	}
	for i := range want {
		if b.left[i] != want[i] {
			b.t.Errorf("left %d: %v, want %v", i, b.left[i], want[i])
		}
	}
}

// TestTransmission checks that frames leave in order, when their last bit is out.
func TestTransmission(t *testing.T) {
	b := newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: 10_000}) // 1000 bytes take 1 ms
	b.enter(0, 1000, false)
	b.enter(0, 500, false)
	b.enter(5*ms, 1000, false)
	b.runUntil(time.Second)
	b.wantLeft(bottleneck.Left[int]{What: 0, At: ms}, bottleneck.Left[int]{What: 1, At: 3 * ms / 2}, bottleneck.Left[int]{What: 2, At: 6 * ms})
	if _, ok := b.q.Due(); ok {
		t.Error("an empty queue has something due")
	}
}

// TestTwiceTheRate checks that of a source at twice the rate half is dropped, and that the rest
// waits for a full queue: bytes / rate.
func TestTwiceTheRate(t *testing.T) {
	const queue, size = 50_000, 1000
	b := newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: queue})
	b.flood(0, 100*time.Second, ms/2, size, false)
	b.runUntil(200 * time.Second)
	c := b.flow.Counts()
	if c.Frames != 200_000 || c.Bytes != 200_000*size {
		t.Errorf("%+v came, want 200000 frames", c)
	}
	if share := float64(c.Dropped) / float64(c.Frames); share < 0.499 || share > 0.5 {
		t.Errorf("%v dropped, want half, but the queue at the end", share)
	}
	if c.Dropped*size != c.DroppedBytes || c.Dropped+c.LeftFrames != c.Frames || int(c.Dropped) != len(b.drops) {
		t.Errorf("%+v do not add up, %d drops", c, len(b.drops))
	}
	full := time.Duration(queue/size) * ms
	for _, share := range []float64{0.5, 0.95} {
		if d := b.flow.Delay(share); d < full-ms || d > full+ms {
			t.Errorf("delay at %v: %v, want %v", share, d, full)
		}
	}
	if got := b.q.All().Counts(); got != c {
		t.Errorf("all together %+v, the only flow %+v", got, c)
	}
}

// TestQueueIsInBytes checks that small frames fit where a large one does not, and that a frame
// that meets no other passes whatever its size.
func TestQueueIsInBytes(t *testing.T) {
	b := newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: 1000})
	b.enter(0, 5000, false) // in transmission
	b.enter(0, 900, false)
	b.enter(0, 101, false) // does not fit
	b.enter(0, 100, false)
	if got := b.q.Bytes(); got != 1000 {
		t.Errorf("%d bytes wait", got)
	}
	b.runUntil(time.Second)
	if len(b.drops) != 1 || b.drops[0] != (drop{2, bottleneck.Full}) {
		t.Errorf("dropped %v", b.drops)
	}
	b.wantLeft(bottleneck.Left[int]{What: 0, At: 5 * ms}, bottleneck.Left[int]{What: 1, At: 5900 * time.Microsecond}, bottleneck.Left[int]{What: 3, At: 6 * ms})
}

// TestOverhead checks that the wire's headers take time and room, and count.
func TestOverhead(t *testing.T) {
	b := newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: 2000, Overhead: 500})
	for range 4 {
		b.enter(0, 500, false)
	}
	b.runUntil(time.Second)
	b.wantLeft(bottleneck.Left[int]{What: 0, At: ms}, bottleneck.Left[int]{What: 1, At: 2 * ms}, bottleneck.Left[int]{What: 2, At: 3 * ms})
	if c := b.flow.Counts(); c.Bytes != 4000 || c.DroppedBytes != 1000 {
		t.Errorf("%+v", c)
	}
}

// TestFlowsAreCounted checks that each of two flows has its own counters, and that both
// share the queue by what they bring.
func TestFlowsAreCounted(t *testing.T) {
	b := newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: 20_000})
	one, other := b.flow, b.q.NewFlow()
	for at := time.Duration(0); at < 10*time.Second; at += ms {
		b.flow = one
		b.enter(at, 1000, false)
		b.flow = other
		b.enter(at, 250, false)
	}
	b.runUntil(time.Minute)
	c, d := one.Counts(), other.Counts()
	if c.Bytes != 4*d.Bytes || c.Frames != d.Frames {
		t.Errorf("%+v and %+v came", c, d)
	}
	if all := b.q.All().Counts(); all.LeftBytes != c.LeftBytes+d.LeftBytes || all.Dropped != c.Dropped+d.Dropped {
		t.Errorf("all %+v, of %+v and %+v", all, c, d)
	}
	if got := float64(b.q.All().Counts().LeftBytes); got < 9.9e6 || got > 10.1e6 {
		t.Errorf("%v bytes left in 10 s of 8 Mbit/s", got)
	}
}

// TestMarkAbove checks that the step threshold marks frames that find more waiting, and none that cannot
// carry a mark (RFC 8257, 3.1).
func TestMarkAbove(t *testing.T) {
	b := newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: 100_000, MarkAbove: 2000})
	for i := range 6 { // the first is in transmission: the fifth finds 3000
		b.enter(0, 1000, i != 5)
	}
	b.runUntil(time.Second)
	for i, l := range b.left {
		if l.Marked != (i == 4) {
			t.Errorf("frame %d: marked %v", i, l.Marked)
		}
	}
	if c := b.flow.Counts(); c.Marked != 1 || c.Dropped != 0 || c.LeftFrames != 6 {
		t.Errorf("%+v", c)
	}
}

// TestClear checks that all comes out that is inside, once.
func TestClear(t *testing.T) {
	b := newBench(t, bottleneck.Config{Rate: 8_000_000, Queue: 10_000})
	for range 3 {
		b.enter(0, 1000, false)
	}
	seen := 0
	b.q.Clear(func(what int) {
		if what != seen {
			t.Errorf("%d came out, want %d", what, seen)
		}
		seen++
	})
	if _, ok := b.q.Due(); ok || seen != 3 || b.q.Bytes() != 0 || len(b.drops) != 0 {
		t.Errorf("%d came out; %d bytes wait, due %v, dropped %v", seen, b.q.Bytes(), ok, b.drops)
	}
	b.enter(0, 1000, false)
	b.runUntil(ms)
	b.wantLeft(bottleneck.Left[int]{What: 3, At: ms})
}

// TestImpossibleConfigurations checks that they panic.
func TestImpossibleConfigurations(t *testing.T) {
	for name, cfg := range map[string]bottleneck.Config{
		"rate":     {Rate: -1},
		"queue":    {Queue: -1},
		"overhead": {Overhead: -1},
		"mark":     {MarkAbove: -1},
		"change":   {Changes: []bottleneck.Change{{At: 0, Rate: -1}}},
		"order":    {Changes: []bottleneck.Change{{At: 2, Rate: 1}, {At: 1, Rate: 1}}},
		"outage":   {Outages: []bottleneck.Outage{{From: 0, For: -1}}},
		"codel":    {CoDel: &bottleneck.CoDel{Target: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			bottleneck.New(cfg, func(int, bottleneck.Reason) {})
		})
	}
}
