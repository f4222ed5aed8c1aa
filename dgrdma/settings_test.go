package dgrdma

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/dgrdma/dgrdma/settings"
)

var writeDocs = flag.Bool("write", false, "write what documentation says of settings")

// document asserts that a file says what the table of settings does, between two lines,
// or writes it there.
func document(t *testing.T, path, after, before, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := bytes.Cut(text, []byte(after))
	got, _, ok2 := bytes.Cut(rest, []byte(before))
	if !ok || !ok2 {
		t.Fatalf("%s: no place for the table of settings", path)
	}
	if string(got) == want {
		return
	}
	if !*writeDocs {
		t.Errorf("%s does not say what the table of settings does: go test ./dgrdma -run Documented -write", path)
		return
	}
	text = bytes.Replace(text, []byte(after+string(got)+before), []byte(after+want+before), 1)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestOptionsAreDocumented checks that the documentation of Open lists the options as the table of
// settings has them.
func TestOptionsAreDocumented(t *testing.T) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range settings.All {
		if s.Option != "" {
			fmt.Fprintf(w, "//\v%s=%s\t%s\n", s.Option, s.Value, s.Help())
		}
	}
	w.Flush()
	lines := regexp.MustCompile(`(?m)^//\s+`).ReplaceAllString(b.String(), "//\t")
	document(t, "open.go", "gso=off:\n//\n", "func Open(", lines)
}

// TestSettingsAreDocumented checks that docs/settings.md lists the settings as their table has
// them.
func TestSettingsAreDocumented(t *testing.T) {
	var b strings.Builder
	code := func(format string, s ...any) string {
		if s[0] == "" {
			return ""
		}
		return "`" + fmt.Sprintf(format, s...) + "`"
	}
	for _, s := range settings.All {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code("%s=%s", s.Option, s.Value), code("%s", s.Field), code("--%s", s.Flag), s.Help())
	}
	document(t, "../docs/settings.md", "|---|---|---|---|\n", "\nGenerated", b.String())
}

// plain reports whether a field of the configuration can be said in a string.
func plain(t reflect.Type) bool {
	return t.Kind() == reflect.Bool || t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64
}

// TestConfigAgreesWithSettings checks that each plain field has a row, each row's field is there,
// and its comment has the bounds and the default of the row.
func TestConfigAgreesWithSettings(t *testing.T) {
	rows := make(map[string]*settings.Setting)
	for _, s := range settings.All {
		if s.Field != "" {
			rows[s.Field] = s
		}
	}
	comments := configComments(t)
	config := reflect.TypeFor[Config]()
	for i := range config.NumField() {
		f := config.Field(i)
		s := rows[f.Name]
		if s == nil {
			if plain(f.Type) {
				t.Errorf("Config.%s has no row in the table of settings", f.Name)
			}
			continue
		}
		delete(rows, f.Name)
		if s.Kind == settings.Time != (f.Type == reflect.TypeFor[time.Duration]()) {
			t.Errorf("Config.%s is %v", f.Name, f.Type)
		}
		if s.Kind == settings.Choice {
			continue
		}
		says := comments[f.Name]
		if s.Kind == settings.Number && !strings.Contains(says, s.Range()) {
			t.Errorf("Config.%s is not said to be %s: %s", f.Name, s.Range(), says)
		}
		zero := "0 means "
		if s.Kind == settings.Path {
			zero = "nil means "
		}
		if s != settings.ID && (s.Default != 0 || s.Without != "") && !strings.Contains(says, zero+s.Otherwise()) {
			t.Errorf("Config.%s is not said to be %s by default: %s", f.Name, s.Otherwise(), says)
		}
	}
	for name := range rows {
		t.Errorf("Config has no %s, as a setting says", name)
	}
}

func configComments(t *testing.T) map[string]string {
	f, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := make(map[string]string)
	fields := f.Scope.Lookup("Config").Decl.(*ast.TypeSpec).Type.(*ast.StructType).Fields.List
	for _, field := range fields {
		for _, name := range field.Names {
			comments[name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
		}
	}
	return comments
}

// TestAdvertisedOptionsAreAccepted checks that options that documentation shows, in an endpoint
// string or as code, are accepted.
func TestAdvertisedOptionsAreAccepted(t *testing.T) {
	inString := regexp.MustCompile("(?:udp|ether)[-:;/.\\w]*\\?([a-z]+=[^\\s\"'`)]*)")
	alone := regexp.MustCompile("`([a-z]+=[a-z0-9]+)`")
	var pages []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../*/*.go", "../*/*/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	shown := 0
	for _, page := range pages {
		if strings.HasSuffix(page, "_test.go") && !strings.HasPrefix(filepath.Base(page), "example") {
			continue
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, re := range []*regexp.Regexp{inString, alone} {
			if re == alone && !strings.HasSuffix(page, ".md") {
				continue
			}
			for _, m := range re.FindAllSubmatch(text, -1) {
				for pair := range strings.SplitSeq(strings.TrimRight(string(m[1]), ".,:"), "&") {
					key, value, _ := strings.Cut(pair, "=")
					shown++
					if _, err := CheckOption(key, value); err != nil {
						t.Errorf("%s shows %s: %v", page, m[0], err)
					}
				}
			}
		}
	}
	if shown < 15 {
		t.Errorf("%d options are shown only: the search went astray", shown)
	}
}
