package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamplesExplainThemselves: each says at -h how it is used, on standard output, as dgrdmacat does, and ends well.
func TestExamplesExplainThemselves(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", dir, "../examples/...").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	programs, err := os.ReadDir(dir)
	if err != nil || len(programs) == 0 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	for _, p := range programs {
		if !strings.HasPrefix(p.Name(), "dgrdma-") {
			t.Errorf("go install puts %s where it hides, or is hidden by, another program of that name (N19)", p.Name())
		}
		c := exec.Command(filepath.Join(dir, p.Name()), "-h")
		var out, says bytes.Buffer
		c.Stdout, c.Stderr = &out, &says
		if err := c.Run(); err != nil || !strings.HasPrefix(out.String(), "usage: "+p.Name()+" ") || says.Len() > 0 {
			t.Errorf("%s -h: %v, %q, %q", p.Name(), err, &out, &says)
		}
	}
}
