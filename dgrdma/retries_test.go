package dgrdma

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/run"
	"github.com/dgrdma/dgrdma/frame"
)

// TestTriesBecomeRare checks that what is not acknowledged is sent again ever more rarely, but ten
// times before the peer times out and once a second; and to a peer that tells copies by the time
// between them so often that it is no other life if eight in a row are lost.
func TestTriesBecomeRare(t *testing.T) {
	ours, copies, never := Native(), OpenCPI(false), OpenCPI(false)
	copies.MinTimeout, copies.PeerAckDelay = ours.MinTimeout, ours.PeerAckDelay
	never.MinTimeout, never.PeerAckDelay = ours.MinTimeout, ours.PeerAckDelay
	never.NeverRetransmits = true
	for _, x := range []struct {
		name         string
		p            Profile
		giveUp, most time.Duration
	}{
		{"patient", ours, time.Minute, time.Second},
		{"impatient", ours, 3 * time.Second, 300 * time.Millisecond},
		{"copies", copies, time.Minute, copies.CopyFor / 8},
		{"impatient, copies", copies, time.Second, 100 * time.Millisecond},
		{"nothing comes again", never, time.Minute, time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			var r *halfRig
			var at []ack.Instant
			note := func(PeerName, frame.Seq, bool) { at = append(at, r.now) }
			r = newHalfRig(t, 1, x.p, Config{GiveUp: x.giveUp, Trace: &Trace{FrameLost: note}})
			r.come(1 << 20)
			r.posts(8)
			for r.c.tx.err == nil {
				r.waits()
			}
			longest := time.Duration(0)
			for i := 1; i < len(at); i++ {
				d := at[i].Sub(at[i-1])
				if d < longest || d > x.most {
					t.Fatalf("try %d after %v, the one before after %v; want no more than %v", i, d, longest, x.most)
				}
				longest = d
			}
			if longest != x.most {
				t.Errorf("the last of %d tries after %v, want %v", len(at), longest, x.most)
			}
		})
	}
}

// slow is a controller that lets nothing go before a moment.
type slow struct {
	ack.FixedWindow
	until ack.Instant
}

func (s *slow) NextSend(now ack.Instant, _ int) ack.Instant { return max(now, s.until) }

// slow has the wire take nothing more for a while.
func (r *halfRig) slow(d time.Duration) { r.c.tx.ctl.(*slow).until = r.now.Add(d) }

// TestLostLeavesWhenTheWireIsFree checks that one frame that was lost is sent again when the wire
// takes it, though nothing else is posted.
func TestLostLeavesWhenTheWireIsFree(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{MTU: 82, NewController: func(int) ack.Controller { return &slow{} }})
	r.come(1 << 20)
	r.posts(40, 40, 40, 40)
	const wait = time.Millisecond
	r.slow(wait)
	began := r.now
	for range 3 {
		r.acknowledges(1)
	}
	for r.c.tx.unacked.Lost() > 0 {
		r.waits()
	}
	if d := r.now.Sub(began); d != wait || r.c.tx.counters.RetransmitsFast != 1 {
		t.Errorf("sent again after %v, want %v: %+v", d, wait, r.c.tx.counters)
	}
}

// TestOneFrameUntilProven checks that a card of which it is not known whether it counts from our
// first id is sent one frame, and others when it has acknowledged that.
func TestOneFrameUntilProven(t *testing.T) {
	r := newHalfRig(t, 1, FPGA(), Config{MTU: 1490})
	r.come(0)
	r.posts(1024, 1024, 1024)
	if n := len(r.flying); n != 1 {
		t.Fatalf("%d frames are sent", n)
	}
	r.acknowledges(0)
	if n := len(r.flying); n != 2 {
		t.Errorf("%d frames more are sent, want 2", n)
	}
}

// TestNoAckForATimedOutPeer checks that what was to be acknowledged to a peer when it timed out is
// not, though a HELLO comes in its name and is answered; and that nothing waits for anything.
func TestNoAckForATimedOutPeer(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	r.come(1 << 20)
	r.comes(1)
	var fin finished
	r.c.tx.fail(r.now, &fin, ErrPeerDown)
	r.now = r.now.Add(time.Second)
	r.batch()
	if r.diary.waits || r.diary.at != run.Never {
		t.Errorf("to be served: %v, to be looked at at %v", r.diary.waits, r.diary.at)
	}
	r.hellos(1 << 21)
	r.serve()
	if n := r.c.tx.counters; n.FramesSent != 1 || n.AcksAlone != 0 {
		t.Errorf("sent %+v", n)
	}
}

// TestNoLossOfATimedOutPeer checks that ids that did not come are no loss any more when
// their peer timed out before it was time to say so.
func TestNoLossOfATimedOutPeer(t *testing.T) {
	for _, down := range []bool{false, true} {
		r := newHalfRig(t, 1, FPGA(), Config{})
		r.come(0)
		r.cameNew(100)
		r.cameNew(110)
		r.batch()
		if down {
			var fin finished
			r.c.tx.fail(r.now, &fin, ErrPeerDown)
		}
		missed := 0
		for range 4 {
			r.now = r.now.Add(missedAfter)
			n, _ := r.c.tx.overdue(r.now, r.now)
			missed += n
		}
		if (missed == 0) != down {
			t.Errorf("%d ids are missed of a peer that was given up: %v", missed, down)
		}
	}
}

// TestCancelledTooLate checks that what has failed, and was not answered yet, cannot be cancelled.
func TestCancelledTooLate(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	var got error
	x := write(64, make([]byte, 8), 0, 1)
	x.Done = func(_ *Transaction, err error) { got = err }
	if err := r.c.Post(x); err != nil {
		t.Fatal(err)
	}
	var fin finished
	r.c.tx.fail(r.now, &fin, ErrPeerDown)
	if r.c.cancel(x) {
		t.Error("it was taken back")
	}
	fin.deliver()
	if got != ErrPeerDown {
		t.Errorf("answered with %v", got)
	}
}
