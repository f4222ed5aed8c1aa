package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// build compiles the tests in dir with the mutants and watches those that a pattern
// names.
func build(ctx context.Context, temp, overlay, dir, pattern string, parallel int) (*suite, error) {
	s := &suite{binary: filepath.Join(temp, filepath.Base(dir)+".test"), dir: dir}
	if _, err := goTool(ctx, "test", "-c", "-vet=off", "-overlay", overlay, "-o", s.binary, dir); err != nil {
		return nil, err
	}
	return s, s.record(ctx, pattern, parallel)
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
	if err := put(filepath.Join(p.dir, "chosen_mutant.go"), []byte(p.chooser())); err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		return "", err
	}
	name := filepath.Join(temp, "overlay.json")
	return name, os.WriteFile(name, b, 0o600)
}

// trial runs the tests against mutants: the package's own, then those of the whole,
// which are built when the first mutant gets so far.
type trial struct {
	own   *suite
	whole func() (*suite, error)

	mu     sync.Mutex
	result *result
}

// try runs the tests against mutants until ctx ends.
func (p *pack) try(ctx context.Context, chosen []*mutant, o options) (*result, error) {
	before := spent()
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	overlay, err := p.overlay(temp)
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs("tests")
	if err != nil {
		return nil, err
	}
	t := &trial{result: &result{untried: len(chosen)}}
	t.whole = sync.OnceValues(func() (*suite, error) { return build(ctx, temp, overlay, root, o.tests, o.parallel) })
	fmt.Fprintf(os.Stderr, "%s: %d mutants, %d more do not compile; seed %d\n", p.name, len(chosen), p.dropped, o.seed)
	begin := time.Now()
	if t.own, err = build(ctx, temp, overlay, p.dir, o.own, o.parallel); err == nil {
		fmt.Fprintf(os.Stderr, "%s: what %d tests reach took %v to see, and %v of processors\n",
			p.name, len(t.own.tests), time.Since(begin).Round(time.Second), (spent() - before).Round(time.Second))
		rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		err = t.all(ctx, p.name, chosen, o.parallel)
	}
	if ctx.Err() != nil {
		err = nil
	}
	t.result.cpu = spent() - before
	slices.SortFunc(t.result.survived, func(a, b *mutant) int { return a.id - b.id })
	return t.result, err
}

// spent returns the time of processors that builds and tests took.
func spent() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// all tries mutants, some at a time, and tells once a minute how far it is.
func (t *trial) all(ctx context.Context, name string, chosen []*mutant, parallel int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	next := make(chan *mutant)
	for range parallel {
		wg.Go(func() {
			for m := range next {
				o, err := t.judge(ctx, m)
				if err != nil {
					cancel(err)
					continue
				}
				t.note(m, o)
			}
		})
	}
	begin := time.Now()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for i := 0; i < len(chosen) && ctx.Err() == nil; {
		select {
		case next <- chosen[i]:
			i++
		case <-tick.C:
			t.progress(name, time.Since(begin))
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// judge runs the tests that reach a mutant.
func (t *trial) judge(ctx context.Context, m *mutant) (outcome, error) {
	own, err := t.own.try(ctx, m)
	if err != nil || own == killed || own == slow {
		return own, err
	}
	whole, err := t.whole()
	if err != nil {
		return 0, err
	}
	o, err := whole.try(ctx, m)
	return max(own, o), err
}

func (t *trial) note(m *mutant, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.untried--
	switch o {
	case slow:
		t.result.slow++
		fallthrough
	case killed:
		t.result.killed++
	default:
		m.unreached = o == unreached
		t.result.survived = append(t.result.survived, m)
		fmt.Fprintln(os.Stderr, "survived:", m)
	}
}

func (t *trial) progress(name string, since time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tried := t.result.killed + len(t.result.survived)
	left := time.Duration(0)
	if tried > 0 {
		left = since / time.Duration(tried) * time.Duration(t.result.untried)
	}
	fmt.Fprintf(os.Stderr, "%s: %d tried in %v, %d survived; %d are left, about %v\n", name, tried, since.Round(time.Second), len(t.result.survived), t.result.untried, left.Round(time.Second))
}
