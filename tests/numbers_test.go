package tests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rdmaTable has a row for each requirement of RDMA, with its level: the third cell. Those that must be fulfilled have a
// test that names them, or a reason. The fourth cell has the files of package verbs that have a part in the rule.
const rdmaTable = "docs/rdma-requirements.md"

var (
	rdmaRow    = regexp.MustCompile(`(?m)^\| ((?:RDMAPX?|COMMIT|DDP|MPA)-\d{3}) \| ([^|]+) \| ([MSO-]) \|(?: ([^|]+))? \| ([^|]+) \|$`)
	rdmaReason = regexp.MustCompile(`\(no test: [^)]{10,}\)$`)
	// Numbers are cited one by one, or as RDMAP-037 to 041, 043 and 067, also over the end of a line of comment.
	rdmaCited = regexp.MustCompile(`\b(RDMAPX?|COMMIT|DDP|MPA)-\d{3}\b((?:,? (?:and |to |// )*\d{3}\b|,\s+// (?:and |to )?\d{3}\b)*)`)
	rdmaPart  = regexp.MustCompile(`(to )?(\d{3})\b`)
)

// TestRequirementsOfRDMA: every number that is cited has a row, every row of level M is named by a test or
// says why there is none, and no other row says so. A row of which package verbs carries out a part is named by a test there as well: a
// test of the machine below does not see what is lost on the way to it.
func TestRequirementsOfRDMA(t *testing.T) {
	texts := readTexts(t)
	levels := make(map[string]string)
	reasons := make(map[string]bool)
	for _, row := range rdmaRow.FindAllStringSubmatch(texts[rdmaTable], -1) {
		number, level, asked := row[1], row[3], row[5]
		if levels[number] != "" {
			t.Errorf("%s has %s twice", rdmaTable, number)
		}
		levels[number] = level
		reasons[number] = rdmaReason.MatchString(asked)
		if strings.Contains(asked, "(no test") && (!reasons[number] || level != "M") {
			t.Errorf("%s: %s has no good reason for being without a test", rdmaTable, number)
		}
	}
	for group, want := range map[string]int{"RDMAP": 111, "RDMAPX": 48, "COMMIT": 51, "DDP": 10, "MPA": 18} {
		n := 0
		for number := range levels {
			if name, _, _ := strings.Cut(number, "-"); name == group {
				n++
			}
		}
		if n != want || levels[fmt.Sprintf("%s-%03d", group, want)] == "" {
			t.Errorf("%s has %d rows of %s, want %d", rdmaTable, n, group, want)
		}
	}
	tested := make(map[string]string)
	for path, text := range texts {
		if path == rdmaTable || path == "tests/numbers_test.go" {
			continue
		}
		for _, number := range citations(text) {
			if levels[number] == "" {
				t.Errorf("%s cites %s, which %s does not have", path, number, rdmaTable)
			}
			if strings.HasSuffix(path, "_test.go") {
				tested[number] = path
			}
		}
	}
	for number, level := range levels {
		switch where := tested[number]; {
		case where != "" && reasons[number]:
			t.Errorf("%s says why there is no test for %s, and %s names it", rdmaTable, number, where)
		case where == "" && !reasons[number] && level == "M":
			t.Errorf("no test names %s, and %s does not say why", number, rdmaTable)
		}
	}
	rows := partsInVerbs(texts[rdmaTable])
	if len(rows) < 50 {
		t.Errorf("package verbs has a part in %d requirements: %s is read wrongly", len(rows), rdmaTable)
	}
	for _, wrong := range untestedInVerbs(rows, texts) {
		t.Error(wrong)
	}
}

// partsInVerbs are the files of package verbs that have a part in a requirement, by its number.
func partsInVerbs(table string) map[string][]string {
	parts := make(map[string][]string)
	for _, row := range rdmaRow.FindAllStringSubmatch(table, -1) {
		if row[4] != "" {
			parts[row[1]] = strings.Split(row[4], ", ")
		}
	}
	return parts
}

