package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRoomsEndHangs checks that each package whose tests wait for goroutines, processes or sockets ends when they hang:
// that its TestMain calls fixture.Run or fixture.EndHangs (N1).
func TestRoomsEndHangs(t *testing.T) {
	waiting := map[string]string{} // a package, and what in it waits
	ending := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if d.Name() == "testdata" || path != ".." && (strings.HasPrefix(d.Name(), ".") || err == nil) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		room := filepath.Dir(path)
		ast.Inspect(f, func(n ast.Node) bool {
			waits := false
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt:
				waits = true
			case *ast.UnaryExpr:
				waits = n.Op == token.ARROW
			case *ast.ImportSpec:
				waits = slices.Contains([]string{`"net/http"`, `"os/exec"`, `"testing/synctest"`}, n.Path.Value)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "fixture" && (n.Sel.Name == "Run" || n.Sel.Name == "EndHangs") {
					ending[room] = true
				}
			}
			if waits {
				waiting[room] = files.Position(n.Pos()).String()
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(waiting, "../tests/fixture") // its TestMain gives the time
	delete(waiting, "../tests/siw")     // a virtual machine works for it, which is no process of its own
	if len(waiting) < 20 {
		t.Errorf("only %d packages have tests that wait: does this test find them?", len(waiting))
	}
	for room, where := range waiting {
		if !ending[room] {
			t.Errorf("%s: tests wait for goroutines, processes or sockets, and nothing ends them when they hang: call fixture.EndHangs in TestMain", where)
		}
	}
}
