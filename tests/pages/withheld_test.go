package pages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Why commands of pages are not run.
const (
	takesMinutes  = "takes minutes"
	theGate       = ".ci/run does it" // which TestGateRunsWhatIsLeftToIt looks at
	changesSystem = "changes the machine, as root"
	writesPages   = "writes files of the sources"
	namespaces    = "makes network namespaces, which tests of the command do where they may"
	samples       = "samples programs with perf, which is not everywhere"
	otherKernels  = "asks the kernel, which may have none of it"
)

// withheld has every command that a page shows in a block of the kind console: no test runs
// it. Who adds one says why.
var withheld = map[string]string{
	"go test ./...":                                                     theGate,
	"dgrdmacat bench --serve udp:7100":                                  samples,
	"dgrdmacat bench --to udp:10.77.0.2:7100 --seconds 3":               samples,
	`perf record -F 1999 -g -p "$(pgrep -f 'bench --to')" -- sleep 1.5`: samples,
	"perf report --no-children -g none":                                 samples,
	"go test -race ./...":                                               takesMinutes,
	"go test -v ./... | grep SKIP":                                      takesMinutes,
	"gofmt -l .":                                                        theGate,
	"go vet ./...":                                                      theGate,
	".ci/run":                                                           takesMinutes,
	"go test ./tests/wires":                                             takesMinutes,
	"go test ./tests/flood -v":                                          takesMinutes,
	"go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...":            theGate,
	"go test ./tests/wires -run TestSwitch -seed 7":                     takesMinutes,
	"go test ./tests/flood -v -run Floods -share 0.5 -rounds 5 -seconds 1":                                                    takesMinutes,
	"go test ./tests -run Quirk -v":                                                                                           takesMinutes,
	"go test ./dgrdma ./link -run '^$' -bench . -benchmem":                                                                    takesMinutes,
	"go run ./tests/rows -n 5 -t 1s":                                                                                          takesMinutes,
	"go run ./tests/rows udp-tcp udp-busy loss-1":                                                                             takesMinutes,
	"go run ./tests/rows verbs-write verbs-write-crc verbs-read verbs-ping":                                                   takesMinutes,
	"go run ./tests/rows verbs-libfabric verbs-ucx verbs-ucx-ping":                                                            takesMinutes,
	"dgrdmacat bench --path 'rate=20M,rtt=40ms,queue=1bdp,loss=1%' --compare tcp":                                             namespaces,
	"dgrdmacat bench --path 'rate=100M,rtt=40ms,queue=50ms,change=10M@2s,change=100M@4s' --seconds 6 -i 500ms":                namespaces,
	"go run ./tests/rows -paths -t 10s 'alone-10M-*'":                                                                         takesMinutes,
	"go run ./tests/rows -paths -n 3 -t 30s 'beside-*' 'later-*' trips-q1":                                                    takesMinutes,
	"go run ./tests/rows rpc-null-1 rpc-null-16 rpc-null-64 rpc-read-1 rpc-read-16 rpc-read-crc rpc-read-writes rpc-write-16": takesMinutes,
	"go run ./tests/rows nfs-read-1 nfs-read-16 nfs-write-16":                                                                 takesMinutes,
	"go run ./release -check":                                                                                                 takesMinutes,
	"release/try dist/dgrdmacat_*_amd64.deb":                                                                                  changesSystem,
	"apt-get install --no-install-recommends mmdebstrap lintian":                                                              changesSystem,
	"go run ./tests/fuzz -for 10m":                                                                                            takesMinutes,
	"go run ./tests/fuzz -for 1h -j 2 ./rdmap ./rdmap/mpa":                                                                    takesMinutes,
	"go run ./tests/fuzz -for 10m -only FuzzParse":                                                                            takesMinutes,
	"go test ./frame -run '^$' -fuzz FuzzParse":                                                                               takesMinutes,
	".ci/vulnerabilities . tests/quic examples/gonfs":                                                                         theGate,
	"go run ./tests/soak -for 2h -wire udp":                                                                                   takesMinutes,
	"go run ./tests/soak -wire ether -seed 4711 -rounds 1":                                                                    takesMinutes,
	"go run ./tests/crash -wire udp -load links -sealed -for 10m":                                                             takesMinutes,
	"go run ./tests/crash -giveup 10s -kills 1000":                                                                            takesMinutes,
	"go run ./tests/crash -for 6m20s -seed 28 -wire ether -load links -sealed":                                                takesMinutes,
	"go run ./tests/mutate ./ack":                                                                                             takesMinutes,
	"go test ./dgrdma -run Documented -write":                                                                                 writesPages,
	"go test ./metrics/watch -run Documented -write":                                                                          writesPages,
	"go test ./tests -run Documented -write":                                                                                  writesPages,
	"go test ./tests/flood -v -run Crowd -peers 10000 -open 1000000":                                                          takesMinutes,
	"go test ./tests/siw -v":                                                                                                  changesSystem,
	"SIW_KEEP=1 go test ./tests/siw -v -run Responder":                                                                        changesSystem,
	"go test ./tests/siw -v -run Rping":                                                                                       changesSystem,
	"go test ./tests/siw -v -run Linux":                                                                                       changesSystem,
	"go test ./tests/siw -v -run NFSD":                                                                                        changesSystem,
	"go test ./tests/siw -v -run LinuxByChance -operations 100000 -timeout 3h":                                                changesSystem,
	"go test ./tests/siw -v -run ManyFiles -files 10000 -timeout 3h":                                                          changesSystem,
	"SIW_GUESTS=2 go test ./tests/siw -v -run Speed -speed 5 -timeout 1h":                                                     changesSystem,
	"tests/siw/kit/down":                                                                                                      changesSystem,
	"mount -t nfs -o vers=3,rdma,port=20049,nolock,mountproto=tcp,mountport=2049 10.77.0.1:/export /mnt":                      changesSystem,
	"grep -hE 'CONFIG_(NFS_V3|SUNRPC_XPRT_RDMA|RDMA_SIW)[= ]' /boot/config-$(uname -r)":                                       otherKernels,
	"zcat /proc/config.gz | grep -E 'CONFIG_(NFS_V3|SUNRPC_XPRT_RDMA|RDMA_SIW)[= ]'":                                          otherKernels,
	"modprobe -a nfsv3 rpcrdma siw":                                                                                           changesSystem,
	"rdma link add siw0 type siw netdev eth0":                                                                                 changesSystem,
	"rdma link show": otherKernels,
	"mkdir -m 777 shared && tests/siw/kit/up":                            changesSystem,
	"tests/siw/kit/host dgrdmacat nfs serve --listen 10.99.0.1 shared &": changesSystem,
	"tests/siw/kit/exec 'modprobe -a rpcrdma nfsv3 && mount.nfs 10.99.0.1:/export /mnt -o vers=3,rdma,port=20049,nolock,mountproto=tcp,mountport=2049'": changesSystem,
	"tests/siw/kit/exec 'cp -r /etc /mnt && diff -r /etc /mnt/etc'":                                                                                     changesSystem,
	"kill $!; tests/siw/kit/down":                                          changesSystem,
	"apt-get install --no-install-recommends tshark chromium zsh":          changesSystem,
	`sudo setcap cap_net_raw+ep "$(which dgrdmacat)"`:                      changesSystem,
	"sudo sysctl -w net.core.rmem_max=33554432 net.core.wmem_max=33554432": changesSystem,
}

