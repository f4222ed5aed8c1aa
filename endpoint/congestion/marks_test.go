package congestion

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// TestMarkedRound checks that marks are answered as losses are, once for those of a window, whoever stands before the flow.
func TestMarkedRound(t *testing.T) {
	const rtt, rate = 40 * ms, 20e6 / 8
	run := func(marks int) (b *BBR, before, after float64) {
		net := newBottleneck(1, 8*rate, 1e6)
		b = NewBBR(testMTU, 7)
		f := net.flow(NewLimited(b, 1e9), rtt, 0)
		for net.run(3 * time.Second); b.state != Cruise; {
			net.run(time.Duration(net.now) + ms)
		}
		before = b.bandwidth.bounded()
		for range marks {
			f.ctl.(ack.Heeding).OnMarked(net.now, 1)
			net.run(time.Duration(net.now) + rtt/time.Duration(2*marks))
		}
		net.run(time.Duration(net.now) + 2*rtt)
		return b, before, b.bandwidth.bounded()
	}
	if b, before, after := run(0); after != before || b.loss.shortTerm != bbrUnknown {
		t.Errorf("without a mark: %v became %v, %v", before, after, b)
	}
	_, _, once := run(1)
	for _, marks := range []int{1, 10} {
		b, before, after := run(marks)
		if after > before || after < lossBeta*before || b.loss.shortTerm == bbrUnknown {
			t.Errorf("%d marks: %v became %v, %v", marks, before, after, b)
		}
		if after < .95*once {
			t.Errorf("%d marks in half a round trip: %v, one made it %v", marks, after, once)
		}
	}
	if NewLimited(&ack.FixedWindow{}, 1000).HeedsMarks() || !NewLimited(NewBBR(testMTU, 1), 1000).HeedsMarks() {
		t.Error("a limit heeds marks where the controller before it does not, or does not where that does")
	}
}

// TestMarksEndStartup checks that one mark ends the start, as one loss ends a slow start.
func TestMarksEndStartup(t *testing.T) {
	net := newBottleneck(1, 1e9, 1e7)
	b := NewBBR(testMTU, 7)
	net.flow(b, 40*ms, 0)
	net.run(130 * ms)
	if b.state != Startup {
		t.Fatalf("%v", b)
	}
	b.OnMarked(net.now, 1)
	if net.run(175 * ms); b.state == Startup || b.loss.longTerm == bbrUnknown {
		t.Errorf("after a mark: %v", b)
	}
}

// TestMarksByPath checks that marks are heeded where the path is known to be far.
func TestMarksByPath(t *testing.T) {
	r := &byPathRig{p: NewByPath(testMTU, 1, false)}
	if r.p.HeedsMarks() {
		t.Error("before a round trip is known")
	}
	if r.rounds(ms, 20*ms); !r.p.HeedsMarks() {
		t.Error("not on a far path")
	}
	r.p.OnMarked(r.now, 3)
	if n := r.p.Controller.(*BBR).loss.batchMarked; n != 3 {
		t.Errorf("%d frames are marked, want 3", n)
	}
	if r.rounds(ms, ms/2); r.p.HeedsMarks() {
		t.Error("on a near path")
	}
	r.p.OnMarked(r.now, 1) // of before
}
