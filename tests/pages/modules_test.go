package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fetch brings the modules here that programs of pages need, and those that go mod tidy asks for beside
// them: where pages are read there is no network.
func fetch(t *testing.T, pages []*page) {
	t.Helper()
	dir := t.TempDir()
	for _, p := range pages {
		for i, b := range p.blocks {
			if b.kind != "go" {
				continue
			}
			program := filepath.Join(dir, strings.ReplaceAll(p.name, "/", "-")+strconv.Itoa(i))
			if err := os.Mkdir(program, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(program, "main.go"), []byte(strings.Join(b.lines, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, args := range [][]string{{"init", "try"}, {"edit", "-replace", "github.com/dgrdma/dgrdma=" + clone}, {"tidy"}} {
		c := exec.Command("go", append([]string{"mod"}, args...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go mod %s: %v: %s", args[0], err, out)
		}
	}
}
