package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) {
	// The goroutine that this starts stays. It is not to be taken for one that a
	// test left behind.
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGPIPE)
	if signal.Ignored(os.Interrupt) {
		// As shells start what runs in the background. Processes of tests would
		// inherit that; what is received they do not.
		signal.Notify(received, os.Interrupt)
	}
	beside := 16
	if fixture.Race { // where they need processors as well
		beside = 8
	}
	fixture.WaitBeside(beside)
	longUnheard = patience
	code := fixture.Run(m)
	if dir, err := binaryDir(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

var binaryDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "dgrdmacat")
	if err == nil {
		err = os.Chmod(dir, 0o755) // others run it, too
	}
	return dir, err
})

var built = sync.OnceValues(func() (string, error) {
	dir, err := binaryDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "dgrdmacat")
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// program returns the path of the real program, for what a process does as a
// whole: pipes, signals, users.
func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
