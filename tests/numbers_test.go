package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tables have a row for each number that comments, tests and pages cite.
var tables = []struct {
	page   string
	number *regexp.Regexp
}{
	{"docs/requirements.md", regexp.MustCompile(`\bDGRDMA-\d{3}\b`)},
	{"docs/quirks.md", regexp.MustCompile(`\b(?:F\d{1,2}|D[12]-\d{1,2}|L\d|U\d)\b`)},
}

const notCited = "(not cited)"

// quirkTest is a test that cites quirks by its name: TestQuirkF8F9..., TestQuirkD1R2R8...
var (
	quirkTest = regexp.MustCompile(`TestQuirk((?:F\d+|L\d+|D[12](?:R\d+)+)+)`)
	quirkName = regexp.MustCompile(`(F\d+|L\d+)|(D[12])|R(\d+)`)
	firstCell = regexp.MustCompile(`(?m)^\| ((?:DGRDMA|[A-Z])[-0-9]+) \|.*$`)
)

// TestCitedNumbersAreInTables: what is cited has a row, and a row is cited or says that it is
// not.
func TestCitedNumbersAreInTables(t *testing.T) {
	texts := make(map[string]string) // by path
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".." {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md") {
			return err
		}
		b, err := os.ReadFile(path)
		texts[filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		cited := make(map[string]string) // where
		for path, text := range texts {
			if slices.Contains([]string{"docs/requirements.md", "docs/quirks.md", "tests/numbers_test.go"}, path) {
				continue
			}
			for _, n := range append(table.number.FindAllString(text, -1), quirksInNames(text)...) {
				if table.number.MatchString(n) {
					cited[n] = path
				}
			}
		}
		rows := firstCell.FindAllStringSubmatch(texts[table.page], -1)
		has := make(map[string]bool)
		for _, row := range rows {
			number, says := row[1], strings.Contains(row[0], notCited)
			if has[number] {
				t.Errorf("%s has %s twice", table.page, number)
			}
			has[number] = true
			if where, is := cited[number]; is == says {
				t.Errorf("%s: %s says that it is not cited: %v; cited: %v (%s)", table.page, number, says, is, where)
			}
		}
		if len(rows) < 40 {
			t.Errorf("%s has %d rows: they are read wrongly", table.page, len(rows))
		}
		for number, where := range cited {
			if !has[number] {
				t.Errorf("%s cites %s, which %s does not have", where, number, table.page)
			}
		}
	}
}

func quirksInNames(text string) (all []string) {
	for _, name := range quirkTest.FindAllStringSubmatch(text, -1) {
		driver := ""
		for _, part := range quirkName.FindAllStringSubmatch(name[1], -1) {
			switch {
			case part[1] != "":
				all = append(all, part[1])
			case part[2] != "":
				driver = part[2]
			default:
				all = append(all, driver+"-"+part[3])
			}
		}
	}
	return all
}
