package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestErrorsNameNoRooms checks that no error of RDMA begins with the name of a package: in a chain it would stand within a
// sentence, and means nothing to a user (N20).
func TestErrorsNameNoRooms(t *testing.T) {
	room := regexp.MustCompile(`^(rdmap|ddp|mpa|memory|verbs|latency|rping): `)
	seen := 0
	for _, dir := range []string{"rdmap", "verbs"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				seen++
				if s, err := strconv.Unquote(lit.Value); err != nil || room.MatchString(s) {
					t.Errorf("%v: %s", set.Position(lit.Pos()), lit.Value)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 300 {
		t.Errorf("%d texts: the wrong files are looked at", seen)
	}
}
