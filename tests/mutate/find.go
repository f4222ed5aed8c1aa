package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/format"
	"go/token"
	"go/types"
	"strings"
)

// silent are methods that only make words: no test should repeat these.
var silent = map[string]bool{"String": true, "Error": true, "GoString": true, "LogValue": true}

// finder walks a function and notes what can be changed.
type finder struct {
	p        *pack
	s        *source
	function string
	results  bool // of the innermost function
}

// find notes all sites of a file.
func (p *pack) find(s *source) {
	s.findParents()
	for _, d := range s.ast.Decls {
		f := finder{p: p, s: s}
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil || d.Recv != nil && silent[d.Name.Name] {
				continue
			}
			f.function = d.Name.Name
			if d.Recv != nil && len(d.Recv.List) > 0 {
				f.function = fmt.Sprintf("(%s).%s", f.print(d.Recv.List[0].Type), d.Name.Name)
			}
			f.results = d.Type.Results != nil
			f.walk(d.Body)
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			for _, spec := range d.Specs {
				f.function = spec.(*ast.ValueSpec).Names[0].Name
				for _, v := range spec.(*ast.ValueSpec).Values {
					f.walk(v)
				}
			}
		}
	}
}

// walk visits what is below n, and n itself.
func (f finder) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			inner := f
			inner.results = n.Type.Results != nil
			inner.walk(n.Body)
			return false
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.ArrayType:
			return false // its length must be a constant
		case *ast.KeyValueExpr:
			f.walk(n.Value)
			return false
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CommClause:
			f.statements(n.Body)
		case *ast.CaseClause:
			f.statements(n.Body)
		case *ast.IfStmt:
			f.condition(n.Cond, true)
			if n.Else == nil {
				if len(n.Body.List) == 1 && f.calls(n.Cond) == 0 {
					f.p.twice[n.Body.List[0]] = "" // as if the condition were false
				}
				f.returns(n.Body)
			}
		case *ast.ReturnStmt:
			f.returned(n.Results)
		case *ast.ForStmt:
			if n.Cond != nil {
				f.condition(n.Cond, false)
			}
		case *ast.SwitchStmt:
			f.cases(n)
		case ast.Expr:
			return f.expression(n)
		}
		return true
	})
}

// condition fixes a condition. A loop whose condition is always true is only slow.
func (f finder) condition(c ast.Expr, both bool) {
	f.expr(c, "condition", "false")
	if both {
		f.expr(c, "condition", "true")
	}
}

func (f finder) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, c := range n.Body.List {
		for _, e := range c.(*ast.CaseClause).List {
			f.condition(e, true)
		}
	}
}

// statements removes statements, or turns them round.
func (f finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && f.print(call.Fun) == "panic" {
				continue // it may end a function
			}
			f.stmt(s, "")
		case *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
			f.stmt(s, "")
		case *ast.BranchStmt:
			if s.Tok != token.GOTO && s.Tok != token.FALLTHROUGH {
				f.stmt(s, "")
			}
		case *ast.ReturnStmt:
			if !f.results {
				f.stmt(s, "")
			}
		case *ast.IncDecStmt:
			f.stmt(s, "")
			other := token.INC
			if s.Tok == token.INC {
				other = token.DEC
			}
			f.stmt(s, f.print(s.X)+other.String())
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || f.print(s.Lhs[0]) == "_" && len(s.Lhs) == 1 {
				continue
			}
			f.stmt(s, "")
			if with, ok := exchanged[s.Tok]; ok && f.isNumber(s.Lhs[0]) {
				f.stmt(s, f.print(s.Lhs[0])+" "+with.String()+" "+f.print(s.Rhs[0]))
			}
		}
	}
}

// returns removes the return at the end of a block that is left otherwise too.
func (f finder) returns(b *ast.BlockStmt) {
	if n := len(b.List); n > 0 && f.results {
		if s, ok := b.List[n-1].(*ast.ReturnStmt); ok {
			f.stmt(s, "")
		}
	}
}

// returned leaves a 0 alone that comes with false: it says nothing.
func (f finder) returned(results []ast.Expr) {
	if n := len(results); n > 1 && f.print(results[n-1]) == "false" {
		for _, e := range results[:n-1] {
			if f.print(e) == "0" {
				f.p.twice[e] = "1"
			}
		}
	}
}

// calls returns how many functions an expression calls.
func (f finder) calls(e ast.Expr) (n int) {
	ast.Inspect(e, func(n2 ast.Node) bool {
		if c, ok := n2.(*ast.CallExpr); ok && !f.p.info.Types[c.Fun].IsType() && !f.p.info.Types[c.Fun].IsBuiltin() {
			n++
		}
		return true
	})
	return n
}

// bounds are comparisons, and what their number becomes, if it is on the right, where
// the operator that stands in says the same of whole numbers.
var bounds = map[token.Token]token.Token{token.LSS: token.ADD, token.LEQ: token.SUB, token.GTR: token.SUB, token.GEQ: token.ADD}

// exchanged are operators, and what stands in for them.
var exchanged = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.QUO,
	token.SHL: token.SHR, token.SHR: token.SHL, token.AND: token.OR, token.OR: token.AND, token.XOR: token.AND, token.AND_NOT: token.AND,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN, token.OR_ASSIGN: token.AND_ASSIGN,
	token.AND_ASSIGN: token.OR_ASSIGN, token.AND_NOT_ASSIGN: token.OR_ASSIGN, token.SHL_ASSIGN: token.SHR_ASSIGN, token.SHR_ASSIGN: token.SHL_ASSIGN,
}

