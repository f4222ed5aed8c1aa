package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// built returns the suite of a module with one package, whose tests are watched.
func built(t *testing.T, text, tests string) (*pack, *suite) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a test binary")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example\n\ngo 1.26\n", "plain.go": text, "plain_test.go": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	p, err := load(".")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.settle(); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	overlay, err := p.overlay(temp)
	if err != nil {
		t.Fatal(err)
	}
	s, err := build(t.Context(), temp, overlay, dir, ".", 2)
	if err != nil {
		t.Fatal(err)
	}
	return p, s
}

const halves = `package plain

import "os"

var limit = top() + 1

func top() int { return 41 }

func twice(n int) int { return n * 2 }

func half(n int) int { return n / 2 }

func third(n int) int { return n - 3 }

func forever(n int) int {
	for n > 0 {
		n--
	}
	return n
}

func random(n int) int {
	if _, err := os.Stat("seen"); err == nil {
		os.Remove("seen")
		return n + 5
	}
	os.WriteFile("seen", nil, 0o600)
	return n
}
`

const halvesTest = `package plain

import "testing"

func TestTwice(t *testing.T) {
	if twice(4) != 8 {
		t.Error("no")
	}
}

func TestHalf(t *testing.T) { half(3) }

func TestLimit(t *testing.T) {
	if limit != 42 {
		t.Error("no")
	}
}

func TestForever(t *testing.T) { forever(3) }

func TestRandom(t *testing.T) { random(3) }

func TestBroken(t *testing.T) { t.Error("always") }

func BenchmarkTwice(b *testing.B) { twice(2) }
`

// A mutant is tried by the tests that reach it, in any of two runs; what the package
// runs before main is reached by all of them.
func TestWhatTestsReach(t *testing.T) {
	p, s := built(t, halves, halvesTest)
	all := []string{"TestForever", "TestHalf", "TestLimit", "TestRandom", "TestTwice"}
	for _, tt := range []struct {
		mutant string
		tests  []string
		want   outcome
	}{
		{"plain twice: n * 2 => n / 2", []string{"TestTwice"}, killed},
		{"plain half: n / 2 => n * 2", []string{"TestHalf"}, survived},
		{"plain third: n - 3 => n + 3", nil, unreached},
		{"plain random: n + 5 => n - 5", []string{"TestRandom"}, survived},
		{"plain top: 41 => 42 in return 41", all, killed},
		{"plain limit: top() + 1 => top() - 1", all, killed},
		{"plain forever: n-- => nothing", []string{"TestForever"}, slow},
	} {
		i := slices.IndexFunc(p.mutants(), func(m *mutant) bool { return m.key() == tt.mutant })
		if i < 0 {
			t.Errorf("no mutant %s", tt.mutant)
			continue
		}
		m := p.mutants()[i]
		var names []string
		for _, x := range s.reaching(m.site) {
			names = append(names, x.name)
		}
		slices.Sort(names)
		if !slices.Equal(names, tt.tests) {
			t.Errorf("%s is reached by %v, want %v", m, names, tt.tests)
		}
		if o, err := s.try(t.Context(), m); o != tt.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", m, o, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.try(ctx, p.mutants()[0]); err == nil {
		t.Error("a run that was ended says something of the mutant")
	}
}

// What no test reaches is printed as such.
func TestUnreachedSurvives(t *testing.T) {
	m := &mutant{pack: "ack", function: "f", from: "a", to: "b"}
	r := trial{result: &result{untried: 3}}
	r.note(m, unreached)
	r.note(&mutant{}, slow)
	r.note(&mutant{}, killed)
	if got := fmt.Sprint(r.result.survived); !strings.HasSuffix(got, "ack f: a => b (not reached)]") || r.result.killed != 2 || r.result.slow != 1 || r.result.untried != 0 {
		t.Errorf("%+v", r.result)
	}
}

// A batch holds what costs little beside those before it.
func TestBatches(t *testing.T) {
	var tests []test
	for _, ms := range []int{1, 20, 20, 20, 200, 300, 5000} {
		tests = append(tests, test{name: fmt.Sprint(ms), cost: cost{time.Duration(ms) * time.Millisecond, time.Second}})
	}
	var got []string
	for _, b := range batches(tests) {
		got = append(got, fmt.Sprint(strings.Join(b.names, "+"), " ", b.cost.cpu, " ", b.cost.wall))
	}
	want := []string{"1+20+20 41ms 3s", "20+200 220ms 2s", "300 300ms 1s", "5000 5s 1s"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
