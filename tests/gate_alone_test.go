package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// besides are packages whose goroutines do not count: one looks for hangs, and the others' are those of live captures and of streams, which
// the tests of what reads captures do not open.
var besides = []string{"tests/fixture", "capture", "rdmap/mpa"}

// startsGoroutines reports whether a file has something of ours run beside something else.
func startsGoroutines(f *ast.File) (starts bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Go", "AfterFunc", "Parallel", "RunParallel"}, s.Sel.Name) {
				starts = true
			}
		}
		return true
	})
	return starts
}

// TestRoomsWithoutTheRaceDetector checks that in what the gate leaves out of its run with the race detector nothing of ours runs beside
// anything else: neither there, in its tests, nor in what either imports.
func TestRoomsWithoutTheRaceDetector(t *testing.T) {
	script, err := os.ReadFile("../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^single='/\((.*)\)\$'$`).FindSubmatch(script)
	if m == nil {
		t.Fatal("the gate has no list of them")
	}
	type source struct {
		starts bool
		needs  []string
	}
	read := map[string]*source{} // by path: many rooms need the same
	for room := range strings.SplitSeq(string(m[1]), "|") {
		seen, files := map[string]bool{}, 0
		var look func(of string, tests bool)
		look = func(of string, tests bool) {
			if seen[of] || slices.Contains(besides, of) {
				return
			}
			seen[of] = true
			paths, _ := filepath.Glob(filepath.Join("..", of, "*.go"))
			for _, path := range paths {
				if !tests && strings.HasSuffix(path, "_test.go") {
					continue
				}
				src := read[path]
				if src == nil {
					f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
					if err != nil {
						t.Fatal(err)
					}
					src = &source{starts: startsGoroutines(f)}
					for _, spec := range f.Imports {
						if own, inside := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); inside {
							src.needs = append(src.needs, own)
						}
					}
					read[path] = src
				}
				if files++; src.starts {
					t.Errorf("%s, which %s needs, starts goroutines", path, room)
				}
				for _, own := range src.needs {
					look(own, false)
				}
			}
		}
		look(room, true)
		if files == 0 {
			t.Errorf("there is no package %s", room)
		}
	}
}
