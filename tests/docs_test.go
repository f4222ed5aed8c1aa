package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages name tests in backquotes.
var pages = []string{"SECURITY.md", "README.md", "docs/peers.md"}

var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`")
	definedTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)\(`)
)

// TestPagesNameTests: the tests that pages name are there.
func TestPagesNameTests(t *testing.T) {
	defined := make(map[string]bool)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range definedTest.FindAllSubmatch(b, -1) {
			defined[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		b, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Error(err)
			continue
		}
		names := namedTest.FindAllSubmatch(b, -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, m := range names {
			if name := string(m[1]); !defined[name] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
}
