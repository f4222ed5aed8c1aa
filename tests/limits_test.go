package tests

import (
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/internal/strangers"
)

var write = flag.Bool("write", false, "write what documentation says of limits")

const limitsPage = "../docs/limits.md"

// TestLimitsAreDocumented: docs/limits.md has the table of limits, with the numbers of the code's constants
// and settings; counters and tests that it names are there.
func TestLimitsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(limitsPage)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := make(map[string]bool)
	for r := range 64 {
		reasons[dgrdma.Reason(r).String()] = true
	}
	var b strings.Builder
	consts := make(constants)
	for _, group := range limits {
		fmt.Fprintf(&b, "\n### %s\n\n| what | at most | set by | what happens then | counter | tests |\n|---|---|---|---|---|---|\n", group.title)
		for _, l := range group.rows {
			for _, m := range regexp.MustCompile("`(dgrdma_[a-z_]+)(?:\\{reason=\"([a-z_]+)\"\\})?").FindAllStringSubmatch(l.counter, -1) {
				if !strings.Contains(string(metrics), "| `"+m[1]+"` |") || m[2] != "" && !reasons[m[2]] {
					t.Errorf("%s: there is no metric %s", l.of, m[0])
				}
			}
			if l.counter == "" || l.test == "" {
				t.Errorf("%s: no counter, or no test", l.of)
			}
			n, by := consts.of(t, l.set)
			fmt.Fprintf(&b, "| %s | %s%s | `%s` | %s | %s | `%s` |\n", l.of, inWords(n, l.bytes), l.more, by, l.reached, l.counter, strings.ReplaceAll(l.test, ", ", "`, `"))
		}
	}
	b.WriteString("\nGenerated from the code's constants: `go test ./tests -run Documented -write`.\n")
	head, _, ok := strings.Cut(string(page), "\n### ")
	if !ok {
		t.Fatalf("%s has no place for the table", limitsPage)
	}
	want := head + b.String()
	if budget := inWords(strangers.Memory, true); !strings.Contains(head, "**"+budget+"**") {
		t.Errorf("%s does not say that strangers have **%s**", limitsPage, budget)
	}
	if *write {
		if err := os.WriteFile(limitsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("%s does not say what the table of limits does: go test ./tests -run Documented -write", limitsPage)
	}
}

func inWords(n int64, bytes bool) string {
	switch {
	case bytes && n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case bytes && n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	case bytes:
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprint(n)
}

// constants are those of rooms, as their source says them: by room and name.
type constants map[string]map[string]constantIn

type constantIn struct {
	is   ast.Expr
	file *ast.File
}

// of returns what bounds: the value of a constant, or the default of a setting, and how it is called.
func (c constants) of(t *testing.T, set string) (n int64, by string) {
	t.Helper()
	at := strings.LastIndex(set, ".")
	if at < 0 {
		s := settingOf(set)
		if s == nil {
			t.Errorf("there is no setting %s", set)
			return 0, set
		}
		if s.Default == 0 {
			return settingOf("MaxPeers").Default / 4, set // of PeersPerHost
		}
		return s.Default, set
	}
	v := c.value(t, set[:at], set[at+1:])
	n, exact := constant.Int64Val(constant.ToInt(v))
	if !exact {
		t.Errorf("%s is no number", set)
	}
	return n, set
}

func (c constants) value(t *testing.T, room, name string) constant.Value {
	t.Helper()
	if c[room] == nil {
		c[room] = readConstants(t, room)
	}
	k, ok := c[room][name]
	if !ok {
		t.Fatalf("there is no constant %s in %s", name, room)
	}
	return c.eval(t, room, k.file, k.is)
}

func (c constants) eval(t *testing.T, room string, f *ast.File, e ast.Expr) constant.Value {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return c.eval(t, room, f, e.X)
	case *ast.Ident:
		return c.value(t, room, e.Name)
	case *ast.SelectorExpr:
		of := e.X.(*ast.Ident).Name
		for _, i := range f.Imports {
			if path := strings.Trim(i.Path.Value, `"`); strings.HasSuffix(path, "/"+of) {
				return c.value(t, strings.TrimPrefix(path, module), e.Sel.Name)
			}
		}
	case *ast.BinaryExpr:
		x, y := c.eval(t, room, f, e.X), c.eval(t, room, f, e.Y)
		switch e.Op {
		case token.SHL, token.SHR:
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(n))
		case token.QUO:
			return constant.BinaryOp(x, token.QUO_ASSIGN, y)
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	t.Fatalf("room %s: a constant is too complicated: %T", room, e)
	return nil
}

// readConstants reads those of one room.
func readConstants(t *testing.T, room string) map[string]constantIn {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(room), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]constantIn)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) {
						all[name.Name] = constantIn{v.Values[i], f}
					}
				}
			}
		}
	}
	return all
}

