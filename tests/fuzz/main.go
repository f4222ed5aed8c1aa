// Command fuzz runs every fuzz target of the tree for a while, and prints what came of it:
//
//	go run ./tests/fuzz -for 10m                  # all, one after the other; -l lists them
//	go run ./tests/fuzz -for 1h -j 2 ./rdmap/...  # some, two at a time
//
// An input that fails is kept by go test below testdata/fuzz of its package, where each later
// go test tries it again: it is to be committed with what mends it. What is merely new is kept
// in Go's cache. It ends with 1 if a target failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	o := options{}
	flag.DurationVar(&o.long, "for", time.Minute, "how `long` each target runs")
	flag.IntVar(&o.atOnce, "j", 1, "`number` of targets that run at a time; they share the processors")
	flag.StringVar(&o.minimize, "minimize", "100x", "how `long` an input is made smaller, for go test -fuzzminimizetime")
	only := flag.String("only", "", "`regexp` of the targets to run, as they are listed; all if empty")
	list := flag.Bool("l", false, "list the targets and run none")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./tests/fuzz [flags] [PACKAGE...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	good, err := false, error(nil)
	if o.only, err = regexp.Compile(*only); err == nil {
		good, err = fuzz(ctx, o, *list, flag.Args(), os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(2)
	}
	if !good {
		os.Exit(1)
	}
}

type options struct {
	long     time.Duration
	atOnce   int
	minimize string
	only     *regexp.Regexp
}

// fuzz runs the targets of packages, of all if there are none, and reports whether each was
// run and failed nowhere.
func fuzz(ctx context.Context, o options, list bool, packages []string, out, log io.Writer) (good bool, err error) {
	if o.long < time.Second || o.atOnce < 1 {
		return false, errors.New("need -for 1s or more, and -j 1 or more")
	}
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	all, err := find(ctx, packages)
	if err != nil {
		return false, err
	}
	var chosen []target
	for _, t := range all {
		if o.only.MatchString(t.String()) {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 {
		return false, fmt.Errorf("no fuzz target in %s", strings.Join(packages, " "))
	}
	if list {
		for _, t := range chosen {
			fmt.Fprintln(out, t)
		}
		return true, nil
	}
	o.atOnce = min(o.atOnce, len(chosen))
	results := make([]result, len(chosen))
	turns, wait := make(chan int), sync.WaitGroup{}
	for range o.atOnce {
		wait.Go(func() {
			for i := range turns {
				results[i] = chosen[i].run(ctx, o, max(1, runtime.NumCPU()/o.atOnce))
				fmt.Fprintf(log, "%s: %s\n%s", chosen[i], results[i].became, results[i].said)
			}
		})
	}
	for i := range chosen {
		turns <- i
	}
	close(turns)
	wait.Wait()
	return tell(out, chosen, results), nil
}

// tell prints a line for each target, and reports whether all are good.
func tell(out io.Writer, targets []target, results []result) (good bool) {
	good = true
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "target\texecutions\tnew\tseconds\tresult")
	for i, r := range results {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%s\n", targets[i], r.executions, r.fresh, r.took.Seconds(), r.became)
		good = good && r.became == passed
	}
	w.Flush()
	return good
}