// expression changes an expression, and reports whether to look into it.
func (f finder) expression(e ast.Expr) bool {
	tv := f.p.info.Types[e]
	if tv.IsType() {
		return false
	}
	if tv.Value != nil {
		f.constant(e, tv)
		return false
	}
	b, ok := e.(*ast.BinaryExpr)
	if !ok {
		return true
	}
	switch b.Op {
	case token.LAND, token.LOR:
		f.expr(b, "condition", f.print(b.X))
		f.expr(b, "condition", f.print(b.Y))
		return true
	case token.EQL, token.NEQ:
		if f.s.has(b, "false") {
			return true // a condition that is fixed
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.bound(b.Y, bounds[b.Op])
		f.bound(b.X, exchanged[bounds[b.Op]])
	default:
		if !f.isNumber(b) {
			return true // strings can only be added
		}
	}
	if with, ok := exchanged[b.Op]; ok {
		f.expr(b, "operator", f.print(b.X)+" "+with.String()+" "+f.print(b.Y))
	}
	return true
}

// bound notes which change of a number a comparison has already.
func (f finder) bound(e ast.Expr, op token.Token) {
	if v := constant.ToInt(f.p.info.Types[e].Value); v.Kind() == constant.Int {
		f.p.twice[e] = constant.BinaryOp(v, op, constant.MakeInt64(1)).ExactString()
	}
}

func (f finder) isNumber(e ast.Expr) bool {
	t, ok := f.p.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && t.Info()&types.IsNumeric != 0
}

// constant changes a literal by one, doubles and halves what has a name, and turns
// a truth value round. 0 is not made less: that is hardly ever another thing
// than one less of what it is compared with.
func (f finder) constant(e ast.Expr, tv types.TypeAndValue) {
	t, ok := tv.Type.Underlying().(*types.Basic)
	if !ok || t.Info()&(types.IsBoolean|types.IsInteger) == 0 {
		return
	}
	if t.Info()&types.IsBoolean != 0 {
		f.expr(e, "constant", fmt.Sprint(!constant.BoolVal(tv.Value)))
		return
	}
	type change struct {
		op token.Token
		by int64
	}
	was := constant.ToInt(tv.Value)
	changes := []change{{token.MUL, 2}, {token.QUO_ASSIGN, 2}} // of whole numbers
	if _, ok := e.(*ast.BasicLit); ok {
		changes = []change{{token.ADD, 1}, {token.SUB, 1}}
		if constant.Sign(was) == 0 {
			changes = changes[:1]
		}
	}
	for _, c := range changes {
		v := constant.BinaryOp(was, c.op, constant.MakeInt64(c.by))
		if fits(v, t) && !constant.Compare(v, token.EQL, was) {
			f.expr(e, "constant", v.ExactString())
		}
	}
}

// fits reports whether a number is one of a type.
func fits(v constant.Value, t *types.Basic) bool {
	size := 8 * types.SizesFor("gc", "amd64").Sizeof(types.Default(t))
	if t.Info()&types.IsUnsigned != 0 {
		return constant.Sign(v) >= 0 && constant.BitLen(v) <= int(size)
	}
	return constant.BitLen(v) < int(size)
}

func (f finder) print(n ast.Node) string {
	var b strings.Builder
	format.Node(&b, token.NewFileSet(), n)
	return strings.Join(strings.Fields(b.String()), " ")
}

// expr notes a change of an expression if its type can be written down.
func (f finder) expr(e ast.Expr, kind, with string) {
	ok := true
	t := types.TypeString(types.Default(f.p.info.TypeOf(e)), func(from *types.Package) string {
		if from.Path() == f.p.path {
			return ""
		}
		for _, i := range f.s.ast.Imports {
			if i.Name == nil && i.Path.Value == `"`+from.Path()+`"` {
				return from.Name()
			}
		}
		ok = false
		return ""
	})
	if ok {
		f.note(e, t, kind, with)
	}
}

func (f finder) stmt(s ast.Stmt, with string) { f.note(s, "", "statement", with) }

func (f finder) note(n ast.Node, typ, kind, with string) {
	if same, ok := f.p.twice[n]; ok && same == with {
		return
	}
	lo, hi := int(n.Pos())-f.s.base, int(n.End())-f.s.base
	m := &mutant{
		pack: f.p.name, kind: kind, at: f.p.fset.Position(n.Pos()), function: f.function,
		from: f.print(n), to: with,
	}
	if kind == "constant" {
		m.in = f.around(n)
	}
	f.s.add(lo, hi, typ, m)
}

// around returns what a constant is part of, which by itself says little.
func (f finder) around(n ast.Node) string {
	parent := f.s.parents[n]
	for {
		switch parent.(type) {
		case *ast.ParenExpr, *ast.UnaryExpr:
			parent = f.s.parents[parent]
			continue
		case *ast.CaseClause:
			return "case " + f.print(n)
		}
		break
	}
	text := []rune(f.print(parent))
	if len(text) > 60 {
		return string(text[:60]) + "..."
	}
	return string(text)
}

// findParents notes what each node is part of.
func (s *source) findParents() {
	s.parents = map[ast.Node]ast.Node{}
	var above []ast.Node
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		if len(above) > 0 {
			s.parents[n] = above[len(above)-1]
		}
		above = append(above, n)
		return true
	})
}