// engine are the rooms in which a constant whose name begins with most or max is in the table, or said to
// bound no table, queue or buffer.
var engine = []string{
	"ack", "dgrdma", "endpoint/outgoing", "endpoint/pathmtu", "endpoint/queue", "endpoint/reassembly", "endpoint/session", "seal", "transport", "transport/sealed", "transport/udp", "transport/ether", "transport/internal/mmsg", "transport/internal/rtnl", "link", "link/budget", "link/stream", "link/netconn",
	"verbs", "verbs/latency", "verbs/rping", "rdmap", "rdmap/ddp", "rdmap/memory", "rdmap/mpa", "capture", "capture/tcp", "metrics",
	"inspect", "inspect/iwarp", "inspect/rpcrdma", "rpcrdma", "nfs3", "nfs3/localfs", "rpc", "rpc/portmap",
}

// others are such constants, by what they bound.
var others = map[string]string{
	"a time": "dgrdma.mostBehind dgrdma.mostQuestion endpoint/pathmtu.mostRound transport/sealed.mostAttempt transport/sealed.mostUnheard endpoint/session.mostRetry verbs.mostPause rpc.mostBackoff",
	"how often something is done": "rdmap/mpa.mostProbes ack.mostUnmeasured ack.mostVain endpoint/queue.MostPassing ack.mostCopies ack.mostMarkTests endpoint/pathmtu.mostProbes transport/sealed.mostDared endpoint/pathmtu.mostMissed " +
		"transport/internal/mmsg.mostErrors transport/ether.mostVain transport/ether.mostQueues",
	"what a frame or a word of it has room for": "rpcrdma.MaxInto nfs3.MaxHandle nfs3.MaxName nfs3.MaxPath nfs3.MaxTarget nfs3.MaxData nfs3.maxArgName nfs3.maxFlavors nfs3/localfs.maxMemoryFile nfs3.maxLinks " +
		"ack.MaxRun seal.MostHandshake seal.mostCounter transport.MostMTU capture.maxDropped transport/udp.maxPayload link.MaxMessage link.MaxPrivate link.MaxName " +
		"link.maxText link.mostSize link.mostFlagPitch verbs.MaxPrivate rdmap/mpa.MaxReads rdmap/mpa.maxForeign rdmap/mpa.maxSegment rdmap/mpa.maxPrivate inspect/iwarp.maxFrame inspect/iwarp.mostPrivate inspect/iwarp.mostBegan inspect/rpcrdma.mostKept inspect/rpcrdma.mostHead inspect/rpcrdma.maxAuth inspect/rpcrdma.maxMachine inspect/rpcrdma.maxGroups inspect/rpcrdma.maxHandle rpc.maxAuth rpc.maxReplyHeader rpc.maxMachine rpc.maxGIDs",
	"what one call does, or is kept for the next": "rpcrdma.mostParts endpoint/session.mostReplies endpoint/outgoing.mostHot endpoint/outgoing.mostLent endpoint/outgoing.mostSealed dgrdma.mostFollow dgrdma.mostIntroductions endpoint/reassembly.mostSpare ack.mostSpare dgrdma.mostLeft dgrdma.mostAhead endpoint/queue.MostPartial link/budget.MostChunk ack.maxReorder " +
		"transport/ether.mostPerCall transport/udp.maxSegments rdmap/mpa.maxPieces rdmap/mpa.maxBatch rdmap/mpa.maxMessages rdmap/mpa.maxRecords inspect.maxJump inspect.mostLooks inspect/rpcrdma.mostTried inspect/rpcrdma.mostAlike inspect/rpcrdma.mostSiblings inspect/rpcrdma.mostPulled inspect/rpcrdma.mostOperations inspect/iwarp.MostSearched inspect/iwarp.MostChecked rpc.mostClass",
	"what a report shows of a flow or a connection, whose memory TestConstantMemory weighs": "inspect.mostPoints inspect.mostMarks inspect.mostTags inspect.mostWorst inspect.mostRestart inspect.maxBins inspect.mostShown " +
		"inspect.mostOfAKind inspect.mostHex inspect.mostSlow",
	"what the system takes":                         "transport/ether.mostRing capture.maxProgram capture.maxName",
	"buffers of the peer, of which nothing is kept": "link.mostOffered",
}

// TestBoundsHaveARow: who bounds something else says so in the table of limits.
func TestBoundsHaveARow(t *testing.T) {
	said := make(map[string]bool)
	for _, group := range limits {
		for _, l := range group.rows {
			said[l.set] = true
		}
	}
	for what, names := range others {
		for name := range strings.FieldsSeq(names) {
			if said[name] {
				t.Errorf("%s has a row, and is said to be %s", name, what)
			}
			said[name] = true
		}
	}
	named := regexp.MustCompile(`^(?i:most|max)[A-Z]`)
	found := make(map[string]bool)
	for _, room := range engine {
		for name := range readConstants(t, room) {
			if full := room + "." + name; named.MatchString(name) {
				if found[full] = true; !said[full] {
					t.Errorf("%s bounds something: give it a row in tests/limits_table_test.go, or say in tests/limits_test.go what it bounds if that is no table, queue or buffer", full)
				}
			}
		}
	}
	for what, names := range others {
		for name := range strings.FieldsSeq(names) {
			if !found[name] {
				t.Errorf("there is no %s, which is said to be %s", name, what)
			}
		}
	}
}
