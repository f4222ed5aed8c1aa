package bench

import (
	"runtime"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestPlansAreBounded: whatever plan is allowed, the queues of neither side hold more than MostQueued, and what holds more is refused in words.
func TestPlansAreBounded(t *testing.T) {
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	allowed, refused := 0, 0
	for v := range Verb(len(verbNames)) {
		for _, verify := range []Verify{VerifyOff, VerifyFull} {
			for _, way := range []struct {
				bothWays uint32
				receive  bool
			}{{0, false}, {1, true}, {1, false}} {
				for peers := uint32(1); peers <= 1<<20; peers *= 16 {
					for depth := uint32(1); depth <= 1<<20; depth *= 4 {
						p := Plan{Size: 8, Peers: peers, Depth: depth, Active: 1, Verify: verify, BothWays: way.bothWays}
						if v == VerbSend && way.bothWays != 0 && !way.receive {
							continue
						}
						if err := v.Check(p, way.receive); err != nil {
							refused++
							if v.Check(Plan{Size: 8, Peers: 1, Depth: 1, Active: 1, Verify: verify, BothWays: way.bothWays}, way.receive) != nil || !strings.Contains(err.Error(), "work requests and receives at a side, which take a kilobyte each: choose less of one of them") {
								t.Errorf("%v %+v: %v", v, p, err)
							}
							continue
						}
						allowed++
						for _, side := range []struct{ source, target bool }{{!way.receive, way.bothWays != 0}, {way.bothWays != 0, !way.receive}} {
							one := p
							one.Peers = 1 // all are alike
							var memory []byte
							if side.target {
								memory = make([]byte, one.needs())
							}
							l, err := newLanes(h, one, v, memory, side.source)
							if err != nil {
								t.Fatal(err)
							}
							o := l.options(0)
							if len(o.Posted) > o.Receives {
								t.Errorf("%v %+v: %d receives are posted, and there is room for %d", v, p, len(o.Posted), o.Receives)
							}
							if holds := int(peers) * (o.Sends + len(o.Posted) + 2*o.IRD); holds > MostQueued {
								t.Errorf("%v %+v: its queues hold %d", v, p, holds)
							}
							l.close()
						}
					}
				}
			}
		}
	}
	if allowed == 0 || refused == 0 {
		t.Errorf("%d are allowed, %d refused", allowed, refused)
	}
	worst := Plan{Size: 8, Peers: 64, Depth: 4096, Active: 1, Verify: VerifyFull, BothWays: 1}
	if err := VerbFlush.Check(worst, false); err == nil {
		t.Error("a plan is allowed that takes several times as much")
	}
	for _, p := range []Plan{{Size: 8, Peers: 1<<32 - 1, Depth: 1<<32 - 1, Active: 1}, {Size: 8, Peers: 1 << 31, Depth: 1 << 31, Active: 1}} {
		if VerbWrite.Check(p, false) == nil {
			t.Errorf("%+v is allowed", p)
		}
	}
}

// TestQueuedTakesAKilobyte: that is what the bound on memory counts on.
func TestQueuedTakesAKilobyte(t *testing.T) {
	const idle = 1 << 20 // of both ends of a queue pair
	for _, v := range []Verb{VerbFlush, VerbWrite, VerbRead, VerbSend} {
		p := Plan{Size: 8, Peers: 1, Depth: 4096, Active: 4096, Verify: VerifyFull}
		if v != VerbSend {
			p.BothWays = 1
		}
		_, c, served := verbsEnds(t, nil)
		c.Verb, c.Plan = v, p
		before := heap()
		if err := c.open(t.Context()); err != nil {
			t.Fatal(err)
		}
		grown := int64(heap()) - int64(before)
		if most := 2*int64(v.queued(p, false))<<10 + 2*int64(p.needs()) + idle; grown > most {
			t.Errorf("%v: both sides take %d bytes, more than %d, for %d each", v, grown, most, v.queued(p, false))
		}
		c.shut()
		c.Close()
		<-served
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
