package wires

import (
	"testing"

	"github.com/dgrdma/dgrdma/internal/emulator"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestMarkedOnTheWay: the kernels of both sides carry marks of congestion over UDP, and a queue that marks what can carry one drops nothing of a flow that
// heeds them. Ethernet has no marks.
func TestMarkedOnTheWay(t *testing.T) {
	eachWire(t, func(t *testing.T, w wire) {
		cfg, err := emulator.Parse("rate=20M,rtt=20ms,queue=1000k,codel=yes")
		if err != nil {
			t.Fatal(err)
		}
		p := netns.NewPath(t, 1500, cfg)
		const slots, size = 16, 100_000
		a, b, toB, _ := couple(t, p.Pair, w, slots, size)
		there := a.flow(toB, 0, slots, size)
		if err := there.send(75); err != nil { // 3 s
			t.Fatal(err)
		}
		b.verify(there)
		s, queue := toB.Stats(), p.Router.Way(0)
		if !w.datagrams {
			if s.ECN != "" || queue.Marked != 0 || s.MarksEchoed != 0 {
				t.Errorf("%q, %d marked, %d echoed", s.ECN, queue.Marked, s.MarksEchoed)
			}
			return
		}
		if s.ECN != "on" || s.MarksFailed != 0 || s.MarksEchoed == 0 || s.MarksEchoed > queue.Marked || s.MarksEchoed+20 < queue.Marked {
			t.Errorf("%q: %d marked, %d echoed, %d failed", s.ECN, queue.Marked, s.MarksEchoed, s.MarksFailed)
		}
		// What leaves before the round trip is known can carry no mark.
		if queue.Dropped > 2 {
			t.Errorf("%d dropped, %d marked", queue.Dropped, queue.Marked)
		}
		t.Logf("%d marked of %d, %d dropped, 95 %% waited less than %v", queue.Marked, queue.Frames, queue.Dropped, queue.Delay95)
	})
}
