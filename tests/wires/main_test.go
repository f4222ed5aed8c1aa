// Package wires tests endpoints on the kernel's networks: UDP over IPv4 and
// IPv6, and raw Ethernet, between network namespaces.
package wires

import (
	"os"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestMain is also the main function of the processes that tests start.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(childMain())
	}
	fixture.WaitBeside(8)
	os.Exit(fixture.Run(m, "wires.startProcesses"))
}

// eventually waits until ok says yes.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// quick returns the smaller number with -short, and where everything is slow.
func quick(usual, short int) int {
	if testing.Short() || fixture.Race {
		return short
	}
	return usual
}

// atOnce runs all at the same time and fails the test with what they return.
func atOnce(t *testing.T, all ...func() error) {
	t.Helper()
	errs := make(chan error)
	for _, f := range all {
		go func() { errs <- f() }()
	}
	failed := false
	for range all {
		if err := <-errs; err != nil {
			t.Error(err)
			failed = true
		}
	}
	if failed {
		t.FailNow()
	}
}
