// Package siw holds our RDMA verbs against siw, the iWARP that Linux has in software, in a small virtual machine.
//
//	go test ./tests/siw
//
// builds and boots the machine by tests/siw/kit (its README has what it needs: root, a Debian system and its packages, 3 GB of disk),
// runs the tests in the machine's network namespace, and ends it. With SIW_KEEP=1 it stays, and the next run
// begins at once; tests/siw/kit/down ends it. The package is left out of ./... by go.mod.
package siw

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	hostAddr  = "10.99.0.1"
	guestAddr = "10.99.0.2"
	// inside says that this process runs in the machine's network namespace.
	inside = "SIW_TEST_INSIDE"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(inside) != "" {
		os.Exit(m.Run())
	}
	os.Exit(inNamespace())
}

// inNamespace boots the machine and runs this program again where it can be reached.
func inNamespace() int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "tests/siw: a virtual machine with a network of its own needs root: sudo -E go test ./tests/siw")
		return 1
	}
	up := kit("up")
	up.Stdout, up.Stderr = os.Stderr, os.Stderr
	if err := up.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "tests/siw: kit/up: %v\n", err)
		return 1
	}
	if os.Getenv("SIW_KEEP") == "" {
		defer kit("down").Run()
	}
	again := kit("host", os.Args...)
	again.Env = append(os.Environ(), inside+"=1")
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := again.Run(); err != nil {
		return 1
	}
	return 0
}

// kit is a command of the kit.
func kit(name string, arg ...string) *exec.Cmd {
	return exec.Command(filepath.Join("kit", name), arg...)
}

// guest runs a line of shell in the machine, and returns what it says.
func guest(t *testing.T, line string) string {
	t.Helper()
	out, err := kit("exec", "-t", "60", line).CombinedOutput()
	if err != nil {
		t.Fatalf("in the guest: %s: %v\n%s", line, err, out)
	}
	return string(out)
}

// process is a program that runs in the machine.
type process struct {
	t    *testing.T
	out  bytes.Buffer
	done chan error
}

// start starts a line of shell in the machine.
func start(t *testing.T, line string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan error, 1)}
	c := kit("exec", "-t", "150", line)
	c.Stdout, c.Stderr = &p.out, &p.out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- c.Wait() }()
	return p
}

// wait returns what the program has said when it has ended, and its status.
func (p *process) wait() (string, int) {
	p.t.Helper()
	select {
	case err := <-p.done:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return p.out.String(), exit.ExitCode()
		}
		if err != nil {
			p.t.Fatal(err)
		}
		return p.out.String(), 0
	case <-time.After(160 * time.Second):
		p.t.Fatalf("a program in the guest does not end")
		return "", 0
	}
}

// listening waits until somebody listens at a port of the machine.
func listening(t *testing.T, port int) {
	t.Helper()
	// siw's listener is not a socket that can be seen; the device's resources tell.
	for range 200 {
		if strings.Contains(guest(t, "rdma resource show cm_id 2>/dev/null || true"), fmt.Sprintf(":%d ", port)) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nobody listens at port %d of the guest", port)
}

// parameter sets a parameter of the driver for a test.
func parameter(t *testing.T, name, value string) {
	t.Helper()
	file := "/sys/module/siw/parameters/" + name
	old := strings.TrimSpace(guest(t, "cat "+file))
	guest(t, fmt.Sprintf("echo %s > %s", value, file))
	t.Cleanup(func() { guest(t, fmt.Sprintf("echo %s > %s", old, file)) })
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 140*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// pattern is what siwpeer fills its region with.
func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for j := range b {
		b[j] = byte(31*seed + 7*j + j>>8 + 1)
	}
	return b
}
