package main

import (
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const plain = `package plain

import "fmt"

// Level is a type of its own.
type Level int

const most = 8

type store struct {
	n    int
	full bool
	kept [most]int
}

// Add adds.
func (s *store) Add(v int, always bool) (ok bool) {
	if s.full && !always { // a comment
		return false
	}
	for i := 0; i < len(s.kept); i++ {
		if s.kept[i] != 0 {
			continue
		}
		s.kept[i] = v
		s.n++
		break
	}
	s.full = s.n == most
	defer fmt.Print()
	return Level(s.n) > 0
}

func (s *store) String() string { return fmt.Sprint(s.n + 1) }

func sum(a, b uint8, words ...string) (string, uint8) {
	switch {
	case a > b:
		a -= b
	}
	return words[0] + words[1], a + b - 1
}
`

// parsed returns a package with one file.
func parsed(t *testing.T, text string) *pack {
	t.Helper()
	p := &pack{path: "example/plain", dir: t.TempDir(), fset: token.NewFileSet()}
	var err error
	if p.importer, err = imports(p.fset, "fmt"); err != nil {
		t.Fatal(err)
	}
	if err := p.parse(map[string][]byte{filepath.Join(p.dir, "plain.go"): []byte(text)}); err != nil {
		t.Fatal(err)
	}
	if err := p.settle(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatIsChanged(t *testing.T) {
	p := parsed(t, plain)
	var got []string
	for _, m := range p.mutants() {
		got = append(got, strings.TrimPrefix(m.key(), "plain "))
	}
	for _, want := range []string{
		"(*store).Add: s.full && !always => false", "(*store).Add: s.full && !always => true", "(*store).Add: s.full && !always => s.full",
		"(*store).Add: s.full && !always => !always", "(*store).Add: false => true in return false",
		"(*store).Add: i < len(s.kept) => false", "(*store).Add: i < len(s.kept) => i <= len(s.kept)", "(*store).Add: s.kept[i] != 0 => true",
		"(*store).Add: break => nothing", "(*store).Add: s.kept[i] = v => nothing", "(*store).Add: s.n++ => nothing",
		"(*store).Add: s.n++ => s.n--", "(*store).Add: s.n == most => s.n != most", "(*store).Add: most => 16 in s.n == most", "(*store).Add: most => 4 in s.n == most",
		"(*store).Add: s.full = s.n == most => nothing", "(*store).Add: defer fmt.Print() => nothing", "(*store).Add: Level(s.n) > 0 => Level(s.n) >= 0",
		"(*store).Add: 0 => 1 in s.kept[i] != 0", "sum: a > b => false", "sum: a > b => true", "sum: a > b => a >= b", "sum: a -= b => nothing", "sum: a -= b => a += b",
		"sum: a + b - 1 => a + b + 1", "sum: a + b => a - b", "sum: 1 => 2 in a + b - 1", "sum: 1 => 0 in a + b - 1",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("not changed: %s", want)
		}
	}
	for _, m := range got {
		for _, never := range []string{"String", "words[0] + words[1] =>", "i++ =>", "return Level", "[most]", "0 => -1"} {
			if strings.Contains(m, never) {
				t.Errorf("changed: %s", m)
			}
		}
	}
	if p.dropped != 0 {
		t.Errorf("%d mutants do not compile", p.dropped)
	}
}

// A change that another one is as good as is left out: one that does nothing, one
// of what says nothing, a bound moved to where another operator leaves it, and what
// a condition holds alone, which goes with it if to ask has no effect.
func TestWhatSaysTheSameIsLeftOut(t *testing.T) {
	p := parsed(t, `package plain

const (
	zero = iota
	one
)

func check() bool { return false }

func f(n int, b []byte) (int, bool) {
	if len(b) < 5 {
		n++
	}
	if check() {
		n--
	}
	if 7 < n || n >= 9 {
		n += zero
		n += one
	}
	return 0, false
}
`)
	var got []string
	for _, m := range p.mutants() {
		got = append(got, strings.TrimPrefix(m.key(), "plain f: "))
	}
	for mutant, want := range map[string]bool{
		"n++ => nothing": false, "n++ => n--": true, "n-- => nothing": true,
		"len(b) < 5 => len(b) <= 5": true, "5 => 6 in len(b) < 5": false, "5 => 4 in len(b) < 5": true,
		"7 < n => 7 <= n": true, "7 => 6 in 7 < n": false, "7 => 8 in 7 < n": true,
		"n >= 9 => n > 9": true, "9 => 10 in n >= 9": false, "9 => 8 in n >= 9": true,
		"zero => 0 in n += zero": false, "one => 2 in n += one": true, "one => 0 in n += one": true, "0 => 1 in return 0, false": false, "false => true in return 0, false": true,
	} {
		if slices.Contains(got, mutant) != want {
			t.Errorf("changed %v: %s", !want, mutant)
		}
	}
}

// Mutants that do not compile are left out, and take no others with them but those
// that begin in the same line.
func TestWhatDoesNotCompileIsLeftOut(t *testing.T) {
	p := parsed(t, `package plain

func name() (s string) {
	type secret string
	const it secret = "x"
	n := 1
	if it == "y" && len(s) > n {
		n = 2
	}
	return s[:n]
}
`)
	before := len(p.mutants())
	s := p.files[0]
	m := &mutant{pack: "plain", at: p.fset.Position(token.Pos(s.base)), from: "n = 2", to: "no such thing"}
	at := strings.Index(string(s.text), "n = 2")
	s.add(at, at+len("n = 2"), "", m)
	if err := p.settle(); err == nil {
		t.Fatal("what cannot be parsed was accepted")
	}
	m.to = "nothing()"
	if err := p.settle(); err != nil {
		t.Fatal(err)
	}
	if p.dropped == 0 || len(p.mutants()) >= before || len(p.mutants()) == 0 || slices.Contains(p.mutants(), m) {
		t.Errorf("%d of %d mutants are left", len(p.mutants()), before)
	}
}

// Without a choice a changed file does what it did, on the same lines; with one,
// what the mutant says.
func TestChangedFilesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	p := parsed(t, `package main

import "fmt"

func main() {
	n := 3
	if n > 2 &&
		n < 9 { // three of them
		n++
	}
	fmt.Print(n - 1)
	panic("line 11")
}
`)
	s := p.files[0]
	if lines := strings.Count(string(s.changed()), "\n"); lines != strings.Count(string(s.text), "\n") {
		t.Errorf("%d lines", lines)
	}
	for name, text := range map[string]string{s.file: string(s.changed()), filepath.Join(p.dir, "chosen.go"): p.chooser()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(p.dir, "main")
	if out, err := exec.Command("go", "build", "-o", binary, s.file, filepath.Join(p.dir, "chosen.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(env string) string {
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), env)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := run("NOTHING=1"); !strings.HasPrefix(out, "3panic: line 11") || !strings.Contains(out, "plain.go:12") {
		t.Errorf("without a mutant: %s", out)
	}
	for from, want := range map[string]string{"n++ => n--": "1", "n - 1 => n + 1": "5", "n < 9 => n <= 9": "3", "n > 2 && n < 9 => false": "2"} {
		i := slices.IndexFunc(p.mutants(), func(m *mutant) bool { return m.key() == "main main: "+from })
		if i < 0 {
			t.Errorf("no mutant %s", from)
			continue
		}
		if out, _, _ := strings.Cut(run(p.mutants()[i].choice()), "panic"); out != want {
			t.Errorf("%s prints %s, want %s", from, out, want)
		}
	}
}

func TestSurvivorsAreAllReasoned(t *testing.T) {
	b, err := os.ReadFile("survivors.txt")
	if err != nil {
		t.Fatal(err)
	}
	if known, err := parseAccepted(string(b)); err != nil || len(known) == 0 {
		t.Errorf("%d survivors, %v", len(known), err)
	}
}

func TestAccepted(t *testing.T) {
	known, err := parseAccepted("# to the reader\n\nack f: a => b\n\tno frame\n\thas it\nack g: i++ => nothing\n  slower only\n")
	if err != nil || len(known) != 2 || known["ack f: a => b"] != "no frame has it" || known["ack g: i++ => nothing"] != "slower only" {
		t.Errorf("%v, %v", known, err)
	}
	for text, want := range map[string]string{
		"ack f: a => b\n":                      "no reason is given for ack f: a => b",
		"ack f: a => b\nack g: c => d\n why\n": "line 2: no reason is given for ack f: a => b",
		" why\n":                               "line 1: a reason for nothing",
		"ack f\n why\n":                        "line 1 is no mutant: need PACKAGE FUNCTION: SOURCE => CHANGE",
		"ack f: a => b\n why\nack f: a => b\n again\n": "line 3: ack f: a => b is there twice",
	} {
		if _, err := parseAccepted(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A listing tells what is accepted of a package that is no mutant of it any more.
func TestWhatIsAbsent(t *testing.T) {
	m := &mutant{pack: "ack", function: "f", from: "a", to: "b"}
	known := map[string]string{m.key(): "why", "ack gone: a => b": "why", "acked f: a => b": "why", "link f: a => b": "why"}
	if got := (&pack{name: "ack"}).absent(known, []*mutant{m}); !slices.Equal(got, []string{"ack gone: a => b"}) {
		t.Errorf("%q", got)
	}
}

// What the file says of other packages stays; what it says of this one must be so.
func TestStaleAcceptanceIsAnOffence(t *testing.T) {
	m := &mutant{pack: "ack", function: "f", from: "a", to: "b"}
	known := map[string]string{m.key(): "why", "link f: a => b": "why"}
	for _, tt := range []struct {
		r    result
		all  bool
		want bool
	}{
		{result{survived: []*mutant{m}}, true, true},
		{result{survived: []*mutant{m, {pack: "ack", function: "g", from: "a", to: "b"}}}, true, false},
		{result{killed: 1}, true, false},
		{result{killed: 1}, false, true},
		{result{killed: 1, untried: 1}, true, true},
	} {
		if good := tt.r.tell(io.Discard, &pack{name: "ack"}, known, tt.all); good != tt.want {
			t.Errorf("%+v, all %v: %v", tt.r, tt.all, good)
		}
	}
}
