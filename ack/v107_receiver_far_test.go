package ack

import (
	"testing"
)

// Attack A11 (SECURITY.md): one frame does not move the window further than the
// peer's ids can have gone, else all that the peer sends afterwards is old.
func TestReceiverFarNeedsWitness(t *testing.T) {
	for _, ahead := range []int{257, 5000, 16384, 32000, 32757} {
		receiverTests(t, ReceiverConfig{History: MaxHistory, Ahead: 256}, func(r *receiverTest) {
			far := 10 + ahead
			r.acceptRun(1, 10)
			before := r.r.Newest()
			r.ackOnly(far)
			if got := r.r.Newest().Diff(before); got != 0 {
				t.Fatalf("one frame %d ids ahead moved the window by %d", ahead, got)
			}
			r.want(Duplicate, 1, 10)
			r.want(New, 11, 266)
			if ahead > 1000 {
				r.want(Far, 600)
			}
			r.want(New, far, far+1, far-100) // would be the second one that says so
			r.accept(11, 12)
			r.ackOnly(far + 5)
			if got := r.r.Newest().Diff(before); got != 2 {
				t.Fatalf("the window moved by %d, though the peer went on where it was", got)
			}
			r.want(New, 13)
		})
	}
}

// The ids of a peer may really have gone on that far: what carried them was lost.
// Two frames in a row that say so are believed, of whatever kind and order.
func TestReceiverFarWitnessed(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: MaxHistory, Ahead: 256}, func(r *receiverTest) {
		r.acceptRun(1, 10)
		before := r.r.Newest()
		r.ackOnly(20000, 20001)
		if got := r.r.Newest().Diff(before); got != 19991 {
			t.Fatalf("the window moved by %d, want 19991", got)
		}
		r.want(New, 20000-100, 20002)
		r.want(Old, 10)
		// A frame with messages, which is refused and comes again.
		r.want(Far, 40000)
		r.r.Sight(r.id(40000))
		r.want(New, 40000, 40001, 39999)
		r.want(Far, 40257, 39743)
		r.accept(40000)
		r.want(Duplicate, 40000)
		// Another one that overtook it.
		r.want(Far, 60000)
		r.r.Sight(r.id(60000))
		r.accept(59990)
		r.want(New, 60000)
		r.accept(60000)
		r.want(Duplicate, 59990, 60000)
		// Two that do not agree are no witnesses for each other.
		r.ackOnly(70000, 80000, 70000)
		r.want(Duplicate, 59990, 60000)
		r.want(New, 60001)
	})
}

// The ids that are within reach need no witness, and before the first frame with
// messages none does.
func TestReceiverFarLimits(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 1024, Ahead: 256}, func(r *receiverTest) {
		r.want(New, 1, 30000)
		r.ackOnly(20000)
		r.accept(1)
		r.want(New, 257)
		r.want(Far, 258)
		r.ackOnly(257)
		r.want(New, 258, 513)
		r.want(Far, 514)
		r.r.Sight(r.id(514))
		r.r.Reset()
		r.accept(1)
		r.want(Far, 514)
	})
}

// Before the first frame there is nothing that an id could be too far from.
func TestReceiverFarBeforeTheFirst(t *testing.T) {
	receiverTests(t, ReceiverConfig{History: 256, Ahead: 100}, func(r *receiverTest) {
		r.ackOnly(5000)
		if got := r.r.Newest(); got != r.id(5000) {
			t.Errorf("newest %d, want %d", got, r.id(5000))
		}
	})
}