// untestedInVerbs says which of these requirements no test of package verbs names, which files there are not, and
// which cite a requirement of which they are said to have no part.
func untestedInVerbs(parts map[string][]string, texts map[string]string) (wrong []string) {
	tested := make(map[string]bool)
	for file, text := range texts {
		name, is := strings.CutPrefix(file, "verbs/")
		if !is || strings.Contains(name, "/") || !strings.HasSuffix(name, ".go") {
			continue
		}
		for _, number := range citations(text) {
			if strings.HasSuffix(name, "_test.go") {
				tested[number] = true
			} else if !slices.Contains(parts[number], name) {
				wrong = append(wrong, fmt.Sprintf("%s cites %s, in which %s gives it no part", file, number, rdmaTable))
			}
		}
	}
	for number, files := range parts {
		if !tested[number] {
			wrong = append(wrong, fmt.Sprintf("verbs/%s has a part in %s, and no test of package verbs names it", files[0], number))
		}
		for _, name := range files {
			if texts["verbs/"+name] == "" || strings.HasSuffix(name, "_test.go") {
				wrong = append(wrong, fmt.Sprintf("%s: %s has a part in verbs/%s, which there is not", rdmaTable, number, name))
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// TestPartsInVerbsAreTested: a test of another package does not stand for one of verbs.
func TestPartsInVerbsAreTested(t *testing.T) {
	table := "| RDMAP-001 | 1 | M | access.go, turns.go | one |\n| RDMAP-002 | 1 | M | | two |\n| MPA-003 | RFC 5044 | O | host.go | three |"
	parts := partsInVerbs(table)
	if len(parts) != 2 || !slices.Equal(parts["RDMAP-001"], []string{"access.go", "turns.go"}) || !slices.Equal(parts["MPA-003"], []string{"host.go"}) {
		t.Fatalf("read as %v", parts)
	}
	texts := map[string]string{"verbs/access.go": "x", "verbs/turns.go": "// RDMAP-001", "verbs/host.go": "x", "rdmap/stream_test.go": "// RDMAP-001, MPA-003", "verbs/rping/a_test.go": "// MPA-003"}
	for _, c := range []struct {
		path, text string
		want       int // what is wrong then
	}{
		{"verbs/access.go", "x", 2},                 // no test of verbs names either
		{"verbs/access_test.go", "// RDMAP-001", 1}, // of MPA-003
		{"verbs/host_test.go", "// MPA-003", 0},
		{"verbs/host.go", "// RDMAP-001", 1}, // which the table does not say
		{"verbs/host.go", "// RDMAP-002", 1}, // nor that
		{"verbs/host.go", "", 1},             // there is no such file
	} {
		texts[c.path] = c.text
		if got := untestedInVerbs(parts, texts); len(got) != c.want {
			t.Errorf("with %q in %s: %q, want %d", c.text, c.path, got, c.want)
		}
	}
}

// citations are the requirements of RDMA that a text cites.
func citations(text string) []string {
	if !containsAny(text, "RDMAP-", "RDMAPX-", "COMMIT-", "DDP-", "MPA-") {
		return nil
	}
	return citedBy(rdmaCited, text)
}

// containsAny reports whether one of the words is in a text. That is found out a hundred times as fast as what an expression finds.
func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// citedBy are the numbers that a text cites, one by one or several of a group, as the expression finds them.
func citedBy(cited *regexp.Regexp, text string) (all []string) {
	for _, m := range cited.FindAllStringSubmatch(text, -1) {
		first, _ := strconv.Atoi(m[0][len(m[1])+1:][:3])
		all = append(all, fmt.Sprintf("%s-%03d", m[1], first))
		for _, part := range rdmaPart.FindAllStringSubmatch(m[2], -1) {
			n, _ := strconv.Atoi(part[2])
			if part[1] == "" {
				first = n
			}
			for ; first <= n; first++ {
				all = append(all, fmt.Sprintf("%s-%03d", m[1], first))
			}
			first = n
		}
	}
	return all
}

func TestCitationsAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"(RDMAP-001)": "[RDMAP-001]", "RDMAP-001, 040, 046: nothing": "[RDMAP-001 RDMAP-040 RDMAP-046]",
		"RDMAP-032, 034, 046 to 048, 065: W":     "[RDMAP-032 RDMAP-034 RDMAP-046 RDMAP-046 RDMAP-047 RDMAP-048 RDMAP-065]",
		"RDMAPX-012, 013; COMMIT-031 and 032: a": "[RDMAPX-012 RDMAPX-013 COMMIT-031 COMMIT-032]",
		"RDMAP-050,\n\t// 051: c":                "[RDMAP-050 RDMAP-051]", "MPA-004, MPA-013": "[MPA-004 MPA-013]",
		"DDP-003: 100 bytes": "[DDP-003]", "RDMAP-0011": "[]",
	} {
		if got := fmt.Sprint(citations(text)); got != want {
			t.Errorf("%q cites %s, want %s", text, got, want)
		}
	}
}

// tables have a row for each number that comments, tests and pages cite.
var tables = []struct {
	page   string
	first  string         // with one of these characters a number begins
	number *regexp.Regexp // at the beginning of a text
}{
	{"docs/requirements.md", "D", regexp.MustCompile(`^DGRDMA-\d{3}\b`)},
	{"docs/quirks.md", "FDLUS", regexp.MustCompile(`^(?:F\d{1,2}|D[12]-\d{1,2}|L\d|U\d|S\d{1,2})\b`)},
}

// mostNumber is more than the length of the longest number: what is behind one decides whether it ends there.
const mostNumber = 12

// numbersIn returns the numbers of a table that are in a text. The expression looks only at what may be one: it is a hundred times as slow.
func numbersIn(text, first string, number *regexp.Regexp) (all []string) {
	for i := 0; i+1 < len(text); i++ {
		next := text[i+1]
		if digit := next >= '0' && next <= '9'; !digit && next != 'G' || strings.IndexByte(first, text[i]) < 0 || i > 0 && isWord(text[i-1]) {
			continue
		}
		if n := number.FindString(text[i:min(i+mostNumber, len(text))]); n != "" {
			all = append(all, n)
		}
	}
	return all
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
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
	texts := readTexts(t)
	for _, table := range tables {
		cited := make(map[string]string) // where
		for path, text := range texts {
			if slices.Contains([]string{"docs/requirements.md", "docs/quirks.md", "tests/numbers_test.go"}, path) {
				continue
			}
			for _, n := range append(numbersIn(text, table.first, table.number), quirksInNames(text)...) {
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

// readTexts returns what the repository's sources and pages say, by path.
func readTexts(t *testing.T) map[string]string {
	t.Helper()
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
	return texts
}

func quirksInNames(text string) (all []string) {
	if !strings.Contains(text, "TestQuirk") {
		return nil
	}
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
