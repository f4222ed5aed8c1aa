package dgrdma

import (
	"go/parser"
	"go/token"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/dgrdma/dgrdma/"

// TestGoDocShowsTheFace runs what a person does.
func TestGoDocShowsTheFace(t *testing.T) {
	for args, wants := range map[string][]string{
		"Conn":             {"func (c *Conn) Write(ctx context.Context, t *Transaction) error", "func (c *Conn) Post(t *Transaction) error"},
		"Conn.Write":       {"waits until it is done", "It calls no Done"},
		"Region.Wait":      {"Only the context ends it"},
		"Config.Queue":     {"how many transactions a connection holds"},
		"Memory.Admit":     {"before any byte of"},
		"Transaction":      {"Fence bool", "func (t *Transaction) Bytes() (n int)"},
		"Reason":           {"RefusedMalformed", "no frame of the protocol"},
		"Addr":             {"func (a Addr) AddrPort() netip.AddrPort"},
		"ProfileByName":    {"func ProfileByName("},
		"Counters":         {"FramesSent", "func (c *Counters) Add(o *Counters)"},
		"Endpoint.Connect": {"Transactions can be posted at once"},
	} {
		out, err := exec.Command("go", "doc", ".", args).CombinedOutput()
		if err != nil {
			t.Errorf("go doc %s: %v: %s", args, err, out)
		}
		for _, want := range wants {
			if !strings.Contains(strings.Join(strings.Fields(string(out)), " "), want) {
				t.Errorf("go doc %s does not say %q:\n%s", args, want, out)
			}
		}
	}
}

// TestExampleImportsNothingElse: the example that shows so.
func TestExampleImportsNothingElse(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "example_alone_test.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		if path := strings.Trim(i.Path.Value, `"`); strings.Contains(path, ".") && path != module+"dgrdma" {
			t.Errorf("it imports %s", path)
		}
	}
}
