package dgrdma

import (
	"math"
	"testing"
)

// TestLivesOfAConnection checks that each life has another number than the one before, and that none has that of no life.
func TestLivesOfAConnection(t *testing.T) {
	for _, s := range []connEpoch{1, 2, math.MaxUint32 - 1, math.MaxUint32} {
		if next := s.after(); next == 0 || next == s {
			t.Errorf("life %d comes after %d", next, s)
		}
	}
}
