package admission_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/internal/strangers"
	"github.com/dgrdma/dgrdma/settings"
)

// TestUnprovenPeersFit checks that peers that have nothing to prove themselves with, with what all learned peers may hold open, stay within
// what unknown sources may take (attack A27, SECURITY.md).
func TestUnprovenPeersFit(t *testing.T) {
	if most := admission.MostUnproven*admission.PerUnproven + settings.OpenMemory.Default; most > strangers.Memory {
		t.Errorf("they may take %d bytes, unknown sources %d", most, strangers.Memory)
	}
}
