package ack

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// TestReceiverAcceptsRuns: a run leaves what its frames would have left one by one, whatever
// came before.
func TestReceiverAcceptsRuns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for world := range 400 {
		cfg := ReceiverConfig{History: 1 << rnd.IntN(12), Ahead: rnd.IntN(200), Repeat: rnd.IntN(2) == 0, SplitAtWrap: rnd.IntN(2) == 0}
		var runs, each Receiver
		runs.Init(cfg)
		each.Init(cfg)
		at := frame.Seq(rnd.Uint32())
		runs.Accept(at, 1)
		each.Accept(at, 1)
		for step := range 60 {
			switch q := each.Newest(); rnd.IntN(6) {
			case 0: // a frame is lost, or comes late
				if q = q.Add(rnd.IntN(20) - 10); each.Check(q) == New {
					runs.Accept(q, uint16(step))
					each.Accept(q, uint16(step))
				}
			case 1:
				w := each.Newest().Add(rnd.IntN(5) - 1)
				runs.AckOnly(w)
				each.AckOnly(w)
			case 2:
				runs.Sight(q.Add(1000))
				each.Sight(q.Add(1000))
			case 3:
				runs.Again(q)
				each.Again(q)
			case 4:
				runs.DropPending()
				each.DropPending()
			default:
				tags := make([]uint16, rnd.IntN(3*MaxRun))
				for i := range tags {
					tags[i] = uint16(rnd.Uint32())
					each.Accept(q.Add(1+i), tags[i])
				}
				runs.AcceptRun(tags)
			}
			if !reflect.DeepEqual(runs, each) {
				t.Fatalf("world %d, step %d, %+v:\n%+v\n%+v", world, step, cfg, runs, each)
			}
		}
	}
}
