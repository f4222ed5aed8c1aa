package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pack is a package under test.
type pack struct {
	name, path, dir string
	fset            *token.FileSet
	files           []*source
	info            *types.Info
	importer        types.Importer
	twice           map[ast.Node]string // changes that another one is as good as
	dropped         int                 // mutants that do not compile
}

// source is a file of a package, and the places where it is changed.
type source struct {
	file    string
	text    []byte
	ast     *ast.File
	base    int // of positions in it
	parents map[ast.Node]ast.Node
	sites   []*site
}

// load reads a package and finds its mutants.
func load(path string) (*pack, error) {
	out, err := goTool(context.Background(), "list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .GoFiles \" \"}}", path)
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimSpace(string(out)), "\t")
	if len(words) != 3 {
		return nil, fmt.Errorf("%s is not one package with files", path)
	}
	p := &pack{path: words[0], dir: words[1], fset: token.NewFileSet()}
	texts := map[string][]byte{}
	for name := range strings.FieldsSeq(words[2]) {
		file := filepath.Join(p.dir, name)
		if texts[file], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	if p.importer, err = imports(p.fset, path); err != nil {
		return nil, err
	}
	return p, p.parse(texts)
}

// parse finds the mutants in files.
func (p *pack) parse(texts map[string][]byte) error {
	var all []*ast.File
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		f, err := parser.ParseFile(p.fset, name, texts[name], parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.name = f.Name.Name
		p.files = append(p.files, &source{file: name, text: texts[name], ast: f, base: p.fset.File(f.FileStart).Base()})
		all = append(all, f)
	}
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	if _, err := (&types.Config{Importer: p.importer}).Check(p.path, p.fset, all, p.info); err != nil {
		return err
	}
	p.twice = map[ast.Node]string{}
	for _, s := range p.files {
		p.find(s)
	}
	return nil
}

// settle drops the mutants that do not compile, which lines tell: mutants add none.
func (p *pack) settle() error {
	for range 20 {
		p.number()
		bad := map[string]map[int]bool{}
		fset := token.NewFileSet()
		var all []*ast.File
		for _, s := range p.files {
			f, err := parser.ParseFile(fset, s.file, s.changed(), parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			all = append(all, f)
		}
		f, err := parser.ParseFile(fset, "chosen.go", p.chooser(), parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		config := types.Config{Importer: p.importer, Error: func(err error) {
			var e types.Error
			if errors.As(err, &e) {
				at := fset.Position(e.Pos)
				if bad[at.Filename] == nil {
					bad[at.Filename] = map[int]bool{}
				}
				bad[at.Filename][at.Line] = true
			}
		}}
		if _, err := config.Check(p.path, fset, append(all, f), nil); err == nil {
			return nil
		}
		for _, s := range p.files {
			p.dropped += s.drop(p.fset, bad[s.file])
		}
	}
	return errors.New("the mutants do not compile")
}

// imports reads what the compiler knows about the dependencies of a package.
func imports(fset *token.FileSet, path string) (types.Importer, error) {
	out, err := goTool(context.Background(), "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", path, "os", "strconv", "strings", "syscall")
	if err != nil {
		return nil, err
	}
	export := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		export[name] = file
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if export[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(export[path])
	}), nil
}

func goTool(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, stderr.String())
	}
	return out, nil
}
