package bench

import (
	"errors"
	"testing"
	"time"
)

// TestBothSidesMeanTheSameTime: the server says how long a run took as its client does, of transactions and of work requests, whatever
// else its own clock has seen.
func TestBothSidesMeanTheSameTime(t *testing.T) {
	same := func(what string, ran Run, o *Outcome) {
		t.Helper()
		if ran.Took == 0 || uint64(ran.Took) != o.Mine.Nanoseconds || ran.Saw.Arrived != o.Mine.Transactions {
			t.Errorf("%s: the server has %d operations in %v, the client %d in %v", what, ran.Saw.Arrived, ran.Took, o.Mine.Transactions, time.Duration(o.Mine.Nanoseconds))
		}
	}
	s, c := sides(t, Plan{Size: 5000, Peers: 1})
	var ran Run
	s.Ran = func(r Run) { ran = r }
	served := serveOnce(t, s)
	o := NewOutcome()
	if err := errors.Join(c.Run(t.Context(), 20*time.Millisecond, o), <-served); err != nil {
		t.Fatal(err)
	}
	same("transactions", ran, o)
	for _, v := range []Verb{VerbWrite, VerbFlush, VerbSend} {
		_, c, served := verbsEnds(t, func(s *VerbsServer) { s.Ran = func(r Run) { ran = r } })
		c.Verb, c.Plan = v, somePlan()
		o := NewOutcome()
		err := c.Run(t.Context(), 20*time.Millisecond, o)
		c.Close()
		if err := errors.Join(err, <-served); err != nil {
			t.Fatal(err)
		}
		same(v.String(), ran, o)
	}
}

// TestTookIsToldWithinReason: a client that tells nothing, or of more than the server has seen, is not relied on.
func TestTookIsToldWithinReason(t *testing.T) {
	for told, want := range map[uint64]time.Duration{0: time.Second, 5e8: 5e8, 1e9: 1e9, 1e9 + 1: time.Second, 1<<64 - 1: time.Second} {
		if got := (finish{told}).took(time.Second); got != want {
			t.Errorf("%d told: %v, want %v", told, got, want)
		}
	}
}
