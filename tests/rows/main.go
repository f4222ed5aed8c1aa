// Rows measures the rows of the tables in docs/performance.md, each by its name, and prints
// them as they stand there.
//
//	go run ./tests/rows                    # all; -l lists them
//	go run ./tests/rows -n 5 udp-tcp busy  # some
//	go run ./tests/rows -paths -t 30s 'beside-*' # cells of slow paths that flows share
//
// Each row is measured in alternation with what it is compared to. As root it makes a pair of
// virtual Ethernet interfaces between two network namespaces, for each run anew; an ordinary
// user gets the rows that need none.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/bench"
	"github.com/dgrdma/dgrdma/tests/netns"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		exit(play(role, os.Args[1:]))
	}
	o := options{}
	flag.IntVar(&o.repeats, "n", 5, "how `often` each row is measured")
	flag.DurationVar(&o.long, "t", time.Second, "how `long` each time, 100ms or more")
	flag.StringVar(&o.endpoint, "endpoint", "", "`options` of our endpoint strings on paths, as cc=bbr")
	paths := flag.Bool("paths", false, "measure cells of slow paths, by patterns of their names")
	list := flag.Bool("l", false, "list the rows")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: go run ./tests/rows [flags] [ROW...]\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *paths && *list {
		for _, c := range cells {
			fmt.Printf("%-24s %s\n", c.name, c.path)
		}
		return
	}
	if *paths {
		exit(measurePaths(ctx, o, flag.Args(), os.Stdout))
	}
	if *list {
		for _, r := range rows {
			fmt.Printf("%-18s %s\n", r.name, r.line)
		}
		return
	}
	exit(measureAll(ctx, o, flag.Args(), os.Stdout, os.Stderr))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "rows:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type options struct {
	repeats  int
	long     time.Duration
	endpoint string // options of our endpoint strings in cells
}

// choose returns the rows of these names; none: all that can be measured here.
func choose(names []string, missing string, log io.Writer) (chosen []row, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.name == name }) {
			return nil, fmt.Errorf("there is no row %s: -l lists them", name)
		}
	}
	var left []string
	for _, r := range rows {
		named := slices.Contains(names, r.name)
		switch {
		case len(names) > 0 && !named:
		case r.place.namespaces() && missing != "" && named:
			return nil, fmt.Errorf("%s is measured between network namespaces: %s", r.name, missing)
		case r.place.namespaces() && missing != "":
			left = append(left, r.name)
		default:
			chosen = append(chosen, r)
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(log, "left out, as they are measured between network namespaces (%s): %s\n", missing, strings.Join(left, " "))
	}
	return chosen, nil
}

// check refuses what would measure nothing, or would not end.
func (o options) check() error {
	if o.repeats < 1 || o.repeats > 1000 || o.long < 100*time.Millisecond || o.long > time.Hour {
		return errors.New("need -n 1 to 1000, and -t 100ms to 1h")
	}
	return nil
}

func measureAll(ctx context.Context, o options, names []string, out, log io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	chosen, err := choose(names, netns.Missing(), log)
	if err != nil {
		return err
	}
	var failed error
	chosen = slices.DeleteFunc(chosen, func(r row) bool {
		why := r.needs.missing()
		if why != "" {
			failed = errors.Join(failed, fmt.Errorf("row %s was not measured: %s", r.name, why))
			fmt.Fprintf(log, "left out: %s: %s\n", r.name, why) // rather than behind all others
		}
		return why != ""
	})
	if len(chosen) == 0 {
		return failed
	}
	tools, err := build(ctx, true, slices.ContainsFunc(chosen, func(r row) bool { return r.quic }))
	if err != nil {
		return errors.Join(failed, err)
	}
	defer tools.remove()
	fmt.Fprintf(out, "| row | | ours | compared to | ratio | us per MB | load |\n|---|---|---|---|---|---|---|\n")
	chosenHere := make(controllers)
	doubtful := false
	var notes []string
	for _, r := range chosen {
		s, err := r.measureOften(ctx, o, tools, chosenHere)
		if err != nil {
			return errors.Join(failed, fmt.Errorf("row %s: %w", r.name, err))
		}
		fmt.Fprintln(out, r.markdown(s))
		if s.choice != nil {
			notes = append(notes, fmt.Sprintf("`%s`: all of its connections %v.", r.name, s.choice))
		}
		doubtful = doubtful || s.busy
	}
	fmt.Fprintf(out, "\n%s; median (least..most) of %d runs of %v.\n", machine(), o.repeats, o.long)
	for _, n := range notes {
		fmt.Fprintln(out, n)
	}
	if doubtful {
		fmt.Fprintf(out, "%s Others took more than a tenth of the processors' time while these were measured: do not rely on their ratios.\n", doubt)
	}
	return failed
}

// doubt marks ratios that were measured on a machine that had something else to do.
const doubt = "(!)"

// machine says what all this was measured on.
func machine() string {
	var u syscall.Utsname
	kernel := "an unknown kernel"
	if syscall.Uname(&u) == nil {
		var b strings.Builder
		for _, c := range u.Release {
			if c == 0 {
				break
			}
			b.WriteByte(byte(c))
		}
		kernel = "Linux " + b.String()
	}
	m := bench.ThisMachine()
	return fmt.Sprintf("%s, %s, %d processors, load %.2f, %s", kernel, runtime.Version(), m.Processors, m.Load, time.Now().Format("January 2006"))
}

// tools are the programs that are measured.
type tools struct{ dir, dgrdmacat, quic, self string }

func (t *tools) remove() { os.RemoveAll(t.dir) }

// build compiles what is needed in addition to this program.
func build(ctx context.Context, dgrdmacat, quic bool) (t *tools, err error) {
	t = new(tools)
	if t.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if t.dir, err = os.MkdirTemp("", "dgrdma-rows."); err != nil {
		return nil, err
	}
	t.dgrdmacat, t.quic = filepath.Join(t.dir, "dgrdmacat"), filepath.Join(t.dir, "quic")
	if dgrdmacat {
		err = compile(ctx, t.dgrdmacat, "github.com/dgrdma/dgrdma/cmd/dgrdmacat")
	}
	if quic && err == nil {
		if _, there := os.Stat("tests/quic"); there != nil {
			err = errors.New("quic needs the sources: run this in their first directory")
		} else {
			err = compile(ctx, t.quic, "-C", "tests/quic")
		}
	}
	if err != nil {
		t.remove()
		return nil, err
	}
	return t, nil
}
