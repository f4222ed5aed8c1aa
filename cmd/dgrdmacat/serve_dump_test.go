package main

import (
	"os"
	"testing"
)

// TestServeReplacesADump only if it is told to; TestServeUsage has that it does not otherwise.
func TestServeReplacesADump(t *testing.T) {
	noGoroutineLeft(t)
	dump := fileOf(t, []byte("what was there before"))
	code, _, stderr := runFor(t, t.Context(), "serve", "--accept", "any", "--size", "8", "--for", "1ms", "--force", "--dump", dump, "udp:127.0.0.1")
	if code != exitOK {
		t.Errorf("code %d: %s", code, stderr)
	}
	if b, err := os.ReadFile(dump); err != nil || string(b) != "\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("%q, %v", b, err)
	}
}
