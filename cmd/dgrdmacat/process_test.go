package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"
)

// commandVariable in the environment makes the test binary dgrdmacat.
const commandVariable = "DGRDMACAT_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
	}
	// The goroutine that this starts stays. It is not to be taken for one that a
	// test left behind.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(m.Run())
}

// process is dgrdmacat as a process of its own.
type process struct {
	*exec.Cmd
	t        *testing.T
	out, err lockedBuffer
}

// lockedBuffer can be looked at while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// asProcess prepares dgrdmacat with these arguments.
func asProcess(t *testing.T, args ...string) *process {
	t.Helper()
	// By that name the binary can be started by who may not look into the
	// directory where it is.
	p := &process{Cmd: exec.Command("/proc/self/exe", args...), t: t}
	p.Env = append(os.Environ(), commandVariable+"=1", "GORACE=atexit_sleep_ms=0")
	p.Stdout, p.Stderr = &p.out, &p.err
	return p
}

func (p *process) start() *process {
	p.t.Helper()
	if err := p.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { p.Process.Kill() })
	return p
}

// code waits for the end.
func (p *process) code() int {
	p.t.Helper()
	late := time.AfterFunc(patience, func() { p.Process.Signal(syscall.SIGQUIT) })
	defer late.Stop()
	p.Wait()
	return p.ProcessState.ExitCode()
}

// patience is how long tests wait for what will happen.
const patience = 30 * time.Second

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(5 * time.Millisecond) {
		if so() {
			return
		}
	}
	t.Fatalf("waited %v in vain until %s", patience, what)
}
