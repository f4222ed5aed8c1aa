package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const program = "dgrdmacat"

// commit is what is released.
type commit struct {
	clone string
	hash  string
	at    time.Time
	by    string // NAME <ADDRESS>
}

// commitOf returns HEAD of a clone, if nothing there is left to commit.
func commitOf(ctx context.Context, clone string) (*commit, error) {
	clone, err := filepath.Abs(clone)
	if err != nil {
		return nil, err
	}
	left, err := output(ctx, clone, nil, "git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if left != "" {
		return nil, fmt.Errorf("a release is of a commit, and in %s there is more: commit this, or put it away:\n%s", clone, left)
	}
	said, err := output(ctx, clone, nil, "git", "log", "-1", "--format=%H%n%ct%n%cn <%ce>")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(said, "\n")
	if len(lines) != 3 {
		return nil, fmt.Errorf("git log says %q of HEAD", said)
	}
	seconds, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return nil, err
	}
	return &commit{clone, lines[0], time.Unix(seconds, 0).UTC(), lines[2]}, nil
}

// workshop is where a commit lies and is built.
type workshop struct {
	*commit
	dir     string // for programs
	sources string
	env     []string
}

// theirs are the variables of Go that stay as the user has them: whence modules come, and
// where they are kept. All others might be seen in what is built.
var theirs = []string{"GOPATH", "GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOTOOLCHAIN"}

// checkOut brings the commit below a directory that it makes. What is compiled is kept in
// cache, or where Go keeps it anyway.
func (c *commit) checkOut(ctx context.Context, dir, cache string) (*workshop, error) {
	w := &workshop{commit: c, dir: dir, sources: filepath.Join(dir, "sources")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := output(ctx, c.clone, nil, "git", "clone", "-q", "--no-checkout", c.clone, w.sources); err != nil {
		return nil, err
	}
	if _, err := output(ctx, w.sources, nil, "git", "-c", "core.autocrlf=false", "checkout", "-q", "--detach", c.hash); err != nil {
		return nil, err
	}
	w.env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GO") || strings.HasPrefix(v, "CGO_") })
	for _, name := range theirs {
		value, err := output(ctx, c.clone, nil, "go", "env", name)
		if err != nil {
			return nil, err
		}
		if value != "" {
			w.env = append(w.env, name+"="+value)
		}
	}
	w.env = append(w.env, "GOENV=off", "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOAMD64=v1", "GOARM64=v8.0", "LC_ALL=C")
	if cache != "" {
		w.env = append(w.env, "GOCACHE="+cache)
	}
	return w, nil
}

// file is one of an archive.
type file struct {
	name string
	mode int64
	data []byte
}

// product is what of a commit is for one architecture.
type product struct {
	*commit
	version     string // without v
	arch        string
	binary      file
	manual      []file
	completions map[string]file // by shell
	pages       []file
	licences    []file // of the program, and of what it is linked with
}

// build compiles the program, and has it write what belongs to it.
func (w *workshop) build(ctx context.Context, arch string) (*product, error) {
	built, version, err := w.compile(ctx, arch)
	if err != nil {
		return nil, err
	}
	p := &product{commit: w.commit, version: version, arch: arch}
	if p.binary, err = read(built, program, 0o755); err != nil {
		return nil, err
	}
	if p.licences, err = w.licences(ctx, arch); err != nil {
		return nil, err
	}
	if p.pages, err = w.pages(); err != nil {
		return nil, err
	}
	here := built
	if arch != runtime.GOARCH {
		if here, _, err = w.compile(ctx, runtime.GOARCH); err != nil {
			return nil, err
		}
	}
	manual := filepath.Join(w.dir, "manual")
	if _, err := output(ctx, w.dir, nil, here, "man", "--dir", manual); err != nil {
		return nil, err
	}
	if p.manual, err = readAll(manual, "*.1"); err != nil {
		return nil, err
	}
	p.completions = make(map[string]file)
	for shell, name := range map[string]string{"bash": program, "zsh": "_" + program, "fish": program + ".fish"} {
		script, err := output(ctx, w.dir, nil, here, "completion", shell)
		if err != nil {
			return nil, err
		}
		p.completions[shell] = file{name, 0o644, []byte(script + "\n")}
	}
	return p, nil
}

// compile returns the path of the program, and its version, which Go takes from the tags and
// the commit.
func (w *workshop) compile(ctx context.Context, arch string) (path, version string, err error) {
	path = filepath.Join(w.dir, program+"-"+arch)
	if _, err := output(ctx, w.sources, w.forArch(arch), "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", path, "./cmd/"+program); err != nil {
		return "", "", err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	version, is := strings.CutPrefix(info.Main.Version, "v")
	if !is || strings.Contains(version, "+dirty") {
		return "", "", fmt.Errorf("what was built calls itself %q: there is no version in that", info.Main.Version)
	}
	return path, version, nil
}

func (w *workshop) forArch(arch string) []string { return append(slices.Clone(w.env), "GOARCH="+arch) }

// pages are what there is to read.
func (w *workshop) pages() (all []file, err error) {
	all, err = readAll(w.sources, "*.md")
	if err != nil {
		return nil, err
	}
	docs, err := readAll(filepath.Join(w.sources, "docs"), "*.md")
	for _, f := range docs {
		f.name = "docs/" + f.name
		all = append(all, f)
	}
	return all, err
}

// readAll reads the files of a directory, of which there has to be one.
func readAll(dir, pattern string) (all []file, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(err, fmt.Errorf("%s has no %s", dir, pattern))
	}
	for _, path := range paths {
		f, err := read(path, filepath.Base(path), 0o644)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func read(path, name string, mode int64) (file, error) {
	data, err := os.ReadFile(path)
	return file{name, mode, data}, err
}

// output runs a program and returns what it prints.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return "", fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
