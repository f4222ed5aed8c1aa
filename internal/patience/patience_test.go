package patience

import "testing"

// TestPatience checks that a receiver spins before it sleeps as long as that pays, and tries now and then whether it would.
func TestPatience(t *testing.T) {
	p := New(2)
	tries := 0
	for range 10 * tryAgain {
		p.Begin()
		if p.Again() {
			tries++
		}
		p.state = sleeping
		p.Found()
	}
	if tries != 10 || p.score != 0 {
		t.Errorf("%d tries in %d waits in vain, want 10; score is %d", tries, 10*tryAgain, p.score)
	}
	for p.waits%tryAgain != tryAgain-1 {
		p.waits++
	}
	for range 2 * MaxScore {
		if p.Begin(); !p.Again() {
			t.Fatal("it does not spin, though that paid")
		}
		p.Found()
	}
	if p.score != MaxScore {
		t.Errorf("score is %d, want %d", p.score, MaxScore)
	}
	for p.waits = 0; p.state != sleeping; p.Again() { // nothing comes while it looks
	}
	if p.score != MaxScore-2 {
		t.Errorf("score is %d, want %d", p.score, MaxScore-2)
	}
}

// TestOneProcessor checks that a receiver does not spin on a single processor.
func TestOneProcessor(t *testing.T) {
	p := New(1)
	for range 2 * tryAgain {
		if p.Begin(); p.Again() {
			t.Fatal("it spins")
		}
		p.Found()
	}
}
