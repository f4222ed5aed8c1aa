// Package pages reads the pages of the project as a newcomer does: it runs every command
// that they show, as it stands there, compiles and runs every program, and compares what is
// printed with what the page says.
package pages

import (
	"errors"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/netns"
)

func TestMain(m *testing.M) {
	if signal.Ignored(os.Interrupt) {
		// As shells start what runs in the background. What a test starts would inherit
		// that, and outlive ^C; what is received it does not inherit.
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	fixture.EndHangs()
	code := m.Run()
	if bin != "" {
		os.RemoveAll(bin)
	}
	os.Exit(code)
}

var (
	clone string // the directory of the sources
	bin   string // where go install puts programs
)

// readers returns the environment in which pages are read, but for HOME: of this process's,
// with dgrdmacat in PATH as a page has the reader install it.
var readers = sync.OnceValues(func() ([]string, error) {
	var err error
	if clone, err = filepath.Abs(filepath.Join("..", "..")); err != nil {
		return nil, err
	}
	if bin, err = os.MkdirTemp("", "dgrdma-pages"); err != nil {
		return nil, err
	}
	env := os.Environ()
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // which depend on HOME
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	env = append(env, "GOBIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8")
	env = append(env, "GOPROXY=off", "GOSUMDB=off") // see fetch
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "BASH_ENV", "ENV"} {
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	}
	install := exec.Command("go", "install", "./cmd/dgrdmacat")
	install.Dir, install.Env = clone, env
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return env, nil
})

func environment(t testing.TB) []string {
	t.Helper()
	env, err := readers()
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// all returns the pages of the project.
func all(t testing.TB) (pages []*page) {
	t.Helper()
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, parse(strings.TrimPrefix(filepath.ToSlash(name), "../../"), string(text)))
		}
	}
	if len(pages) < 10 {
		t.Fatalf("%d pages only: the search went astray", len(pages))
	}
	return pages
}

// TestCommandsOfPages: the commands and programs of each page do what it says.
func TestCommandsOfPages(t *testing.T) {
	environment(t)
	pages := all(t)
	fetch(t, pages)
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			besideOthers(t)
			left, err := p.follow(t)
			if err != nil {
				t.Error(err)
			}
			for line, why := range left {
				t.Run(fmt.Sprintf("line %d", line), func(t *testing.T) {
					if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
						t.Fatalf("not on CI: %v", why)
					}
					t.Skip(why)
				})
			}
		})
	}
}

// besideOthers lets a test run beside others where the ports that pages say are its own.
func besideOthers(t *testing.T) {
	if netns.Missing() == "" {
		t.Parallel()
	}
}

// follow types what a page shows. Left are the blocks that need what is missing here, by
// their lines.
func (p *page) follow(t testing.TB) (left map[int]error, err error) {
	if len(p.faults) > 0 {
		return nil, errors.New(strings.Join(p.faults, "\n"))
	}
	at := func(b block, err error) error { return fmt.Errorf("%s:%d: %w", p.name, b.line, err) }
	s := newSession(t, environment(t))
	left = make(map[int]error)
	programs := make(map[string]block) // by directory, those that were not run so far
	for i, b := range p.blocks {
		switch b.kind {
		case "go":
			dir, err := s.save(b)
			if err != nil {
				return left, at(b, err)
			}
			programs[dir] = b
		case "sh":
			b.lines = hurry(p.name, b.lines)
			began := time.Now()
			printed, err := s.run(b)
			t.Logf("%s:%d: %.1f s", p.name, b.line, time.Since(began).Seconds())
			if missing := errMissing(""); errors.As(err, &missing) {
				left[b.line] = err
				continue
			}
			if err != nil {
				return left, at(b, err)
			}
			maps.DeleteFunc(programs, func(dir string, _ block) bool {
				return slices.Contains(b.lines, "go run ./"+filepath.Base(dir))
			})
			if i+1 == len(p.blocks) || p.blocks[i+1].kind != "output" {
				continue
			}
			shown := p.blocks[i+1]
			parts := shown.parts()
			if len(parts) > len(printed) {
				return left, at(shown, errors.New("shows more terminals than there are commands"))
			}
			for _, in := range parts {
				which := slices.IndexFunc(b.parts(), func(c part) bool { return c.terminal == in.terminal && c.machine == in.machine })
				if which < 0 {
					return left, at(shown, fmt.Errorf("shows %v, where nothing was typed", in.place))
				}
				if err := differ(printed[which], in.lines); err != nil {
					return left, at(shown, fmt.Errorf("%w\nall of it: %s", err, printed[which]))
				}
			}
		}
	}
	for dir, b := range programs {
		return left, at(b, fmt.Errorf("no block runs this program: go run ./%s", filepath.Base(dir)))
	}
	return left, nil
}

// save writes a program where its first line says, and returns the directory.
func (s *session) save(b block) (dir string, err error) {
	if len(b.lines) == 0 || !strings.HasPrefix(b.lines[0], "// ") || !strings.HasSuffix(b.lines[0], "/main.go") {
		return "", errors.New("the first line of a program names its file, as in // try/hello/main.go")
	}
	name := strings.TrimPrefix(b.lines[0], "// ")
	text := strings.Join(b.lines, "\n") + "\n"
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return "", err
	}
	if string(formatted) != text {
		return "", errors.New("gofmt would change this program")
	}
	name = filepath.Join(s.home, name)
	dir = filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.WriteFile(name, []byte(text), 0o644)
}
