package simnet

import (
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/bottleneck"
)

// faults draws the fates of a link's datagrams, each from a generator of its
// own, so that turning one on leaves the pattern of the others as it was.
type faults struct {
	loss, duplicate, reorder, corrupt, holdBack, jitter, bit, damage, harm, gilbert generator

	runLeft int  // datagrams that share the current draw for loss
	runLost bool // what was drawn
	chain   bottleneck.Chain
}

// fate is what chance has in store for one datagram.
type fate struct {
	lost, duplicated, reordered, corrupted, damaged, held bool

	jitter time.Duration
}

func newFaults(key uint64) faults {
	return faults{
		loss:      newGenerator(key, 1),
		duplicate: newGenerator(key, 2),
		reorder:   newGenerator(key, 3),
		corrupt:   newGenerator(key, 4),
		holdBack:  newGenerator(key, 5),
		jitter:    newGenerator(key, 6),
		bit:       newGenerator(key, 7),
		damage:    newGenerator(key, 8),
		harm:      newGenerator(key, 9),
		gilbert:   newGenerator(key, 10),
	}
}

// draw always draws for every fault that is on, even if an earlier one makes
// the others irrelevant: the patterns must not depend on each other.
func (f *faults) draw(cfg *Link) fate {
	single, burst := f.drawLoss(cfg), f.drawBurst(cfg)
	return fate{
		lost:       single || burst,
		duplicated: f.duplicate.chance(cfg.Duplicate),
		reordered:  f.reorder.chance(cfg.Reorder),
		corrupted:  f.corrupt.chance(cfg.Corrupt),
		damaged:    f.damage.chance(cfg.Damage),
		held:       f.holdBack.chance(cfg.HoldBack),
		jitter:     f.drawJitter(cfg.Jitter),
	}
}

func (f *faults) drawLoss(cfg *Link) bool {
	if cfg.Loss == 0 {
		return false
	}
	if f.runLeft == 0 {
		f.runLeft = max(cfg.Burst, 1)
		f.runLost = f.loss.chance(cfg.Loss)
	}
	f.runLeft--
	return f.runLost
}

func (f *faults) drawBurst(cfg *Link) bool {
	if cfg.GilbertElliott == (bottleneck.GilbertElliott{}) {
		return false
	}
	return f.chain.Lost(&cfg.GilbertElliott, f.gilbert.fraction)
}

func (f *faults) drawJitter(bound time.Duration) time.Duration {
	if bound == 0 {
		return 0
	}
	return time.Duration(f.jitter.below(uint64(bound)))
}

// flip makes one bit wrong.
func (f *faults) flip(b []byte) {
	if len(b) > 0 {
		i := f.bit.below(uint64(len(b)) * 8)
		b[i/8] ^= 1 << (i % 8)
	}
}

type generator struct{ pcg rand.PCG }

func newGenerator(key, purpose uint64) generator {
	var g generator
	g.pcg.Seed(mix(key), mix(key^mix(purpose)))
	return g
}

func (g *generator) chance(p float64) bool {
	return p > 0 && g.fraction() < p
}

// fraction draws a number from 0 to below 1.
func (g *generator) fraction() float64 { return float64(g.pcg.Uint64()>>11) / (1 << 53) }

func (g *generator) below(n uint64) uint64 {
	hi, _ := bits.Mul64(g.pcg.Uint64(), n) // bias below 2^-20, of no concern here
	return hi
}

// linkKey depends on the direction and nothing else, so not on when or by
// which goroutine a link is first used.
func linkKey(seed uint64, from, to transport.Addr) uint64 {
	h := fnv.New64a()
	h.Write([]byte(from.String()))
	h.Write([]byte{'>'})
	h.Write([]byte(to.String()))
	return mix(mix(seed) ^ h.Sum64())
}

// mix is the finalizer of SplitMix64: seeds that differ in one bit give
// unrelated values.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
