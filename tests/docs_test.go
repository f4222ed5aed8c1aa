package tests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages name tests in backquotes.
var pages = []string{"SECURITY.md", "docs/peers.md", "docs/performance.md", "docs/reliability.md", "docs/limits.md"}

var (
	namedTest   = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)`")
	definedTest = regexp.MustCompile(`^func ((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)\(`)
)

// TestPagesNameTests: the tests that pages name are there.
func TestPagesNameTests(t *testing.T) {
	defined := make(map[string]bool)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for line := range strings.Lines(string(b)) {
			if !strings.HasPrefix(line, "func ") {
				continue
			}
			if m := definedTest.FindStringSubmatch(line); m != nil {
				defined[m[1]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		b, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Error(err)
			continue
		}
		names := namedTest.FindAllSubmatch(b, -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, m := range names {
			if name := string(m[1]); !defined[name] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
}

// TestAttacksAreNumbered: each has a number of its own, one after the other, and the terms say how
// many there are.
func TestAttacksAreNumbered(t *testing.T) {
	attacks, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	terms, err := os.ReadFile("../docs/terms.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, letter := range []string{"A", "R", "P"} {
		rows := regexp.MustCompile(`(?m)^\| (`+letter+`\d+) \|`).FindAllSubmatch(attacks, -1)
		for i, m := range rows {
			if want := fmt.Sprint(letter, i+1); string(m[1]) != want {
				t.Errorf("SECURITY.md: attack %s stands where %s should", m[1], want)
			}
		}
		if want := fmt.Sprintf("| %s1 to %s%d |", letter, letter, len(rows)); len(rows) == 0 || !strings.Contains(string(terms), want) {
			t.Errorf("docs/terms.md does not say %q", want)
		}
	}
}

// TestAttacksOnRPCHaveTests: each row has a test that names it.
func TestAttacksOnRPCHaveTests(t *testing.T) {
	texts := readTexts(t)
	for _, m := range regexp.MustCompile(`(?m)^\| (P\d+) \|`).FindAllStringSubmatch(texts["SECURITY.md"], -1) {
		has := false
		for path, text := range texts {
			has = has || (strings.HasPrefix(path, "rpc") || strings.HasPrefix(path, "nfs3")) && strings.HasSuffix(path, "_test.go") && containsAny(text, "("+m[1]+",", "("+m[1]+")", "Attack "+m[1]+" ")
		}
		if !has {
			t.Errorf("no test names attack %s", m[1])
		}
	}
}

// TestHouseNamesAllRooms: the tables of packages, that of the README for who imports them and
// that of docs/design.md for what is behind, have every directory of Go files once, and
// nothing else.
func TestHouseNamesAllRooms(t *testing.T) {
	var house string
	named := make(map[string]bool)
	for page, title := range map[string]string{"README.md": "Packages", "docs/design.md": "The house"} {
		b, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(b), "\n## "+title+"\n")
		table, _, _ = strings.Cut(table, "\n## ")
		house += table
		for _, row := range strings.Split(table, "\n| `")[1:] {
			first, _, _ := strings.Cut(row, " | ")
			for _, room := range strings.Split(first, ", ") {
				room = strings.Trim(room, "`")
				if named[room] {
					t.Errorf("the tables of packages have %s twice", room)
				}
				named[room] = true
			}
		}
	}
	within := map[string]string{ // rooms that the row of another one names
		"transport/udp": "transport", "transport/ether": "transport", "transport/simnet": "transport", "transport/tap": "transport", "transport/lossy": "transport",
		"examples/dgrdma-filecopy": "examples", "examples/dgrdma-requests": "examples", "examples/dgrdma-pipeline": "examples",
		"examples/dgrdma-ring": "examples", "examples/dgrdma-web": "examples",
		"examples/dgrdma-kv": "examples", "examples/dgrdma-counter": "examples", "examples/dgrdma-log": "examples",
		"examples/dgrdma-files": "examples", "examples/dgrdma-notices": "examples", "examples/dgrdma-faulty": "examples", "examples/gonfs": "examples",
	}
	rooms := make(map[string]bool)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata") {
			return err
		}
		room := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), ".."+string(filepath.Separator)))
		if row := within[room]; row != "" {
			if !strings.Contains(house, "`"+room[strings.LastIndex(room, "/")+1:]+"`") && !strings.Contains(house, "`"+room+"`") {
				t.Errorf("the row of %s in the tables of packages does not name %s", row, room)
			}
			room = row
		}
		rooms[room] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for room := range rooms {
		if !named[room] {
			t.Errorf("no table of packages has %s", room)
		}
	}
	for room := range named {
		if !rooms[room] {
			t.Errorf("the tables of packages have %s, which is no directory of Go files", room)
		}
	}
}
