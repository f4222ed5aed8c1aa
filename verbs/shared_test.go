package verbs_test

import (
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// TestSharedReceivesAreTakenInOrder (RDMAP-004, 046, 108, DDP-007, RDMAPX-037): messages of several queue pairs, of every kind, take the receives that they share in the order in which
// those were posted, also where the places of the queue are used again, and complete in the queue of the queue pair that they came to. A message for
// which none is left ends its queue pair, and no other.
func TestSharedReceivesAreTakenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 6
		shared := verbs.NewSharedReceives(places)
		o := &verbs.Options{Extensions: all, Shared: shared}
		peers := []*fakePeer{newFakePeer(t, o), newFakePeer(t, o), newFakePeer(t, o)}
		posted, taken := uint64(0), uint64(0)
		done := make([]verbs.Completion, 4)
		for round := range 40 {
			for shared.Len() < places-round%3 {
				posted++
				if err := shared.Post(verbs.Receive{ID: posted, Data: make([]byte, 8)}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 1 + round%4 {
				f := peers[(round*3+i)%len(peers)]
				control := []byte{0x43, 0x45, 0x48, 0x49}[(round+i)%4]
				f.say(control, 0, 0, pattern(round, 8))
				taken++
				n := f.q.Received().Poll(done)
				if n != 1 || done[0].ID != taken || done[0].Err != nil || done[0].Length != 8 || done[0].QueuePair() != f.q || done[0].Immediate != (control >= 0x48) {
					t.Fatalf("round %d: message %d is %+v", round, taken, done[:n])
				}
			}
			if got := shared.Len(); got != int(posted-taken) {
				t.Fatalf("round %d: %d are left, want %d", round, got, posted-taken)
			}
		}
		for shared.Len() > 0 {
			peers[0].say(0x43, 0, 0, nil)
		}
		if got := fault(peers[1].say(0x43, 0, 0, nil)); got != ddp.UntaggedNoBuffer {
			t.Errorf("no receive is left: %v", got)
		}
		peers[1].ended(t, ddp.UntaggedNoBuffer)
		if err := shared.Post(verbs.Receive{ID: 99}); err != nil {
			t.Fatal(err)
		}
		peers[2].q.Received().Poll(done)
		peers[2].say(0x43, 0, 0, nil)
		if n := peers[2].q.Received().Poll(done); n != 1 || done[0].ID != 99 || done[0].Err != nil {
			t.Errorf("another queue pair received %+v", done[:n])
		}
	})
}

// TestWhenBelow (RDMAP-108): the program is called once when fewer receives are left than it said, at once where that is so already, and again only if it asks again.
func TestWhenBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := verbs.NewSharedReceives(8)
		f := newFakePeer(t, &verbs.Options{Shared: shared})
		calls := make(chan int, 10)
		below := func() { calls <- shared.Len() }
		called := func(want int) {
			t.Helper()
			synctest.Wait()
			if len(calls) != want {
				t.Errorf("called %d times, want %d", len(calls), want)
			}
			for len(calls) > 0 {
				<-calls
			}
		}
		for range 6 {
			if err := shared.Post(verbs.Receive{}); err != nil {
				t.Fatal(err)
			}
		}
		shared.WhenBelow(4, below)
		called(0)
		for left := 5; left >= 0; left-- {
			f.say(0x43, 0, 0, nil)
			called(map[bool]int{true: 1}[left == 3])
		}
		shared.WhenBelow(1, below)
		called(1)
		shared.WhenBelow(0, below)
		called(0)
	})
}
