package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// arrow is between what was and what is in its place.
const arrow = " => "

// mutant is one change.
type mutant struct {
	id       int // from 1
	pack     string
	kind     string // statement, condition, operator or constant
	at       token.Position
	function string
	from, to string // source; to is empty for what is removed
}

// key names a mutant whatever lines its file has.
func (m *mutant) key() string {
	to := m.to
	if to == "" {
		to = "nothing"
	}
	return m.pack + " " + m.function + ": " + m.from + arrow + to
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d: %s", filepath.Base(m.at.Filename), m.at.Line, m.key())
}

// site is a stretch of a file that mutants change.
type site struct {
	lo, hi  int
	typ     string // of an expression; empty: a statement
	mutants []*mutant
}

// add notes a mutant. Sites lie in each other or apart, as in the syntax.
func (s *source) add(lo, hi int, typ string, m *mutant) {
	for _, x := range s.sites {
		if x.lo == lo && x.hi == hi && (x.typ == "") == (typ == "") {
			if !slices.ContainsFunc(x.mutants, func(o *mutant) bool { return o.to == m.to }) {
				x.mutants = append(x.mutants, m)
			}
			return
		}
	}
	s.sites = append(s.sites, &site{lo, hi, typ, []*mutant{m}})
}

// has reports whether an expression is known to be changed like that.
func (s *source) has(n ast.Node, to string) bool {
	return slices.ContainsFunc(s.sites, func(x *site) bool {
		return x.lo == int(n.Pos())-s.base && x.hi == int(n.End())-s.base && slices.ContainsFunc(x.mutants, func(m *mutant) bool { return m.to == to })
	})
}

// drop forgets the sites that begin in these lines and returns how many mutants
// they had.
func (s *source) drop(fset *token.FileSet, lines map[int]bool) (n int) {
	s.sites = slices.DeleteFunc(s.sites, func(x *site) bool {
		if !lines[fset.Position(token.Pos(x.lo+s.base)).Line] {
			return false
		}
		n += len(x.mutants)
		return true
	})
	return n
}

func (p *pack) mutants() (all []*mutant) {
	for _, s := range p.files {
		for _, x := range s.sites {
			all = append(all, x.mutants...)
		}
	}
	return all
}

// number gives every mutant its number, in the order of the files.
func (p *pack) number() {
	for _, s := range p.files {
		s.order()
	}
	for i, m := range p.mutants() {
		m.id = i + 1
	}
}

// order puts sites where they begin, and those first that hold others.
func (s *source) order() {
	slices.SortStableFunc(s.sites, func(a, b *site) int {
		switch {
		case a.lo != b.lo:
			return a.lo - b.lo
		case a.hi != b.hi:
			return b.hi - a.hi
		case a.typ == "":
			return -1
		}
		return 1
	})
}

// changed returns the file with all mutants in it, each where it was before.
func (s *source) changed() []byte {
	s.order()
	var b strings.Builder
	rest := s.render(&b, s.sites, 0, len(s.text))
	if len(rest) > 0 {
		panic("sites overlap")
	}
	return []byte(b.String())
}

// render writes the text from lo to hi with the sites in it, and returns those
// that lie behind.
func (s *source) render(b *strings.Builder, sites []*site, lo, hi int) []*site {
	for len(sites) > 0 && sites[0].hi <= hi {
		x := sites[0]
		b.Write(s.text[lo:x.lo])
		x.open(b)
		sites = s.render(b, sites[1:], x.lo, x.hi)
		x.close(b)
		lo = x.hi
	}
	b.Write(s.text[lo:hi])
	return sites
}

func (x *site) open(b *strings.Builder) {
	if x.typ != "" {
		fmt.Fprintf(b, "(func() %s { ", x.typ)
		for _, m := range x.mutants {
			fmt.Fprintf(b, "if chosenMutant == %d { return %s }; ", m.id, m.to)
		}
		b.WriteString("return ")
		return
	}
	for _, m := range x.mutants {
		fmt.Fprintf(b, "if chosenMutant == %d { %s } else ", m.id, m.to)
	}
	b.WriteString("{ ")
}

func (x *site) close(b *strings.Builder) {
	if x.typ != "" {
		b.WriteString(" }())")
		return
	}
	b.WriteString(" }")
}

// variable of the environment that chooses a mutant.
const variable = "MUTANT"

// chooser is the file that reads it.
func chooser(name string) string {
	return "package " + name + `

import (
	"os"
	"strconv"
)

var chosenMutant, _ = strconv.Atoi(os.Getenv("` + variable + `"))
`
}
