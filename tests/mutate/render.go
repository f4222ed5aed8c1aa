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
	id, site int // from 1
	pack     string
	kind     string // statement, condition, operator or constant
	at       token.Position
	function string
	from, to string // source; to is empty for what is removed
	in       string // what a constant is part of

	unreached bool // it survived, as no test runs it
}

// key names a mutant whatever lines its file has.
func (m *mutant) key() string {
	to := m.to
	if to == "" {
		to = "nothing"
	}
	if m.in != "" {
		to += " in " + m.in
	}
	return m.pack + " " + m.function + ": " + m.from + arrow + to
}

func (m *mutant) String() string {
	s := fmt.Sprintf("%s:%d: %s", filepath.Base(m.at.Filename), m.at.Line, m.key())
	if m.unreached {
		s += " (not reached)"
	}
	return s
}

// site is a stretch of a file that mutants change.
type site struct {
	number  int // from 1
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
	s.sites = append(s.sites, &site{lo: lo, hi: hi, typ: typ, mutants: []*mutant{m}})
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

// number gives every site and mutant its number, in the order of the files.
func (p *pack) number() {
	site, id := 0, 0
	for _, s := range p.files {
		s.order()
		for _, x := range s.sites {
			site++
			x.number = site
			for _, m := range x.mutants {
				id++
				m.id, m.site = id, site
			}
		}
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
		fmt.Fprintf(b, "(func() %s { if mutantAt[%d] != 0 { switch mutantOf(%[2]d) { ", x.typ, x.number)
		for _, m := range x.mutants {
			fmt.Fprintf(b, "case %d: return %s; ", m.id, m.to)
		}
		b.WriteString("} }; return ")
		return
	}
	for _, m := range x.mutants {
		fmt.Fprintf(b, "if mutantAt[%d] != 0 && mutantOf(%[1]d) == %d { %s } else ", x.number, m.id, m.to)
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

// Variables of the environment: one chooses a mutant, the other names a file for the
// numbers of the sites that are reached, which then change nothing.
const (
	variable      = "MUTANT"
	reachVariable = "MUTANT_REACHED"
)

// choice is what chooses a mutant.
func (m *mutant) choice() string { return fmt.Sprintf("%s=%d:%d", variable, m.site, m.id) }

// chooser is the file that the sites ask. A site that neither holds the chosen
// mutant nor is to be noted costs the look at a byte.
func (p *pack) chooser() string {
	sites := 1
	for _, s := range p.files {
		sites += len(s.sites)
	}
	return fmt.Sprintf(`package %s

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

var chosenMutant, mutantsReached, mutantAt = startMutant()

func startMutant() (chosen, reached int, at [%d]byte) {
	if name := os.Getenv("%s"); name != "" {
		for i := range at {
			at[i] = 1
		}
		reached, _ = syscall.Open(name, syscall.O_WRONLY|syscall.O_APPEND|syscall.O_CLOEXEC, 0)
		return 0, reached, at
	}
	site, id, _ := strings.Cut(os.Getenv("%s"), ":")
	chosen, _ = strconv.Atoi(id)
	if n, _ := strconv.Atoi(site); n > 0 {
		at[n] = 1
	}
	return chosen, 0, at
}

//go:noinline
func mutantOf(site int) int {
	if mutantsReached > 0 {
		mutantAt[site] = 0
		var line [20]byte
		syscall.Write(mutantsReached, append(strconv.AppendInt(line[:0], int64(site), 10), '\n'))
	}
	return chosenMutant
}
`, p.name, sites, reachVariable, variable)
}
