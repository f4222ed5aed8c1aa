package verbs

import (
	"fmt"
	"testing"
)

// TestHowItEnded: a host counts the ends that are somebody's fault, by whose that was.
func TestHowItEnded(t *testing.T) {
	var got HostStats
	for _, why := range []error{
		ErrPeerClosed, ErrClosed, fmt.Errorf("so: %w", ErrSilent), fmt.Errorf("so: %w", &TerminateError{Fault: FaultTaggedBounds}),
		&TerminateError{Fault: FaultChecksum}, &TerminateError{Fault: FaultChecksum, Remote: true},
	} {
		got.ended(why)
	}
	if want := (HostStats{Silent: 1, TerminatesSent: 2, TerminatesReceived: 1, CRCErrors: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
