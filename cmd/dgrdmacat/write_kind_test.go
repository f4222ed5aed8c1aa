package main

import (
	"strings"
	"testing"
)

// TestWriteOfAnotherKind: where the two ends take each other for different kinds of peers,
// both ask about that.
func TestWriteOfAnotherKind(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	url, out, end := servingMemory(t, "--accept", "any", "udp:127.0.0.1")
	code, _, stderr := runFor(t, t.Context(), "write", "--profile", "opencpi", "--to", url+"?giveup=2s", "--addr", "0", "--text", "x")
	if code != exitError || !strings.Contains(stderr, "is it not of the kind opencpi?") {
		t.Errorf("code %d: %s", code, stderr)
	}
	code, _, stderr = runFor(t, t.Context(), "write", "--profile", "fpga", "--to", url+"?giveup=2s", "--addr", "0", "--text", "abcd", "--flag-addr", "64")
	if code != exitError || !strings.Contains(stderr, "is it no card but of another kind? Another dgrdmacat is of the kind native") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if code, stderr := end(); code != exitOK {
		t.Errorf("serve: code %d: %s", code, stderr)
	}
	for _, raw := range []string{"refused: no_session\n", "it is not one of the peers\n"} {
		if strings.Contains(out.String(), raw) {
			t.Errorf("serve says %q alone: %s", raw, out.String())
		}
	}
	if !strings.Contains(out.String(), "refused: no_session: it has not introduced itself to this run: does it know an earlier one, or is it of another kind? --profile") {
		t.Errorf("serve does not ask for the kind: %s", out.String())
	}
}
