package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestNoTargetIsForgotten: whatever file of the tree defines one, it is found, but for modules
// of their own and what go.mod leaves out.
func TestNoTargetIsForgotten(t *testing.T) {
	t.Chdir("../..")
	all, err := find(t.Context(), []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	var found, there []string
	for _, target := range all {
		found = append(found, strings.TrimPrefix(target.String(), "github.com/dgrdma/dgrdma/"))
	}
	define := regexp.MustCompile(`(?m)^func (Fuzz[^(]*)\(`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range define.FindAllSubmatch(b, -1) {
			there = append(there, filepath.ToSlash(filepath.Dir(path))+" "+string(m[1]))
		}
		return err
	})
	slices.Sort(there)
	if err != nil || len(there) < 20 || !slices.Equal(found, there) {
		t.Errorf("found %d:\n%s\nthere are %d:\n%s\n%v", len(found), strings.Join(found, "\n"), len(there), strings.Join(there, "\n"), err)
	}
}

// TestRuns: each target has a row that says what became of it, an input that fails is kept, and
// one failure is enough for the whole to fail.
func TestRuns(t *testing.T) {
	fixture.OfTheGate(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/tried")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	o := options{long: time.Second, atOnce: 2, minimize: "10x", only: regexp.MustCompile("")}
	var out, log strings.Builder
	good, err := fuzz(t.Context(), o, false, nil, &out, &log)
	if good || err != nil {
		t.Errorf("good %v, %v", good, err)
	}
	inputs, _ := filepath.Glob("testdata/fuzz/FuzzBad/*")
	if len(inputs) != 1 {
		t.Fatalf("kept of FuzzBad: %q\n%s", inputs, log.String())
	}
	rows := regexp.MustCompile(`(?m)^target +executions +new +seconds +result
tried FuzzAtOnce +0 +0 +\d+ +FAILED
tried FuzzBad +\d+ +\d+ +\d+ +FAILED: ` + regexp.QuoteMeta(inputs[0]) + `
tried FuzzGood +[1-9]\d* +\d+ +\d+ +passed
$`)
	if !rows.MatchString(out.String()) || !strings.Contains(log.String(), "another input") || !strings.Contains(log.String(), "this seed") {
		t.Errorf("printed\n%s\nand beside it\n%s", out.String(), log.String())
	}
	o.only = regexp.MustCompile("Good")
	if good, err := fuzz(t.Context(), o, false, nil, io.Discard, io.Discard); !good || err != nil {
		t.Errorf("the target that fails nowhere: good %v, %v", good, err)
	}
}

// TestChoices: what is asked for and not there is an error.
func TestChoices(t *testing.T) {
	t.Chdir("../..")
	o := options{long: time.Second, atOnce: 1, only: regexp.MustCompile("Parse$")}
	var out strings.Builder
	if good, err := fuzz(t.Context(), o, true, []string{"./frame", "./url"}, &out, io.Discard); !good || err != nil ||
		out.String() != "github.com/dgrdma/dgrdma/frame FuzzParse\ngithub.com/dgrdma/dgrdma/url FuzzParse\n" {
		t.Errorf("good %v, %v:\n%s", good, err, out.String())
	}
	for want, run := range map[string]func() (bool, error){
		"no fuzz target in ./settings": func() (bool, error) {
			return fuzz(t.Context(), o, true, []string{"./settings"}, io.Discard, io.Discard)
		},
		"need -for": func() (bool, error) {
			return fuzz(t.Context(), options{long: time.Millisecond, atOnce: 1}, true, nil, io.Discard, io.Discard)
		},
		"go list": func() (bool, error) { return fuzz(t.Context(), o, true, []string{"./nowhere"}, io.Discard, io.Discard) },
	} {
		if _, err := run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestReadsTheLastCount: go test prints one every few seconds.
func TestReadsTheLastCount(t *testing.T) {
	r := read("fuzz: elapsed: 3s, execs: 100 (33/sec), new interesting: 1 (total: 2)\nfuzz: elapsed: 6s, execs: 250 (50/sec), new interesting: 7 (total: 8)\n" +
		"    Failing input written to testdata/fuzz/FuzzX/0123\n")
	if r.executions != 250 || r.fresh != 7 || r.became != failed+": testdata/fuzz/FuzzX/0123" {
		t.Errorf("%+v", r)
	}
}
