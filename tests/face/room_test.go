package face

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is a package below, as its source says it.
type room struct {
	above   *facade
	name    string
	fset    *token.FileSet
	source  map[string][]byte
	types   map[string]*ast.TypeSpec
	doc     map[string]string
	methods map[string][]*ast.FuncDecl // by receiver, exported ones
	funcs   map[string]*ast.FuncDecl
	consts  map[string][]*ast.GenDecl // by type
	fails   []*ast.ValueSpec          // the errors to test for
}

func readRoom(t *testing.T, above *facade, name, dir string) *room {
	r := &room{
		above: above, name: name, fset: token.NewFileSet(), source: make(map[string][]byte), types: make(map[string]*ast.TypeSpec), doc: make(map[string]string),
		methods: make(map[string][]*ast.FuncDecl), funcs: make(map[string]*ast.FuncDecl), consts: make(map[string][]*ast.GenDecl),
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(r.fset, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		r.source[path] = text
		for _, d := range f.Decls {
			r.declare(d)
		}
	}
	for _, all := range r.methods {
		slices.SortStableFunc(all, func(a, b *ast.FuncDecl) int { return cmp.Compare(a.Name.Name, b.Name.Name) })
	}
	return r
}

func (r *room) declare(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		switch {
		case !d.Name.IsExported():
		case d.Recv == nil:
			r.funcs[d.Name.Name] = d
		default:
			of := d.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			if x, ok := of.(*ast.Ident); ok {
				r.methods[x.Name] = append(r.methods[x.Name], d)
			}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				r.types[s.Name.Name] = s
				r.doc[s.Name.Name] = cmp.Or(s.Doc.Text(), d.Doc.Text())
			case *ast.ValueSpec:
				if x, ok := s.Type.(*ast.Ident); ok && d.Tok == token.CONST && s == d.Specs[0] {
					r.consts[x.Name] = append(r.consts[x.Name], d)
				}
				if d.Tok == token.VAR && strings.HasPrefix(s.Names[0].Name, "Err") {
					r.fails = append(r.fails, s)
				}
			}
		}
	}
}

// edit replaces a part of the source.
type edit struct {
	from, to token.Pos
	text     string
}

// text is the source of a node in our names, without fields that are not ours to see.
func (r *room) text(n ast.Node, of string) string {
	var edits []edit
	r.rename(n, of, &edits)
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	at := n.Pos()
	for _, e := range edits {
		b.WriteString(r.slice(at, e.from) + e.text)
		at = e.to
	}
	b.WriteString(r.slice(at, n.End()))
	return r.inOurNames(b.String())
}

func (r *room) slice(from, to token.Pos) string {
	a := r.fset.Position(from)
	return string(r.source[a.Filename][a.Offset:r.fset.Position(to).Offset])
}

func (r *room) rename(n ast.Node, of string, edits *[]edit) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			r.hide(n, of, edits)
			return true
		case *ast.Field:
			if !slices.ContainsFunc(*edits, func(e edit) bool { return e.from <= n.Pos() && n.End() <= e.to }) {
				r.rename(n.Type, of, edits)
			}
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				if as, known := r.above.ours(x.Name, n.Sel.Name); known {
					*edits = append(*edits, edit{n.Pos(), n.End(), as})
				}
			}
			return false
		case *ast.Ident:
			if as, known := r.above.ours(r.name, n.Name); known && as != n.Name {
				*edits = append(*edits, edit{n.Pos(), n.End(), as})
			}
		}
		return true
	})
}

// hide leaves out fields.
func (r *room) hide(s *ast.StructType, of string, edits *[]edit) {
	hidden := false
	for _, f := range s.Fields.List {
		visible := false
		for _, name := range f.Names {
			visible = visible || name.IsExported() && !slices.Contains(r.above.unseen, of+"."+name.Name)
		}
		if visible || len(f.Names) == 0 {
			continue
		}
		hidden = hidden || !f.Names[0].IsExported()
		from, to := f.Pos(), f.End()
		if f.Doc != nil {
			from = f.Doc.Pos()
		}
		if f.Comment != nil {
			to = f.Comment.End()
		}
		*edits = append(*edits, edit{from, to, ""})
	}
	if hidden {
		*edits = append(*edits, edit{s.Fields.Closing, s.Fields.Closing, "\t// contains unexported fields\n"})
	}
}

