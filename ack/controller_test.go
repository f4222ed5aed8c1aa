package ack

import "testing"

// A window that nobody fixed is wider than any use of it.
func TestFixedWindow(t *testing.T) {
	if got := (&FixedWindow{Bytes: 3000}).Window(); got != 3000 {
		t.Errorf("window %d, want 3000", got)
	}
	if got := (&FixedWindow{}).Window(); got < 1<<30 {
		t.Errorf("window %d", got)
	}
}