// hurries has, for each page, what is typed in place of what takes long.
var hurries = map[string][]struct {
	what *regexp.Regexp
	as   string
}{
	"docs/performance.md": {{regexp.MustCompile(`--seconds \S+`), "--seconds 0.1"}},
	"docs/testing.md": {{regexp.MustCompile(`-schedules \d+`), "-schedules 3"}, {regexp.MustCompile(`-programs \d+`), "-programs 30"}, {regexp.MustCompile(`-worlds \d+`), "-worlds 3"}, {regexp.MustCompile(`nfs3 -run ManyFiles -files 10000`), "nfs3 -run ManyFiles -files 30"},
		{regexp.MustCompile(`-hostile \d+`), "-hostile 30"}, {regexp.MustCompile(`-layouts \d+`), "-layouts 30"}},
}

func hurry(page string, lines []string) []string {
	out := slices.Clone(lines)
	for i := range out {
		for _, h := range hurries[page] {
			out[i] = h.what.ReplaceAllString(out[i], h.as)
		}
	}
	return out
}

var (
	comment = regexp.MustCompile(`\s+# .*$`)
	quoted  = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
)

// words are those of a command without its comment.
func words(command string) (all []string) {
	for _, w := range quoted.FindAllString(comment.ReplaceAllString(command, ""), -1) {
		all = append(all, strings.Trim(w, `'"`))
	}
	return all
}

