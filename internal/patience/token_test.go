package patience

import "testing"

// TestLeave checks that one token is there, however often it was left, and that Leave never waits.
func TestLeave(t *testing.T) {
	token := make(chan struct{}, 1)
	for range 3 {
		Leave(token)
	}
	<-token
	if len(token) != 0 {
		t.Error("more than one was left")
	}
	Leave(make(chan struct{})) // where no goroutine waits
}
