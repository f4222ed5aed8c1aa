package foreign

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
)

// TestRunIsItsFrames checks that a run of frames leaves what its frames leave one by one, whatever its length, for each kind of peer, also
// across the wrap of ids.
func TestRunIsItsFrames(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, p := range []Profile{FPGA(), OpenCPI(false), OpenCPI(true), OpenCPI2(), Legacy(false)} {
		for _, first := range []frame.Seq{1, 1000, 65500} {
			var each, runs Receiver
			var open reassembly.Table
			each.Init(&p, &open)
			runs.Init(&p, &open)
			now, q := ack.Instant(time.Hour), first
			for range 20 {
				now = now.Add(time.Duration(rnd.IntN(int(time.Second))))
				m := frame.Message{Txn: rnd.Uint32N(100), Addr: rnd.Uint32(), Len: 1 + uint16(rnd.IntN(1400)), Index: 1, Count: 1000}
				apply := func(r *Receiver, q frame.Seq, m frame.Message) {
					f := frame.Frame{Header: frame.Header{Seq: q, Flags: frame.FlagMessages}}
					if v := r.Judge(now, &f, &m, false); v != New {
						t.Fatalf("%s: frame %d is %v", p.Name, q, v)
					}
					r.Applied(now, &f)
				}
				apply(&each, q, m)
				apply(&runs, q, m)
				n := 1 + rnd.IntN(300)
				x := m
				for i := range n {
					x.Index++
					x.Addr += uint32(x.Len)
					apply(&each, q.Add(i+1), x)
				}
				runs.AppliedRun(now, n, &m)
				q = q.Add(n + 1 + rnd.IntN(3))
				each.Ledger, runs.Ledger = Ledger{}, Ledger{} // which knows its receiver
				each.acks, runs.acks = nil, nil               // they say what the first frame did
				each.life, runs.life = life{}, life{}
				if !reflect.DeepEqual(&each, &runs) {
					t.Fatalf("%s: after a run of %d from %d they differ", p.Name, n, q)
				}
			}
		}
	}
}
