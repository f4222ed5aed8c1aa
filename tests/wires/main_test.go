// Package wires tests endpoints on the kernel's networks: UDP over IPv4 and
// IPv6, and raw Ethernet, between network namespaces.
package wires

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain is also the main function of the processes that tests start, and
// fails when goroutines of the module outlive the tests.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(childMain())
	}
	code := m.Run()
	if code == 0 {
		if left := leaked(); left != "" {
			fmt.Fprintln(os.Stderr, "goroutines left behind:\n"+left)
			code = 1
		}
	}
	os.Exit(code)
}

func leaked() (left string) {
	for range 50 {
		buf := make([]byte, 1<<20)
		left = ""
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "dgrdma/") && !strings.Contains(g, "wires.leaked") && !strings.Contains(g, "wires.startProcesses") {
				left += g + "\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
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
	if testing.Short() || raceDetector {
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
