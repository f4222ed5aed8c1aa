package patience

import "testing"

// TestPatience: a receiver looks again before it sleeps as long as that pays,
// and tries now and then whether it would.
func TestPatience(t *testing.T) {
	p := New(2)
	tries := 0
	for range 10 * tryAgain {
		p.Begin()
		if p.Again() {
			tries++
		}
		p.step = sleeps
		p.Found()
	}
	if tries != 10 || p.luck != 0 {
		t.Errorf("%d tries in %d waits without luck, want 10; luck is %d", tries, 10*tryAgain, p.luck)
	}
	for p.waits%tryAgain != tryAgain-1 {
		p.waits++
	}
	for range 2 * MostLuck {
		if p.Begin(); !p.Again() {
			t.Fatal("it does not look again, though that paid")
		}
		p.Found()
	}
	if p.luck != MostLuck {
		t.Errorf("luck is %d, want %d", p.luck, MostLuck)
	}
	for p.waits = 0; p.step != sleeps; p.Again() { // nothing comes while it looks
	}
	if p.luck != MostLuck-2 {
		t.Errorf("luck is %d, want %d", p.luck, MostLuck-2)
	}
}

// TestOneProcessor: nobody can send meanwhile.
func TestOneProcessor(t *testing.T) {
	p := New(1)
	for range 2 * tryAgain {
		if p.Begin(); p.Again() {
			t.Fatal("it looks again")
		}
		p.Found()
	}
}
