package congestion

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// byPathRig sends a frame after the other, each of which takes as long.
type byPathRig struct {
	p     *ByPath
	now   ack.Instant
	order uint32
}

func (r *byPathRig) rounds(d, rtt time.Duration) {
	for end := r.now.Add(d); r.now < end; {
		r.order += 2
		r.p.OnSent(r.now, r.order-1, testMTU)
		r.p.OnSent(r.now, r.order, testMTU)
		r.now = r.now.Add(rtt)
		r.p.OnAcked(r.now, r.order-1, testMTU, rtt)
		r.p.EndBatch(r.now)
		r.p.OnAcked(r.now, r.order, testMTU, rtt)
		r.p.EndBatch(r.now)
	}
}

// TestByPath checks that a path is taken for one that others use, until a round trip is as short as no such path has it, and again when all
// have been longer for long.
func TestByPath(t *testing.T) {
	r := &byPathRig{p: NewByPath(testMTU, 1, false)}
	if got := r.p.Inspect(); got.Why != "no round trip is known" || got.State != "Startup" {
		t.Errorf("before the first frame: %+v", got)
	}
	for _, step := range []struct {
		d, rtt time.Duration
		near   bool
	}{
		{20 * time.Second, 2 * ms, false},
		{ms, ms / 2, true},
		{3 * time.Second, 20 * ms, true},   // a busy host
		{ms, ms / 2, true},                 // it is not any more
		{20 * time.Second, 2 * ms, true},   // nothing says that it is another path
		{20 * time.Second, 20 * ms, false}, // it is
		{ms, 900 * time.Microsecond, true},
	} {
		if r.rounds(step.d, step.rtt); r.p.IsFar() == step.near {
			t.Errorf("after %v of round trips of %v far is %v", step.d, step.rtt, r.p.IsFar())
		}
		if _, adaptive := r.p.Controller.(*ack.Adaptive); adaptive != step.near {
			t.Errorf("after round trips of %v the controller is %T", step.rtt, r.p.Controller)
		}
		want := ack.ControllerState{Controller: "bbr", Why: "no round trip of late took less than 1ms"}
		if step.near {
			want = ack.ControllerState{Controller: "adaptive", Why: "a round trip took less than 1ms"}
		}
		if got := r.p.Inspect(); got.Controller != want.Controller || got.Why != want.Why || got.Bandwidth == 0 && !step.near {
			t.Errorf("after round trips of %v: %+v", step.rtt, got)
		}
	}
	if r.p.inFlight != 0 {
		t.Errorf("%d bytes in flight", r.p.inFlight)
	}
}

// TestRoutedIsFar checks that short round trips make no path near on which there is a router.
func TestRoutedIsFar(t *testing.T) {
	r := &byPathRig{p: NewByPath(testMTU, 1, true)}
	r.rounds(time.Second, ms/4)
	if s := r.p.Inspect(); !r.p.IsFar() || s.Controller != "bbr" || s.Why != "a router is on the way" {
		t.Errorf("far %v, %+v", r.p.IsFar(), s)
	}
}

// TestByPathChangesInFlight checks that what is in flight counts for the controller that takes over.
func TestByPathChangesInFlight(t *testing.T) {
	r := &byPathRig{p: NewByPath(testMTU, 1, false)}
	for i := range uint32(5) {
		r.p.OnSent(r.now, 1000+i, testMTU)
	}
	r.rounds(ms, ms/2)
	for i := range uint32(4) {
		r.p.OnAcked(r.now, 1000+i, testMTU, -1)
	}
	r.rounds(20*time.Second, 20*ms)
	if b := r.p.Controller.(*BBR); b.rates.inFlight != testMTU {
		t.Errorf("%d bytes in flight, want the frame that is", b.rates.inFlight)
	}
	r.p.OnLost(r.now, 1004, testMTU, true)
	if b := r.p.Controller.(*BBR); b.rates.inFlight != 0 {
		t.Errorf("%d bytes in flight, want none", b.rates.inFlight)
	}
}
