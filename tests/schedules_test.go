package tests

import (
	"math"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// Small schedules for what the property test has found.

func schedulePlan(latency time.Duration) *propertyPlan {
	p := &propertyPlan{
		kind: "native", nodes: 2, mtu: 510, giveUp: 20 * time.Second, duration: 20 * time.Millisecond,
		settle: 5 * time.Second, links: make(map[[2]int]simnet.Link), each: make([]propertyNodePlan, 2),
	}
	p.links[[2]int{0, 1}] = simnet.Link{Latency: latency}
	p.links[[2]int{1, 0}] = simnet.Link{Latency: latency + 3}
	return p
}

func runSchedule(t *testing.T, p *propertyPlan) {
	t.Helper()
	if fails := runPlan(t, p, ""); len(fails) > 0 {
		t.Errorf("%s%q", p, fails)
	}
}

// An acknowledgement for ids half the space away fell on the slots of frames
// in flight.
func TestScheduleAckHalfTheSpaceAway(t *testing.T) {
	for _, start := range []int{32700, 32761, 32767, 32768, -32767, -300, 1, 2, 20} {
		var s ack.Sender
		s.Init(0, ack.SenderConfig{
			First: 3562, Window: 100, Span: 1000, MinRTO: time.Second, MaxRTO: time.Second, GiveUp: math.MaxInt64,
		}, &ack.FixedWindow{})
		s.Track(0, 100)
		got, _ := s.AppendAcked(nil, 1000, ack.Range{Start: frame.Seq(3562).Add(start), Count: 255})
		if len(got) != 0 || s.InFlight() != 1 {
			t.Errorf("a range %d ids away acknowledged %d", start, got)
		}
	}
}

// A transaction without data and completion looked like the introduction of
// another life.
func TestScheduleEmptyTransactionIsNoHello(t *testing.T) {
	p := schedulePlan(100 * time.Microsecond)
	p.flows = []propertyFlowPlan{
		{to: 1, start: 1, count: 10, depth: 1},
		{from: 1, to: 0, start: 1, count: 50, depth: 3, segments: []int{100}, completion: true},
	}
	runSchedule(t, p)
}

// A transaction was withdrawn that waited for another one; what was posted
// after the other one was done was never sent.
func TestSchedulePostAfterWithdrawal(t *testing.T) {
	p := schedulePlan(5 * time.Millisecond)
	p.kind = "opencpi-legacy" // one transaction at a time
	for i := range 10 {
		// Done after 10 ms; most of the writes expire before.
		p.flows = append(p.flows,
			propertyFlowPlan{to: 1, start: time.Duration(1+i*40) * time.Millisecond, count: 1, depth: 1, segments: []int{8}, completion: true},
			propertyFlowPlan{to: 1, start: time.Duration(2+i*40) * time.Millisecond, count: 8, depth: 1, segments: []int{8}, completion: true, wait: true},
		)
	}
	runSchedule(t, p)
}

// Everything the first life said came again when both sides had begun another
// one, and was believed: old data replaced new.
func TestScheduleWholeLifeHeldBack(t *testing.T) {
	p := schedulePlan(10 * time.Microsecond)
	p.mayFail = true
	held := simnet.Link{Latency: 10 * time.Microsecond, HoldBack: 1, HoldFor: time.Second}
	p.links[[2]int{0, 1}] = held
	p.flows = []propertyFlowPlan{{to: 1, start: 1, count: 60, depth: 1, segments: []int{900, 4}, completion: true, reuse: true}}
	for i, at := range []time.Duration{300, 700, 1100} {
		p.actions = append(p.actions, propertyAction{
			at: at*time.Microsecond + 1, verb: verbRestart, from: []int{0, 1, 0}[i], crash: true, gap: time.Microsecond,
		})
	}
	runSchedule(t, p)
}

// Reset before the peer had heard anything made us refuse the only life it had.
func TestScheduleResetDuringIntroduction(t *testing.T) {
	for _, at := range []time.Duration{1, 300, 1000, 4000} {
		p := schedulePlan(100 * time.Microsecond)
		p.giveUp = 2 * time.Second
		p.links[[2]int{0, 1}] = simnet.Link{Down: true}
		p.flows = []propertyFlowPlan{
			{to: 1, start: 6 * time.Millisecond, count: 3, depth: 1, segments: []int{100}, completion: true},
			{from: 1, start: 7 * time.Millisecond, count: 3, depth: 1, segments: []int{100}, completion: true},
		}
		p.actions = []propertyAction{
			{at: at * time.Microsecond, verb: verbReset, from: 0, to: 1},
			{at: 5 * time.Millisecond, verb: verbLink, from: 0, to: 1, link: simnet.Link{Latency: time.Millisecond}},
		}
		runSchedule(t, p)
	}
}

// A new life used the ids of the old one again, and took acknowledgements that
// were still under way for its own.
func TestScheduleAckOfAnOldLife(t *testing.T) {
	p := schedulePlan(100 * time.Microsecond)
	p.mayFail = true
	p.each[0] = propertyNodePlan{first: 7, repeatFirst: true}
	p.links[[2]int{1, 0}] = simnet.Link{
		Latency: 2 * time.Millisecond, Reorder: 0.4, ReorderBy: 6 * time.Millisecond, Duplicate: 1,
	}
	p.flows = []propertyFlowPlan{{to: 1, start: 1, count: 60, depth: 20, segments: []int{1000}, completion: true}}
	p.actions = []propertyAction{{at: 7*time.Millisecond + 1, verb: verbRestart, crash: true, gap: time.Microsecond}}
	for seed := range uint64(20) {
		p.seed = seed
		runSchedule(t, p)
	}
}

// Hellos had become rare while nothing was to be sent, and did not become
// frequent again: an impatient sender gave up without having asked.
func TestSchedulePostAfterLongSilence(t *testing.T) {
	p := schedulePlan(100 * time.Microsecond)
	p.mayFail, p.giveUp, p.duration = true, 300*time.Millisecond, 4*time.Second
	for i := range 2 {
		p.actions = append(p.actions,
			propertyAction{at: 1, verb: verbLink, from: i, to: 1 - i, link: simnet.Link{Down: true}},
			propertyAction{at: 2900 * time.Millisecond, verb: verbLink, from: i, to: 1 - i, link: simnet.Link{Latency: time.Millisecond}},
		)
		p.flows = append(p.flows, propertyFlowPlan{
			from: i, to: 1 - i, start: 3 * time.Second, count: 3, depth: 1, segments: []int{100}, completion: true,
		})
	}
	p.mayFail = false
	runSchedule(t, p)
}

// As in TestScheduleAckOfAnOldLife, but none of the old life's frames had come yet: nobody knew which
// ids it had used.
func TestScheduleAckOfAnOldLifeUnheard(t *testing.T) {
	p := schedulePlan(4 * time.Microsecond)
	p.mayFail, p.mtu = true, 9000
	p.each[1] = propertyNodePlan{first: 4, repeatFirst: true}
	p.links[[2]int{0, 1}] = simnet.Link{Latency: 4 * time.Microsecond, Jitter: 2 * time.Microsecond, Rate: 24e6}
	p.links[[2]int{1, 0}] = simnet.Link{Latency: 12 * time.Microsecond, Loss: 0.07, Reorder: 0.44, ReorderBy: 400 * time.Microsecond}
	p.flows = []propertyFlowPlan{{from: 1, start: 1, count: 4, depth: 1, segments: []int{40000}, completion: true}}
	for seed := range fixture.Fewer[uint64](100, 30) {
		p.seed = seed
		p.actions = []propertyAction{{at: 416 * time.Microsecond, verb: verbRestart, from: 1, gap: 8 * time.Microsecond}}
		runSchedule(t, p)
	}
}

// Who had nothing posted named a life that never confirmed for less than half of GiveUp, though the peer had something
// posted in that life: after a blackout both began anew, and it was lost.
func TestScheduleLifeThatAnotherPostsIn(t *testing.T) { runSchedule(t, planFor(56469)) }
