package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// test is one of a suite: what it costs, and the sites that it runs.
type test struct {
	name    string
	cost    cost
	reached map[int]bool
}

// recordings is how often a test is watched. One that is random, or has goroutines,
// may run other sites each time; what it ran in any of these times counts.
const recordings = 2

// aloneAllowed is what a single test may take without a mutant.
var aloneAllowed = cost{10 * time.Minute, 20 * time.Minute}

// record watches each of the suite's tests that a pattern names in a process of its
// own. Those that fail alone and without a mutant cannot judge any, and are left out.
func (s *suite) record(ctx context.Context, pattern string, parallel int) error {
	names, err := s.list(ctx, pattern)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan string)
	for range parallel {
		wg.Go(func() {
			for name := range next {
				t, out, err2 := s.watch(ctx, name)
				mu.Lock()
				switch {
				case err2 != nil:
					err = err2
				case out != nil:
					fmt.Fprintf(os.Stderr, "left out, as it fails without a mutant: %s\n%s\n", name, out)
				default:
					s.tests = append(s.tests, t)
				}
				mu.Unlock()
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	wg.Wait()
	if err == nil && len(s.tests) == 0 && len(names) > 0 {
		err = fmt.Errorf("no test in %s passes without a mutant", s.dir)
	}
	slices.SortFunc(s.tests, func(a, b test) int {
		return cmp.Or(cmp.Compare(a.cost.cpu, b.cost.cpu), strings.Compare(a.name, b.name))
	})
	return err
}

// list returns the names of tests, of fuzz tests, whose seeds run as tests, and of
// examples.
func (s *suite) list(ctx context.Context, pattern string) (names []string, err error) {
	out, err := s.command(ctx, variable+"=", 60, "-test.list="+pattern).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests in %s: %w", s.dir, err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(name, "Benchmark") {
			names = append(names, name)
		}
	}
	return names, nil
}

// watch runs a test and notes what it reaches. Output that is not nil is of one
// that fails.
func (s *suite) watch(ctx context.Context, name string) (t test, failure []byte, err error) {
	t = test{name: name, reached: map[int]bool{}}
	f, err := os.CreateTemp("", "reached")
	if err != nil {
		return t, nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	for range recordings {
		o, took, out, err := s.run(ctx, reachVariable+"="+f.Name(), aloneAllowed, name)
		if err != nil {
			return t, nil, err
		}
		if o != survived {
			return t, append([]byte{}, out...), nil
		}
		t.cost = cost{max(t.cost.cpu, took.cpu), max(t.cost.wall, took.wall)}
	}
	b, err := os.ReadFile(f.Name())
	for word := range bytes.FieldsSeq(b) {
		site, _ := strconv.Atoi(string(word))
		t.reached[site] = true
	}
	return t, nil, err
}

// reaching returns the tests that run a site.
func (s *suite) reaching(site int) (tests []test) {
	for _, t := range s.tests {
		if t.reached[site] {
			tests = append(tests, t)
		}
	}
	return tests
}

// batch is what runs in one process.
type batch struct {
	names []string
	cost  cost
}

// What the first process may cost, and how many times as much each next one.
const (
	firstBatch = 50 * time.Millisecond
	growBatch  = 5
)

// batches puts tests, the cheapest first, into few processes: most mutants die in
// the first one, and to start another costs as much as several small tests.
func batches(tests []test) (all []batch) {
	budget := time.Duration(0)
	for _, t := range tests {
		if len(all) == 0 || all[len(all)-1].cost.cpu+t.cost.cpu > budget {
			budget = max(firstBatch, growBatch*budget, t.cost.cpu)
			all = append(all, batch{})
		}
		b := &all[len(all)-1]
		b.names = append(b.names, t.name)
		b.cost.cpu += t.cost.cpu
		b.cost.wall += t.cost.wall
	}
	return all
}
