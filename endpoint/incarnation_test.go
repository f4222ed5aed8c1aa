package endpoint

import (
	"math"
	"testing"
)

// TestLifeIsNamed by a number that is not 0, and not that of the life before, whatever the
// application draws.
func TestLifeIsNamed(t *testing.T) {
	for _, before := range []incarnation{unknown, 1, 7, math.MaxUint32} {
		for _, drawn := range []uint32{0, 1, 6, 7, math.MaxUint32 - 1, math.MaxUint32} {
			cfg := Config{Entropy: func() uint32 { return drawn }}
			if life := cfg.incarnation(before); life == unknown || life == before {
				t.Errorf("drawn %d after life %d: %d", drawn, before, life)
			}
		}
	}
}

// TestLivesOfAConnection have each another number than the one before, and none has that of
// no life.
func TestLivesOfAConnection(t *testing.T) {
	for _, s := range []stint{1, 2, math.MaxUint32 - 1, math.MaxUint32} {
		if next := s.after(); next == 0 || next == s {
			t.Errorf("life %d comes after %d", next, s)
		}
	}
}
