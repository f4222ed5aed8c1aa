package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/soak/round"
)

func TestMain(m *testing.M) { os.Exit(fixture.Run(m)) }

// TestSoak: a run says what it was asked for, what was done, and that nothing was wrong.
func TestSoak(t *testing.T) {
	o, err := parse([]string{"-seed", "7", "-rounds", "3", "-longest", "200ms", "-dir", t.ArtifactDir()}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if !soak(t, o, &out, round.Run) {
		t.Error("something was wrong")
	}
	for _, says := range []string{"soak over simnet for 10m0s, rounds of 200ms at most, from seed 7\n", "\nend: seed 9, 3 rounds (1 sealed), ", "; 0 violations\n"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("it does not say %q but %q", says, &out)
		}
	}
}

// TestViolation: what was wrong in a round is told with the command that runs it again, and so is
// a goroutine that it leaves; the next ones run all the same.
func TestViolation(t *testing.T) {
	o, err := parse([]string{"-seed", "7", "-rounds", "3", "-longest", "2s"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	end := make(chan struct{})
	defer func(before time.Duration) { patience = before }(patience)
	patience = 100 * time.Millisecond
	ran := 0
	ok := soak(t, o, &out, func(_ *testing.T, p *round.Plan, _ *round.Counts, _ string) []string {
		switch ran++; p.Seed {
		case 7:
			return []string{"a byte was wrong", "and another one"}
		case 9:
			for range 10 { // of tests before, one or another may end meanwhile
				go func() { <-end }()
			}
		}
		return nil
	})
	close(end)
	const again = "VIOLATION over simnet; again with: go run ./tests/soak -wire simnet -longest 2s -seed "
	if ok || ran != 3 {
		t.Errorf("ok %v, %d rounds", ok, ran)
	}
	for _, says := range []string{again + "7 -rounds 1\n  a byte was wrong\n  and another one\n", again + "9 -rounds 1\n  ", " goroutines are left\n"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("it does not say %q but %q", says, &out)
		}
	}
}

// TestOptions: what the command line says, and what is wrong with it.
func TestOptions(t *testing.T) {
	o, err := parse([]string{"-for", "30s", "-every", "5s"}, io.Discard)
	if err != nil || o.total != 30*time.Second || o.longest != 30*time.Second || o.wire != round.Simnet || o.seed == 0 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, c := range []struct{ args, says string }{
		{"-wire smoke", `no wire "smoke"; there are [simnet udp ether]`},
		{"-for 0s", "a time is not positive"},
		{"more", `"more": there are only flags`},
	} {
		if _, err := parse(strings.Fields(c.args), io.Discard); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
	var usage bytes.Buffer
	if _, err := parse([]string{"-h"}, &usage); !errors.Is(err, flag.ErrHelp) || !strings.Contains(usage.String(), "-longest time") {
		t.Errorf("%v, %q", err, &usage)
	}
}