// unrun returns the commands of a page that no test runs, and what is wrong with them.
func (p *page) unrun() (commands []string, faults []error) {
	for _, b := range p.blocks {
		if b.kind == "text" {
			for _, line := range b.lines {
				if first, _, _ := strings.Cut(strings.TrimSpace(line), " "); first == "$" || first == "dgrdmacat" || first == "go" || first == "sudo" {
					faults = append(faults, fmt.Errorf("%s:%d: a picture with a command: %s", p.name, b.line, line))
				}
			}
		}
		if b.kind != "console" {
			continue
		}
		for _, line := range b.lines {
			command := strings.TrimSpace(comment.ReplaceAllString(line, ""))
			if command == "" {
				continue
			}
			commands = append(commands, command)
			if withheld[command] == "" {
				faults = append(faults, fmt.Errorf("%s:%d: no test runs this, and withheld does not say why: %s", p.name, b.line, command))
			}
			if err := plausible(words(command)); err != nil {
				faults = append(faults, fmt.Errorf("%s:%d: %s: %w", p.name, b.line, command, err))
			}
		}
	}
	return commands, faults
}

// TestCommandsThatAreNotRun: withheld has what pages show and no test runs, and nothing else;
// and the packages, tests and flags are there that it names.
func TestCommandsThatAreNotRun(t *testing.T) {
	shown := make(map[string]bool)
	for _, p := range all(t) {
		commands, faults := p.unrun()
		for _, err := range faults {
			t.Error(err)
		}
		for _, c := range commands {
			shown[c] = true
		}
	}
	for c := range withheld {
		if !shown[c] {
			t.Errorf("no page shows %s any more: take it out of withheld", c)
		}
	}
}

// TestGateRunsWhatIsLeftToIt: what is not run here because the gate does it is in the gate.
func TestGateRunsWhatIsLeftToIt(t *testing.T) {
	gate, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for c, why := range withheld {
		if why == theGate && !strings.Contains(string(gate), c) {
			t.Errorf(".ci/run does not run %s", c)
		}
	}
}

// goFlags are flags of go test; tests define others.
var goFlags = []string{"run", "fuzz", "fuzztime", "fuzzminimizetime", "timeout", "v", "race", "bench", "benchmem", "count"}

// plausible looks at a command of go test, or go run, of packages here.
func plausible(words []string) error {
	if len(words) < 3 || words[0] != "go" || words[1] != "test" && words[1] != "run" {
		return nil
	}
	var tests []string // and benchmarks, and flags with a dash before them
	for _, w := range words[2:] {
		dir, here := strings.CutPrefix(w, "./")
		if !here || dir == "..." {
			continue
		}
		names, err := declared(filepath.Join("..", "..", dir))
		if err != nil {
			return err
		}
		tests = append(tests, names...)
	}
	if words[1] == "run" || len(tests) == 0 {
		return nil
	}
	for i, w := range words {
		flag, is := strings.CutPrefix(w, "-")
		if !is || i < 2 {
			continue
		}
		if !slices.Contains(goFlags, flag) && !slices.Contains(tests, "-"+flag) {
			return fmt.Errorf("no test there has the flag -%s", flag)
		}
		if i+1 == len(words) || words[i+1] == "^$" || flag != "run" && flag != "fuzz" && flag != "bench" {
			continue
		}
		prefix := map[string]string{"run": "Test", "fuzz": "Fuzz", "bench": "Benchmark"}[flag]
		pattern, err := regexp.Compile(words[i+1])
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(tests, func(name string) bool { return strings.HasPrefix(name, prefix) && pattern.MatchString(name) }) {
			return fmt.Errorf("nothing there is called %s", words[i+1])
		}
	}
	return nil
}

