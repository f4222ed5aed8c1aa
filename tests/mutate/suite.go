package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// suite is a test binary that holds all mutants of a package.
type suite struct {
	binary, dir string
	tests       []test // the cheapest first
}

// cost is what a process took, or may take.
type cost struct{ cpu, wall time.Duration }

// How much longer than without a mutant a run may take. Tests wait for each other's
// processors, so that the time by the clock says little.
const (
	patience    = 10
	patienceCPU = 5
	least       = 30 * time.Second
	leastCPU    = 2 * time.Second
)

// allowed returns what tests may cost that took so much without a mutant.
func (c cost) allowed() cost {
	return cost{leastCPU + patienceCPU*c.cpu, max(least, patience*c.wall)}
}

// memory is what a mutant may map, in KiB: an endless loop may allocate.
const memory = 8 << 20

// outcome is what a mutant came to.
type outcome int

const (
	unreached outcome = iota // no test runs it
	survived
	killed
	slow // killed, because the tests came to no end
)

// run runs tests with something in the environment. One that never ends, or takes
// all memory, kills the mutant.
func (s *suite) run(ctx context.Context, env string, limit cost, names ...string) (o outcome, took cost, out []byte, err error) {
	bounded, cancel := context.WithTimeout(ctx, limit.wall)
	defer cancel()
	seconds := int((limit.cpu + time.Second - 1) / time.Second)
	cmd := s.command(bounded, env, seconds, "-test.short", "-test.failfast", "-test.run=^("+strings.Join(names, "|")+")$")
	begin := time.Now()
	out, err = cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, cost{}, nil, ctx.Err()
	case cmd.ProcessState == nil:
		return 0, cost{}, nil, err
	}
	took = cost{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(begin)}
	switch {
	case bounded.Err() != nil:
		o = slow
	case err == nil:
		o = survived
	case !errors.As(err, &failed):
		return 0, cost{}, nil, err
	case failed.Sys().(syscall.WaitStatus).Signaled() || bytes.Contains(out, []byte("SIGXCPU")):
		o = slow
	default:
		o = killed
	}
	return o, took, out, nil
}

// command runs the binary for a limited time.
func (s *suite) command(ctx context.Context, env string, seconds int, args ...string) *exec.Cmd {
	script := fmt.Sprintf(`ulimit -v %d; ulimit -t %d; exec "$0" "$@"`, memory, seconds)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, s.binary}, args...)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// try runs the tests that reach a mutant until one kills it.
func (s *suite) try(ctx context.Context, m *mutant) (outcome, error) {
	all := unreached
	for _, b := range batches(s.reaching(m.site)) {
		o, _, _, err := s.run(ctx, m.choice(), b.cost.allowed(), b.names...)
		if err != nil || o != survived {
			return o, err
		}
		all = survived
	}
	return all, nil
}
