package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// suite is a test binary that holds all mutants of a package.
type suite struct {
	binary, dir string
	args        []string
	quick       string        // flag for those that take little time
	wall, cpu   time.Duration // that no run may exceed
}

// How much longer than without a mutant a run may take. Tests wait for each other's
// processors, so that the time by the clock says little.
const (
	patience    = 10
	patienceCPU = 5
	least       = 20 * time.Second
	leastCPU    = 10 * time.Second
)

// memory is what a mutant may map, in KiB: an endless loop may allocate.
const memory = 8 << 20

// build compiles the tests in dir with the mutants of p, and runs them without any.
func (p *pack) build(temp, dir, name string, args ...string) (*suite, error) {
	s := &suite{binary: filepath.Join(temp, name), dir: dir, args: append([]string{"-test.short", "-test.failfast"}, args...)}
	overlay, err := p.overlay(temp)
	if err != nil {
		return nil, err
	}
	if _, err := goTool("test", "-c", "-vet=off", "-overlay", overlay, "-o", s.binary, dir); err != nil {
		return nil, err
	}
	s.wall, s.cpu = time.Hour, time.Hour
	begin := time.Now()
	survives, cpu, out, err := s.run(context.Background(), 0, "-test.v")
	if err != nil {
		return nil, err
	}
	if !survives {
		return nil, fmt.Errorf("the tests in %s fail without a mutant:\n%s", dir, out)
	}
	s.wall, s.cpu = max(least, patience*time.Since(begin)), max(leastCPU, patienceCPU*cpu)
	s.quick = quick(string(out))
	return s, nil
}

// timed is a line of the test binary about a test that passed.
var timed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((\d+\.\d+)s\)$`)

// quick returns a flag for the tests that together took a tenth of the time: they
// kill most mutants.
func quick(out string) string {
	type test struct {
		name string
		took float64
	}
	var tests []test
	sum := 0.0
	for _, m := range timed.FindAllStringSubmatch(out, -1) {
		took, _ := strconv.ParseFloat(m[2], 64)
		tests = append(tests, test{m[1], took})
		sum += took
	}
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	var names []string
	left := sum / 10
	for _, t := range tests {
		if left -= t.took; left < 0 {
			break
		}
		names = append(names, t.name)
	}
	return "-test.run=^(" + strings.Join(names, "|") + ")$"
}

// survives reports whether no test kills a mutant.
func (s *suite) survives(id int) (bool, error) {
	for _, args := range [][]string{{s.quick}, nil} {
		survives, _, _, err := s.run(context.Background(), id, args...)
		if err != nil || !survives {
			return false, err
		}
	}
	return true, nil
}

// overlay writes the changed files and what tells the build of them.
func (p *pack) overlay(temp string) (string, error) {
	files := map[string]string{}
	put := func(name string, text []byte) error {
		at := filepath.Join(temp, fmt.Sprintf("%d_%s", len(files), filepath.Base(name)))
		files[name] = at
		return os.WriteFile(at, text, 0o600)
	}
	for _, s := range p.files {
		if err := put(s.file, s.changed()); err != nil {
			return "", err
		}
	}
	if err := put(filepath.Join(p.dir, "chosen_mutant.go"), []byte(chooser(p.name))); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		return "", err
	}
	name := filepath.Join(temp, "overlay.json")
	return name, os.WriteFile(name, b, 0o600)
}

// run runs the tests with a mutant, and reports whether it survives. One that never
// ends, or takes all memory, does not.
func (s *suite) run(ctx context.Context, id int, args ...string) (survives bool, cpu time.Duration, out []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.wall)
	defer cancel()
	script := fmt.Sprintf(`ulimit -v %d; ulimit -t %d; exec "$0" "$@"`, memory, int(s.cpu.Seconds())+1)
	cmd := exec.CommandContext(ctx, "sh", slices.Concat([]string{"-c", script, s.binary}, s.args, args)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(id))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err = cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return false, 0, nil, err
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) || ctx.Err() != nil {
		err = nil
		survives = false
	} else {
		survives = true
	}
	return survives, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), out, err
}

// try runs the tests against mutants: the package's own, then those of the whole.
func (p *pack) try(chosen []*mutant, o options) (r *result, err error) {
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	own, err := p.build(temp, p.dir, "own.test")
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs("tests")
	if err != nil {
		return nil, err
	}
	whole, err := p.build(temp, root, "whole.test", "-test.run="+o.tests)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "%s: %d mutants, %d more do not compile; a run may take %v, then %v; seed %d\n", p.name, len(chosen), p.dropped,
		own.wall.Round(time.Second), whole.wall.Round(time.Second), o.seed)
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	begin := time.Now()
	r = &result{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan *mutant)
	for range o.parallel {
		wg.Go(func() {
			for m := range next {
				survives, err2 := own.survives(m.id)
				if survives && err2 == nil {
					survives, err2 = whole.survives(m.id)
				}
				mu.Lock()
				switch {
				case err2 != nil:
					err = err2
				case survives:
					r.survived = append(r.survived, m)
					fmt.Fprintln(os.Stderr, "survived:", m)
				default:
					r.killed++
				}
				mu.Unlock()
			}
		})
	}
	for i, m := range chosen {
		if o.limit > 0 && time.Since(begin) > o.limit {
			r.untried = len(chosen) - i
			break
		}
		next <- m
	}
	close(next)
	wg.Wait()
	slices.SortFunc(r.survived, func(a, b *mutant) int { return a.id - b.id })
	return r, err
}
