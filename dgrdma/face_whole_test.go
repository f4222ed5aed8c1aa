package dgrdma

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

// compiled is this package as its importers see it.
func compiled(t *testing.T) *types.Package {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	export := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		export[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	p, err := from.Import(module + "dgrdma")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// documented is this package as go doc shows it.
func documented(t *testing.T) *doc.Package {
	t.Helper()
	fset := token.NewFileSet()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, module+"dgrdma")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFaceNeedsNoOtherImport: every type of this module that a program meets in
// signatures and fields, be it in those of such types, has a name here.
func TestFaceNeedsNoOtherImport(t *testing.T) {
	scope := compiled(t).Scope()
	named := make(map[*types.TypeName]bool)
	for _, name := range scope.Names() {
		if of, ok := scope.Lookup(name).(*types.TypeName); ok && of.Exported() {
			if n, ok := types.Unalias(of.Type()).(*types.Named); ok {
				named[n.Obj()] = true
			}
		}
	}
	if len(named) < 30 {
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

// TestFaceIsDocumented: go doc shows the fields and methods of every type, and says
// something of each.
func TestFaceIsDocumented(t *testing.T) {
	p, scope := documented(t), compiled(t).Scope()
	says := func(name, text string) {
		if strings.TrimSpace(text) == "" {
			t.Errorf("nothing is said of %s", name)
		}
	}
	for _, f := range p.Funcs {
		says(f.Name, f.Doc)
	}
	for _, x := range p.Types {
		says(x.Name, x.Doc)
		for _, f := range slices.Concat(x.Funcs, x.Methods) {
			says(x.Name+"."+f.Name, f.Doc)
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

// TestGoDocShowsTheFace runs what a person does.
func TestGoDocShowsTheFace(t *testing.T) {
	for args, wants := range map[string][]string{
		"Conn":             {"func (c *Conn) Write(ctx context.Context, t *Transaction) error", "func (c *Conn) Post(t *Transaction) error", "is down with"},
		"Conn.Write":       {"waits until it is done", "It calls no Done"},
		"Region.Wait":      {"Only the context ends it"},
		"Config.Queue":     {"how many transactions a connection holds"},
		"Memory.Admit":     {"before any byte of"},
		"Transaction":      {"Fence bool", "func (t *Transaction) Bytes() (n int)"},
		"Reason":           {"RefusedMalformed", "no frame of the protocol"},
		"Addr":             {"func (a Addr) AddrPort() netip.AddrPort"},
		"ProfileByName":    {"func ProfileByName("},
		"Counters":         {"FramesSent", "func (c *Counters) Add(o *Counters)"},
		"Endpoint.Connect": {"Transactions can be posted at once"},
	} {
		out, err := exec.Command("go", "doc", ".", args).CombinedOutput()
		if err != nil {
			t.Errorf("go doc %s: %v: %s", args, err, out)
		}
		for _, want := range wants {
			if !strings.Contains(strings.Join(strings.Fields(string(out)), " "), want) {
				t.Errorf("go doc %s does not say %q:\n%s", args, want, out)
			}
		}
	}
}

// TestExampleImportsNothingElse: the example that shows so.
func TestExampleImportsNothingElse(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "example_alone_test.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		if path := strings.Trim(i.Path.Value, `"`); strings.Contains(path, ".") && path != module+"dgrdma" {
			t.Errorf("it imports %s", path)
		}
	}
}
