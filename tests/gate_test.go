package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestVulnerabilitiesAreFound: the gate's step fails where code calls what a list says is
// vulnerable, though not where it does not, nor where there is no list, which it says.
func TestVulnerabilitiesAreFound(t *testing.T) {
	fixture.OfTheGate(t)
	gate, err := filepath.Abs("../.ci/vulnerabilities")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(gate)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(golang\.org/x/vuln)/\S*(@\S+)`).FindSubmatch(b)
	if m == nil {
		t.Fatal("it runs no govulncheck")
	}
	fetch := exec.Command("go", "mod", "download", string(m[1])+string(m[2]))
	if out, err := fetch.CombinedOutput(); err != nil {
		if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
			t.Fatalf("%s: %v: %s", m[0], err, out)
		}
		t.Skipf("%s is out of reach: %v", m[0], err)
	}
	const entry = `{"schema_version":"1.3.1","id":"GO-2000-0001","modified":"2000-01-01T00:00:00Z","published":"2000-01-01T00:00:00Z","details":"wrong letters",
		"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
		"ecosystem_specific":{"imports":[{"path":"strings","symbols":["Title"]}]}}],"database_specific":{"url":"https://example.org"}}`
	list, half, called, other := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	program := "package main\n\nimport \"strings\"\n\nfunc main() { println(strings.%s(\"a\")) }\n"
	for path, text := range map[string]string{
		list + "/index/db.json":        `{"modified":"2000-01-01T00:00:00Z"}`,
		list + "/index/modules.json":   `[{"path":"stdlib","vulns":[{"id":"GO-2000-0001","modified":"2000-01-01T00:00:00Z"}]}]`,
		half + "/index/db.json":        `{"modified":"2000-01-01T00:00:00Z"}`,
		half + "/index/modules.json":   `[{"path":"stdlib","vulns":[{"id":"GO-2000-0001","modified":"2000-01-01T00:00:00Z"}]}]`,
		list + "/ID/GO-2000-0001.json": entry,
		called + "/go.mod":             "module called\n\ngo 1.26.0\n",
		called + "/main.go":            fmt.Sprintf(program, "Title"),
		other + "/go.mod":              "module other\n\ngo 1.26.0\n",
		other + "/main.go":             fmt.Sprintf(program, "ToUpper"),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		list    string
		modules []string
		code    int
		says    string
	}{
		{"file://" + list, []string{other, called}, 1, "GO-2000-0001"},
		{"file://" + list, []string{other}, 0, ""},
		{"file://" + list + "/nowhere", []string{called}, 0, "not looked for: the list of known vulnerabilities, file://" + list + "/nowhere, is out of reach\n"},
		{"file://" + half, []string{called}, 0, "not looked for: the list of known vulnerabilities, file://" + half + ", is out of reach\n"},
		{"file://" + list, []string{t.TempDir()}, 1, ": govulncheck failed\n"},
	} {
		cmd := exec.Command(gate, c.modules...)
		cmd.Env = append(os.Environ(), "GOVULNDB="+c.list)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%v with %s: %v, want code %d and %q:\n%s", c.modules, c.list, err, c.code, c.says, out)
		}
	}
}
