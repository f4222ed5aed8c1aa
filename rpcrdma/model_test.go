package rpcrdma

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
)

var (
	worlds = flag.Int("worlds", 100, "how many random worlds TestModel runs")
	from   = flag.Uint64("from", 1, "seed of the first one")
)

// TestModel checks random programs of calls over fake queue pairs in virtual time, of both versions and directions, against
// whole messages and images of memory. Each call is carried out at most once, and its Reply is the one that was
// replied. Nothing is written or read but what was lent, and nothing when the caller has it back. Credits are never exceeded:
// a message without a receive would end the stream.
func TestModel(t *testing.T) {
	t.Logf("worlds from seed %d", *from)
	calls := 0
	for seed := *from; seed < *from+uint64(*worlds); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x72706372646d61))}
			w.run(10 + w.rng.IntN(60))
			calls += w.served
		})
	}
	t.Logf("%d worlds, %d calls carried out", *worlds, calls)
}
