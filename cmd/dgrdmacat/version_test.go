package main

import (
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/metrics"
)

// TestVersion: it is what dgrdma_build_info says.
func TestVersion(t *testing.T) {
	version, revision, goVersion := metrics.Build()
	want := fmt.Sprintf("dgrdmacat %s, revision %s, %s\n", version, revision, goVersion)
	for _, asked := range []string{"version", "--version", "-version", "-v"} {
		if code, out, stderr := runFor(t, t.Context(), asked); code != exitOK || out != want || stderr != "" {
			t.Errorf("%s: code %d: %q %q, want %q", asked, code, out, stderr, want)
		}
	}
}
