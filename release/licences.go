package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var isLicence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// licences returns those of the program and of all packages that it is linked with, by module
// and the directory within it: they ask to be where the program is.
func (w *workshop) licences(ctx context.Context, arch string) ([]file, error) {
	said, err := output(ctx, w.sources, w.forArch(arch), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}\t{{$.Dir}}{{end}}", "./cmd/"+program)
	if err != nil {
		return nil, err
	}
	root, err := output(ctx, w.sources, w.env, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	found := make(map[string]file)                                         // by path
	linked, licensed := map[string]bool{"go": true}, make(map[string]bool) // modules
	look := func(module, top, dir string) error {
		paths, err := filepath.Glob(filepath.Join(dir, "*"))
		for _, path := range paths {
			if found[path].name != "" || !isLicence.MatchString(filepath.Base(path)) || filepath.Ext(path) == ".go" {
				continue
			}
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				continue
			}
			f, err := read(path, module+strings.TrimPrefix(path, top), 0o644)
			if err != nil {
				return err
			}
			found[path] = f
			licensed[module] = true
		}
		return err
	}
	if err := look("go", root, root); err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(said, "\n") {
		module, rest, is := strings.Cut(line, "\t")
		if !is {
			continue // of the standard library
		}
		linked[module] = true
		top, dir, _ := strings.Cut(rest, "\t")
		for ; strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
			if err := look(module, top, dir); err != nil {
				return nil, err
			}
		}
	}
	for module := range linked {
		if !licensed[module] {
			return nil, fmt.Errorf("no licence was found of %s, which is linked with: what may be published?", module)
		}
	}
	all := slices.Collect(maps.Values(found))
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return all, nil
}
