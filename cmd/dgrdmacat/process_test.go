package main

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// What other packages' tests need too.
var (
	noGoroutineLeft         = fixture.NoGoroutineLeft
	noGoroutineOfItsOwnLeft = fixture.NoGoroutineOfItsOwnLeft
	wantFiles               = fixture.WantFiles
	random                  = fixture.RandomBytes
)

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
	p := &process{Cmd: exec.Command(program(t), args...), t: t}
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
	return shellCode(p.ProcessState)
}

// shellCode is what a shell says of how a process ended.
func shellCode(state *os.ProcessState) int {
	if how := state.Sys().(syscall.WaitStatus); how.Signaled() {
		return 128 + int(how.Signal())
	}
	return state.ExitCode()
}

// patience is how long tests wait for what will happen.
const patience = 2 * time.Minute

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
