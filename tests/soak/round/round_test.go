package round

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/netns"
)

var firstSeed = flag.Uint64("seed", 1, "seed of the first round")

func TestMain(m *testing.M) { os.Exit(fixture.Run(m)) }

// rounds runs some, and wants no violation and that something was done.
func rounds(t *testing.T, w Wire, n int, longest time.Duration) {
	var c Counts
	damages := false
	for i := range n {
		p := Draw(*firstSeed+uint64(i), w, longest)
		damages = damages || p.damage() > 0 && w == Simnet
		if fails := Run(t, p, &c, t.ArtifactDir()); len(fails) > 0 {
			t.Errorf("again with: go run ./tests/soak -wire %s -longest %v -seed %d -rounds 1\n%v%s", w, longest, p.Seed, p, fails)
		}
	}
	t.Log(c.String())
	if c.Done.Load() == 0 || c.Rounds.Load() != uint64(n) {
		t.Error("nothing was done")
	}
	if damages && c.Faults()[changedBehind] == 0 {
		t.Error("no frame was changed behind the checksum, or none was counted")
	}
}

func TestSimnet(t *testing.T) { rounds(t, Simnet, fixture.Fewer(40, 5), time.Second) }

func TestUDP(t *testing.T) {
	netns.Require(t)
	rounds(t, UDP, 1, 700*time.Millisecond)
}

func TestEther(t *testing.T) {
	netns.Require(t)
	rounds(t, Ether, 1, 700*time.Millisecond)
}

// TestWaitsItsTurn: a transaction that waits for a minute behind what was posted before it does not stand still. That was
// said of the round with this seed.
func TestWaitsItsTurn(t *testing.T) {
	var c Counts
	p := Draw(657118939115, Simnet, time.Minute)
	if len(p.Flows) != 2 || p.Flows[0].Way != p.Flows[1].Way || p.Nodes[0].Window != 1 {
		t.Fatalf("the seed draws another round by now:\n%v", p)
	}
	if fails := Run(t, p, &c, t.ArtifactDir()); len(fails) > 0 {
		t.Error(fails)
	}
}

// TestSameSeed: a plan follows from its seed.
func TestSameSeed(t *testing.T) {
	for seed := range uint64(50) {
		for _, w := range Wires {
			a, b := Draw(seed, w, time.Minute), Draw(seed, w, time.Minute)
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("two plans:\n%v%v", a, b)
			}
		}
	}
}