// declared returns the functions of a package, and its flags, as in "-seed".
func declared(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s is no package", dir)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names = append(names, n.Name.Name)
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					break
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "flag" && len(n.Args) == 3 {
					if lit, ok := n.Args[0].(*ast.BasicLit); ok {
						names = append(names, "-"+strings.Trim(lit.Value, `"`))
					}
				}
			}
			return true
		})
	}
	return names, nil
}

// TestCodeInSentences: commands within sentences are those of a block, and commands and flags
// of dgrdmacat that are named are there.
func TestCodeInSentences(t *testing.T) {
	pages := all(t)
	inBlocks := make(map[string]bool)
	for _, p := range pages {
		for _, b := range p.blocks {
			for _, line := range b.lines {
				inBlocks[strings.TrimSpace(comment.ReplaceAllString(line, ""))] = true
			}
		}
	}
	help := helps(t)
	s := newSession(t, environment(t))
	looked := make(map[string]error)
	for _, p := range pages {
		for _, c := range p.spans {
			err, done := looked[c.text]
			if !done {
				err = c.check(s, help, inBlocks)
				looked[c.text] = err
			}
			if err != nil {
				t.Errorf("%s:%d: `%s`: %v", p.name, c.line, c.text, err)
			}
		}
	}
	if len(looked) < 200 {
		t.Errorf("%d pieces of code in sentences only: the search went astray", len(looked))
	}
}

// helps returns what -h says, by command of dgrdmacat.
func helps(t *testing.T) map[string]string {
	t.Helper()
	s := newSession(t, environment(t))
	ask := func(command string) string {
		printed, err := s.run(block{lines: []string{command}})
		if err != nil {
			t.Fatal(err)
		}
		return printed[0]
	}
	help := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)?)  `).FindAllStringSubmatch(ask("dgrdmacat help"), -1) { // some names have two words
		help[m[1]] = ask("dgrdmacat help " + m[1])
	}
	if len(help) < 15 {
		t.Fatalf("%d commands only: the search went astray", len(help))
	}
	return help
}

var aFlag = regexp.MustCompile(`^--?[a-z][-a-z]*$`)

// check looks at code in a sentence that is, or begins like, a command line.
func (c span) check(s *session, help map[string]string, inBlocks map[string]bool) error {
	w := strings.Fields(c.text)
	if len(w) == 0 {
		return nil
	}
	switch {
	case w[0] == "go" && len(w) > 2 && (w[1] == "doc" || w[1] == "env"):
		_, err := s.run(block{lines: []string{"# in the clone", c.text}})
		return err
	case slices.Contains([]string{"go", ".ci/run", "sudo", "apt-get", "tshark", "gofmt"}, w[0]) && len(w) > 2 && !inBlocks[c.text]:
		return fmt.Errorf("a command that no block has: put it into one")
	case w[0] == "dgrdmacat" && len(w) > 1:
		w = w[1:]
		if len(w) > 1 && help[w[0]+" "+w[1]] != "" { // a name of two words
			w = append([]string{w[0] + " " + w[1]}, w[2:]...)
		}
		if help[w[0]] == "" {
			return fmt.Errorf("dgrdmacat has no command %s", w[0])
		}
	}
	of := slices.Collect(maps.Values(help))
	if own := help[w[0]]; own != "" {
		of = []string{own}
	} else if !strings.HasPrefix(w[0], "--") {
		return nil // no code of dgrdmacat's
	}
	for _, f := range w {
		if !aFlag.MatchString(f) || f == "-h" {
			continue
		}
		f = strings.TrimLeft(f, "-")
		known := regexp.MustCompile(`(?m)^  --?` + f + `( |$)`)
		if !slices.ContainsFunc(of, known.MatchString) {
			return fmt.Errorf("there is no flag %s", f)
		}
	}
	return nil
}