var (
	qualified = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`)
	linked    = regexp.MustCompile(`\[([A-Z]\w*)`)
)

// inOurNames replaces names of rooms below in comments.
func (r *room) inOurNames(text string) string {
	text = qualified.ReplaceAllStringFunc(text, func(s string) string {
		from, name, _ := strings.Cut(s, ".")
		if as, known := r.above.ours(from, name); known {
			return as
		}
		return s
	})
	return linked.ReplaceAllStringFunc(text, func(s string) string {
		if as, known := r.above.ours(r.name, s[1:]); known {
			return "[" + as
		}
		return s
	})
}

// comment writes a comment; what is indented stays so.
func comment(b *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("// "+line, " \n") + "\n")
	}
}

// block writes lines of code in a comment.
func block(b *bytes.Buffer, text string) {
	b.WriteString("//\n")
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("//\t"+line, " \t\n") + "\n")
	}
}

func (r *room) about(name, as string) string {
	return r.inOurNames(strings.Replace(r.doc[name], name+" ", as+" ", 1))
}

func (r *room) alias(b *bytes.Buffer, t *shown) {
	name, as := t.name, cmp.Or(t.as, t.name)
	b.WriteString("\n")
	comment(b, r.about(name, as))
	block(b, formatted("type "+as+" "+r.text(r.types[name].Type, name)))
	for _, d := range r.consts[name] {
		block(b, formatted(r.visible(d, func(s *ast.ValueSpec) string {
			line := t.prefix + r.text(s, name)
			if s.Comment != nil {
				line += " // " + strings.TrimSpace(s.Comment.Text())
			}
			for doc := range strings.Lines(reverse(s.Doc.Text())) {
				line = "// " + strings.TrimSpace(doc) + "\n\t" + line
			}
			return line
		})))
	}
	for _, m := range r.methods[name] {
		text := "func (" + r.receiver(m, as) + ") " + m.Name.Name + r.signature(m) + "\n"
		for line := range strings.Lines(m.Doc.Text()) {
			text += "    " + line
		}
		block(b, r.inOurNames(text))
	}
	fmt.Fprintf(b, "type %s = %s.%s\n", as, r.name, name)
}

func formatted(text string) string {
	b, err := format.Source([]byte(text))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// reverse turns lines around.
func reverse(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Reverse(lines)
	return strings.Join(lines, "")
}

// visible is a block of constants without those that are not exported.
func (r *room) visible(d *ast.GenDecl, line func(*ast.ValueSpec) string) string {
	text := "const (\n"
	for _, s := range d.Specs {
		if v := s.(*ast.ValueSpec); v.Names[0].IsExported() {
			text += "\t" + line(v) + "\n"
		}
	}
	return text + ")"
}

func (r *room) constants(b *bytes.Buffer, t *shown) {
	as := cmp.Or(t.as, t.name)
	for _, d := range r.consts[t.name] {
		fmt.Fprintf(b, "\n// What [%s] can be.\n%s\n", as, r.visible(d, func(s *ast.ValueSpec) string {
			return t.prefix + s.Names[0].Name + " = " + r.name + "." + s.Names[0].Name
		}))
	}
}

// roomName is how errors of package dgrdma begin.
var roomName = regexp.MustCompile(`^[a-z]+: `)

// errors are the errors to test for, each with what it says.
func (r *room) errors(b *bytes.Buffer, title string, as map[string]string) {
	fmt.Fprintf(b, "\n// %s, to test for with errors.Is, and what they say.\nvar (\n", title)
	for _, s := range r.fails {
		name := s.Names[0].Name
		fmt.Fprintf(b, "\t%s = %s.%s", cmp.Or(as[name], name), r.name, name)
		says, _ := strconv.Unquote(r.saying(s.Values[0]).Value)
		says = strings.TrimRight(strings.TrimSuffix(says, "%w"), ": ")
		b.WriteString(" // " + roomName.ReplaceAllString(says, ""))
		b.WriteString("\n")
	}
	b.WriteString(")\n")
}

// saying is the text of an error that is made by a call, or of a type with a method that
// returns it.
func (r *room) saying(e ast.Expr) *ast.BasicLit {
	if call, ok := e.(*ast.CallExpr); ok {
		return call.Args[0].(*ast.BasicLit)
	}
	of := e.(*ast.CompositeLit).Type.(*ast.Ident).Name
	i := slices.IndexFunc(r.methods[of], func(m *ast.FuncDecl) bool { return m.Name.Name == "Error" })
	return r.methods[of][i].Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit)
}

func (r *room) copied(b *bytes.Buffer, name string) {
	b.WriteString("\n")
	comment(b, r.about(name, name))
	fmt.Fprintf(b, "type %s %s\n", name, r.text(r.types[name].Type, name))
}

func (r *room) handle(b *bytes.Buffer, name string) {
	b.WriteString("\n")
	comment(b, r.about(name, name))
	fmt.Fprintf(b, "type %s endpoint.%s\n", name, name)
	for _, m := range r.methods[name] {
		if slices.Contains(r.above.byHand, name+"."+m.Name.Name) {
			continue
		}
		b.WriteString("\n")
		comment(b, r.inOurNames(m.Doc.Text()))
		receiver, _, _ := strings.Cut(r.receiver(m, name), " ")
		fmt.Fprintf(b, "func (%s *%s) %s%s {", receiver, name, m.Name.Name, r.signature(m))
		r.call(b, m, fmt.Sprintf("(*endpoint.%s)(%s).%s", name, receiver, m.Name.Name))
	}
}

func (r *room) function(b *bytes.Buffer, name string) {
	f := r.funcs[name]
	b.WriteString("\n")
	comment(b, r.inOurNames(f.Doc.Text()))
	fmt.Fprintf(b, "func %s%s {", name, r.signature(f))
	r.call(b, f, r.name+"."+name)
}

func (r *room) call(b *bytes.Buffer, f *ast.FuncDecl, of string) {
	var args []string
	for _, p := range f.Type.Params.List {
		for _, n := range p.Names {
			args = append(args, argument(n))
		}
	}
	if f.Type.Results != nil {
		of = "return " + of
	}
	fmt.Fprintf(b, "%s(%s) }\n", of, strings.Join(args, ", "))
}

// argument is the name of an argument, which may have none.
func argument(n *ast.Ident) string {
	if n.Name == "_" {
		return "src"
	}
	return n.Name
}

func (r *room) receiver(m *ast.FuncDecl, as string) string {
	f := m.Recv.List[0]
	name := strings.ToLower(as[:1])
	if len(f.Names) > 0 {
		name = f.Names[0].Name
	}
	if _, ok := f.Type.(*ast.StarExpr); ok {
		as = "*" + as
	}
	return name + " " + as
}

// signature is that of a function in our names.
func (r *room) signature(f *ast.FuncDecl) string {
	list := func(fields *ast.FieldList) string {
		var all []string
		for _, p := range fields.List {
			var names []string
			for _, n := range p.Names {
				names = append(names, argument(n))
			}
			all = append(all, strings.TrimSpace(strings.Join(names, ", ")+" "+r.text(p.Type, "")))
		}
		return strings.Join(all, ", ")
	}
	s := "(" + list(f.Type.Params) + ")"
	switch res := f.Type.Results; {
	case res == nil:
	case len(res.List) == 1 && len(res.List[0].Names) == 0:
		s += " " + list(res)
	default:
		s += " (" + list(res) + ")"
	}
	return s
}
