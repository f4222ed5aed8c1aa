package face

import (
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dgrdma/dgrdma/"

// compiled is the package as its importers see it.
func (f *facade) compiled(t *testing.T) *types.Package {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", module+f.name).Output()
	if err != nil {
		t.Fatal(err)
	}
	export := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		export[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	p, err := from.Import(module + f.name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// documented is the package as go doc shows it.
func (f *facade) documented(t *testing.T) *doc.Package {
	t.Helper()
	fset := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join("..", "..", f.name, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, module+f.name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFacesNeedNoOtherImport: every type of this module that a program meets in
// signatures and fields, be it in those of such types, has a name in the package.
func TestFacesNeedNoOtherImport(t *testing.T) {
	for _, f := range faces {
		t.Run(f.name, f.alone)
	}
}

func (f *facade) alone(t *testing.T) {
	scope := f.compiled(t).Scope()
	named := make(map[*types.TypeName]bool)
	for _, name := range scope.Names() {
		if of, ok := scope.Lookup(name).(*types.TypeName); ok && of.Exported() {
			if n, ok := types.Unalias(of.Type()).(*types.Named); ok {
				named[n.Obj()] = true
			}
		}
	}
	if len(named) < len(f.types) {
		t.Fatalf("there are %d types only", len(named))
	}
	var meet func(x types.Type, where string)
	meet = func(x types.Type, where string) {
		switch x := types.Unalias(x).(type) {
		case *types.Named:
			if of := x.Obj(); of.Pkg() != nil && strings.HasPrefix(of.Pkg().Path(), module) && !named[of] {
				t.Errorf("%s mentions %s.%s, which has no name here", where, of.Pkg().Name(), of.Name())
			}
			for arg := range x.TypeArgs().Types() {
				meet(arg, where)
			}
		case *types.Pointer:
			meet(x.Elem(), where)
		case *types.Slice:
			meet(x.Elem(), where)
		case *types.Array:
			meet(x.Elem(), where)
		case *types.Chan:
			meet(x.Elem(), where)
		case *types.Map:
			meet(x.Key(), where)
			meet(x.Elem(), where)
		case *types.Signature:
			for v := range x.Params().Variables() {
				meet(v.Type(), where)
			}
			for v := range x.Results().Variables() {
				meet(v.Type(), where)
			}
		case *types.Struct:
			for f := range x.Fields() {
				if f.Exported() {
					meet(f.Type(), where+"."+f.Name())
				}
			}
		case *types.Interface:
			for m := range x.Methods() {
				meet(m.Type(), where+"."+m.Name())
			}
		}
	}
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if !o.Exported() {
			continue
		}
		meet(o.Type(), name)
		n, ok := types.Unalias(o.Type()).(*types.Named)
		if _, isType := o.(*types.TypeName); !isType || !ok {
			continue
		}
		meet(n.Underlying(), name)
		for m := range n.Methods() {
			if m.Exported() {
				meet(m.Type(), name+"."+m.Name())
			}
		}
	}
}

// TestFacesAreDocumented: go doc shows the fields and methods of every type, and says
// something of each.
func TestFacesAreDocumented(t *testing.T) {
	for _, f := range faces {
		t.Run(f.name, f.said)
	}
}

func (f *facade) said(t *testing.T) {
	p, scope := f.documented(t), f.compiled(t).Scope()
	says := func(name, text string) {
		if strings.TrimSpace(text) == "" {
			t.Errorf("nothing is said of %s", name)
		}
	}
	for _, d := range p.Funcs {
		says(d.Name, d.Doc)
	}
	for _, x := range p.Types {
		says(x.Name, x.Doc)
		for _, d := range slices.Concat(x.Funcs, x.Methods) {
			says(x.Name+"."+d.Name, d.Doc)
		}
		alias := x.Decl.Specs[0].(*ast.TypeSpec).Assign.IsValid()
		if !alias {
			continue
		}
		of := types.Unalias(scope.Lookup(x.Name).Type()).(*types.Named)
		var members []string
		for m := range of.Methods() {
			members = append(members, m.Name())
		}
		switch u := of.Underlying().(type) {
		case *types.Struct:
			for f := range u.Fields() {
				members = append(members, f.Name())
			}
		case *types.Interface:
			for m := range u.Methods() {
				members = append(members, m.Name())
			}
		}
		for _, m := range members {
			if ast.IsExported(m) && !regexp.MustCompile(`(?m)^\t.*\b`+m+`\b`).MatchString(x.Doc) {
				t.Errorf("%s of %s is not shown", m, x.Name)
			}
		}
	}
}
