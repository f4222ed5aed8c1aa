// Command mutate asks whether the tests of a package would notice small changes of
// it:
//
//	go run ./tests/mutate ./ack
//
// A mutant is the package with one change: a statement removed, a condition fixed,
// an operand of && or || left out, a bound moved, an operator exchanged, a constant
// off by one. All mutants of a package are compiled into one test binary, and a
// variable of the environment chooses one, so that trying one costs no build. The
// changed files are an overlay of the build: the tree is never touched.
//
// First each test of the package runs alone, twice, and notes which places it runs,
// what the package does before main among them. A mutant is then tried by the tests
// that ran its place in any of the two, with -short, the cheapest first; if it
// survives, by those of the tests of the whole that -tests names, chosen likewise. A
// random test may reach in one run what neither recording shows; then a survivor is
// printed that the whole suite would sometimes kill, but never is a mutant taken for
// killed. One that takes several times the time of the tests, and at least two
// seconds of a processor, is killed. A survivor that survivors.txt does not accept,
// with a reason, is printed, with a note if no test reaches it at all, and the
// command ends with 1.
//
// Left out is what tells nothing new:
//   - the statement that an if holds alone, if its condition calls nothing: fixing
//     the condition does the same;
//   - a number compared with, moved to where an exchanged operator leaves it: n > 4
//     beside n >= 5;
//   - 0 made -1: what becomes of 0 made 1, or of another operator, tells as much;
//   - a constant of 0 doubled, or halved;
//   - a 0 that is returned with false.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// whole are the tests that judge what a package's own tests let through.
const whole = "Property|Quirk|Schedule|Link"

func main() {
	tests := flag.String("tests", whole, "`regexp` of the tests in ./tests for what a package's own tests let through; none: ^$")
	own := flag.String("own", ".", "`regexp` of the package's own tests that judge")
	only := flag.String("only", "", "`regexp` of the mutants to try, as they are printed; all if empty")
	kinds := flag.String("kinds", "statement,condition,operator,constant", "`list` of what to change")
	limit := flag.Duration("for", 0, "`time` after which the command ends, whatever is not tried; 0: no limit")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "`number` that says which mutants are tried first")
	parallel := flag.Int("j", runtime.NumCPU(), "`number` of mutants tried at a time")
	list := flag.Bool("list", false, "print all mutants, and what is accepted and none of them, and try none")
	fresh := flag.Bool("new", false, "leave out what is accepted")
	accepted := flag.String("accepted", "tests/mutate/survivors.txt", "`file` of accepted survivors")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./tests/mutate [flags] PACKAGE...   (in the root of the module)")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx := context.Background()
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	ok, err := judge(ctx, flag.Args(), options{*tests, *own, *only, *kinds, *seed, *parallel, *list, *fresh, *accepted})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

type options struct {
	tests    string
	own      string
	only     string
	kinds    string
	seed     uint64
	parallel int
	list     bool
	fresh    bool // leave out what is accepted
	accepted string
}

// judge tries the mutants of all packages, and reports whether none but accepted
// ones survived.
func judge(ctx context.Context, paths []string, o options) (bool, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return false, err
	}
	b, err := os.ReadFile(o.accepted)
	if err != nil {
		return false, err
	}
	known, err := parseAccepted(string(b))
	if err != nil {
		return false, fmt.Errorf("%s: %w", o.accepted, err)
	}
	good := true
	for _, path := range paths {
		p, err := load(path)
		if err != nil {
			return false, err
		}
		if err := p.settle(); err != nil {
			return false, err
		}
		all := p.mutants()
		chosen := slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool {
			_, is := known[m.key()]
			return is && o.fresh || !only.MatchString(m.String()) || !slices.Contains(strings.Split(o.kinds, ","), m.kind)
		})
		if o.list {
			for _, m := range chosen {
				fmt.Println(m)
			}
			for _, key := range p.absent(known, all) {
				fmt.Fprintf(os.Stderr, "accepted, but not there: %s\n", key)
			}
			continue
		}
		r, err := p.try(ctx, chosen, o)
		if err != nil {
			return false, err
		}
		good = r.tell(os.Stdout, p, known, len(chosen) == len(all) && o.own == ".") && good
	}
	return good, nil
}

// absent returns what is accepted of a package and is none of its mutants, as after a change of its code.
func (p *pack) absent(known map[string]string, mutants []*mutant) (keys []string) {
	there := map[string]bool{}
	for _, m := range mutants {
		there[m.key()] = true
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if strings.HasPrefix(key, p.name+" ") && !there[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// result is what became of the mutants of a package.
type result struct {
	killed, untried int
	slow            int // of those killed
	survived        []*mutant
	cpu             time.Duration
}

// tell prints what is not accepted, and what is accepted without need if all
// mutants were tried.
func (r *result) tell(w io.Writer, p *pack, known map[string]string, all bool) (good bool) {
	good = true
	accepted := 0
	for _, m := range r.survived {
		if _, ok := known[m.key()]; ok {
			accepted++
			continue
		}
		good = false
		fmt.Fprintln(w, m)
	}
	fmt.Fprintf(w, "%s: %d mutants killed, %d of them by taking too long; %d survived, of them accepted %d; not tried %d; %v of processors\n",
		p.name, r.killed, r.slow, len(r.survived), accepted, r.untried, r.cpu.Round(time.Second))
	if !all || r.untried > 0 {
		return good
	}
	for _, key := range p.absent(known, r.survived) {
		good = false
		fmt.Fprintf(w, "accepted, but killed or not there: %s\n", key)
	}
	return good
}
