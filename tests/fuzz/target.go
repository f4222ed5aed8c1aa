package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is a fuzz target of a package.
type target struct {
	pkg  string // its import path, as go list prints it
	name string
}

func (t target) String() string { return t.pkg + " " + t.name }

var defines = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// find returns the targets of packages, which it reads in the files of which go list says
// that go test compiles them: that takes no compiling.
func find(ctx context.Context, packages []string) (all []target, err error) {
	out, err := exec.CommandContext(ctx, "go", append([]string{"list", "-f",
		"{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}}\t{{$p.Dir}}\t{{.}}\n{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}}\t{{$p.Dir}}\t{{.}}\n{{end}}"},
		packages...)...).Output()
	if err != nil {
		return nil, said("go list", err)
	}
	for line := range strings.Lines(string(out)) {
		pkg, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		dir, name, is := strings.Cut(rest, "\t")
		if !is {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for _, m := range defines.FindAllSubmatch(b, -1) {
			all = append(all, target{pkg, string(m[1])})
		}
	}
	slices.SortFunc(all, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

func said(what string, err error) error {
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w: %s", what, err, failed.Stderr)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// result is what came of a target.
type result struct {
	executions, fresh int // fresh: inputs that reach what none did before
	took              time.Duration
	became            string
	said              string // by go test, if it failed
}

// What became of a target, beside the path of an input that fails.
const (
	passed      = "passed"
	failed      = "FAILED"
	hung        = "HUNG"
	interrupted = "interrupted"
)

// hangs is how much longer than it should a target may take: to compile, to try what is kept,
// and to make an input smaller.
const hangs = 10 * time.Minute

// run runs a target by go test, on some processors.
func (t target) run(ctx context.Context, o options, processors int) (r result) {
	if ctx.Err() != nil {
		return result{became: interrupted}
	}
	bounded, cancel := context.WithTimeout(ctx, o.long+hangs)
	defer cancel()
	cmd := exec.CommandContext(bounded, "go", "test", t.pkg, "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+o.long.String(), "-fuzzminimizetime="+o.minimize, "-parallel="+strconv.Itoa(processors))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Interrupted, go test ends its workers.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	err := cmd.Run()
	if err != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	r = read(out.String())
	r.took = time.Since(began)
	switch {
	case ctx.Err() != nil:
		r.became = interrupted
	case bounded.Err() != nil:
		r.became = hung
	case err == nil && r.executions > 0:
		r.became, r.said = passed, ""
	}
	return r
}

var (
	counted = regexp.MustCompile(`(?m)^fuzz: elapsed: \S+, execs: (\d+) .*new interesting: (\d+) `)
	kept    = regexp.MustCompile(`(?m)^\s*Failing input written to (\S+)$`)
)

// read finds in the output of go test what it did, and takes it for a failure.
func read(output string) (r result) {
	r.became, r.said = failed, output
	if all := counted.FindAllStringSubmatch(output, -1); len(all) > 0 {
		last := all[len(all)-1]
		r.executions, _ = strconv.Atoi(last[1])
		r.fresh, _ = strconv.Atoi(last[2])
	}
	if m := kept.FindStringSubmatch(output); m != nil {
		r.became += ": " + m[1]
	}
	return r
}
