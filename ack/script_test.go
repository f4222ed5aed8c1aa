package ack

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var scriptSeed = flag.Uint64("seed", 0, "run only the random script with this seed")

// script reads decisions from bytes; behind the end all are 0.
type script struct{ b []byte }

func (s *script) more() bool { return len(s.b) > 0 }

func (s *script) byte() int {
	if len(s.b) == 0 {
		return 0
	}
	v := s.b[0]
	s.b = s.b[1:]
	return int(v)
}

func (s *script) uint16() int { return s.byte() | s.byte()<<8 }

// randomScripts runs a test with random bytes, or with those of one seed. A
// script of random bytes would be all alike: each has favourites.
func randomScripts(t *testing.T, scripts, length int, run func(t testing.TB, b []byte)) {
	first, last := uint64(1), uint64(scripts)
	if *scriptSeed != 0 {
		first, last = *scriptSeed, *scriptSeed
	} else if testing.Short() {
		last /= 10
	}
	seed := uint64(0)
	defer func() {
		if t.Failed() {
			t.Logf("run again with -seed %d", seed)
		}
	}()
	for seed = first; seed <= last; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 0))
		b := make([]byte, rnd.IntN(length))
		favourites := make([]byte, 1+rnd.IntN(6))
		for i := range favourites {
			favourites[i] = byte(rnd.Uint32())
		}
		often := rnd.IntN(4)
		for i := range b {
			if b[i] = byte(rnd.Uint32()); rnd.IntN(4) < often {
				b[i] = favourites[rnd.IntN(len(favourites))]
			}
		}
		run(t, b)
	}
}
