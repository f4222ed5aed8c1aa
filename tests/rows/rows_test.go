package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/tests/netns"
)

// TestMain is also the main function of what rows are compared to.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		exit(play(role, os.Args[1:]))
	}
	fixture.EndHangs()
	os.Exit(m.Run())
}

// page is where the tables are.
const page = "../../docs/performance.md"

// cellsOf returns the cells of every line of a table that begins with the name of a row.
func cellsOf(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 7 && len(cells) != 9 || !strings.HasPrefix(cells[1], " `") || cells[0] != "" {
			continue
		}
		cells = cells[1 : len(cells)-1]
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		cells[0] = strings.Trim(cells[0], "`")
		all = append(all, cells)
	}
	return all
}

// TestEachRowOfThePageCanBeMeasured, and each that can be is there, in the same order and words.
func TestEachRowOfThePageCanBeMeasured(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var there, here []string
	for _, cells := range cellsOf(string(b)) {
		versus, _, _ := strings.Cut(cells[3], ": ")
		there = append(there, cells[0]+" | "+cells[1]+" | "+versus)
	}
	for _, r := range rows {
		here = append(here, r.name+" | "+r.line+" | "+r.versus)
	}
	for _, line := range there {
		if !slices.Contains(here, line) {
			t.Errorf("the page has a row that cannot be measured: %s", line)
		}
	}
	for _, line := range here {
		if !slices.Contains(there, line) {
			t.Errorf("the page does not have the row %s", line)
		}
	}
	if !t.Failed() && !slices.Equal(there, here) {
		t.Error("the page has the rows in another order")
	}
	tables := strings.Count(string(b), "\n| | ours |") + strings.Count(string(b), "\n| | link |")
	if tables != 0 {
		t.Errorf("%d tables of the page have no names of rows", tables)
	}
}

// TestRowsHaveNames of their own.
func TestRowsHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range rows {
		if seen[r.name] || r.name == "" || r.line == "" || r.runs == nil || r.loss > 0 && !r.place.namespaces() {
			t.Errorf("%+v", r)
		}
		seen[r.name] = true
	}
}

// measured runs rows for as short as it goes, and returns what is printed.
func measured(t *testing.T, repeats int, names ...string) string {
	t.Helper()
	t.Setenv("GOFLAGS", "-pgo=off -ldflags=-w") // compiled already, for the other tests, and linked without what debuggers want
	t.Setenv("TMPDIR", t.TempDir())
	var out, log strings.Builder
	if err := measureAll(t.Context(), options{repeats: repeats, long: 100 * time.Millisecond}, names, &out, &log); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &log)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return out.String()
}

// wantRow checks that a row was printed as the page has it, with figures.
func wantRow(t *testing.T, out, name string) {
	t.Helper()
	for _, cells := range cellsOf(out) {
		if cells[0] != name {
			continue
		}
		const figures = `[\d.]*[1-9][\d.]* \([\d.]+\.\.[\d.]*[1-9][\d.]*\)`
		if !regexp.MustCompile("^"+figures).MatchString(cells[2]) || !regexp.MustCompile(": "+figures+"( by [a-z].*)?$").MatchString(cells[3]) || !regexp.MustCompile(`^\d+\.\d\d( \(!\))?$`).MatchString(cells[4]) {
			t.Errorf("row %s: %q", name, cells)
		}
		if !regexp.MustCompile(`^(\d+( / \d+)?)?$`).MatchString(cells[5]) || !regexp.MustCompile(`^[\d.]+, [\d.]+$`).MatchString(cells[6]) {
			t.Errorf("row %s: processor time and load are %q", name, cells[5:])
		}
		return
	}
	t.Errorf("no row %s in\n%s", name, out)
}

// TestLoopback: rows that need no privileges, one of them with a busy machine, which it wants.
func TestLoopback(t *testing.T) {
	out := measured(t, 2, "loopback", "loopback-busy")
	wantRow(t, out, "loopback")
	wantRow(t, out, "loopback-busy")
	if !regexp.MustCompile(`(?m)^Linux .*, \d+ processors, load [\d.]+, .*; median \(least..most\) of 2 runs of 100ms\.$`).MatchString(out) {
		t.Errorf("nothing about the machine:\n%s", out)
	}
	if strings.Contains(out, "`loopback-busy`") && regexp.MustCompile("(?m)^\\| `loopback-busy`.*\\(!\\) \\|$").MatchString(out) {
		t.Errorf("what is to be busy is blamed for it:\n%s", out)
	}
}

// TestNamespaces: rows between namespaces, over IP and over bare Ethernet, against another protocol and the kernel alone, and
// of pings; and rows of queue pairs there and on loopback, beside a TCP stream, another operation and pings of TCP, and beside
// other implementations where they are there. One call measures all, as each compiles the programs.
func TestNamespaces(t *testing.T) {
	names := []string{"verbs-loopback"}
	others := fiPingpong.missing() == "" && ucxPerf.missing() == ""
	if netns.Missing() == "" {
		names = append(names, "loss-1", "ping", "verbs-ping", "ping-ether", "ping-spin", "tcp-streams")
		if !fixture.Race { // of these all is done by programs that are not watched for races
			names = append(names, "ether-1500", "verbs-read", "udp-anywhere", "ping-anywhere", "link")
		}
		if others && !fixture.Race { // nor are theirs
			names = append(names, "verbs-libfabric", "verbs-ucx", "verbs-ucx-ping")
		}
	}
	out := measured(t, 1, names...)
	for _, name := range names {
		wantRow(t, out, name)
	}
	// A row that is all over TCP says which controller its connections had, and what a stream does with each.
	want := "(?m)^`verbs-loopback`: all of its connections by [a-z0-9_]+(, the machine's default)?; a stream in trials: [a-z0-9_]+"
	if netns.Missing() != "" {
		want = "(?m)^`verbs-loopback`: all of its connections by [a-z0-9_]+, the machine's default, as another one cannot be set for all programs: "
	}
	if !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("no %s in\n%s", want, out)
	}
	netns.Require(t)
	if !others {
		t.Skip("libfabric-bin or ucx-utils is not there")
	}
}

// TestCallRows measures rows of calls, in all ways in which they travel.
func TestCallRows(t *testing.T) {
	names := []string{"rpc-null-1", "rpc-read-crc", "rpc-read-writes", "nfs-write-16"}
	out := measured(t, 1, names...)
	for _, name := range names {
		wantRow(t, out, name)
	}
}

// TestProgramMissing: a row that needs a program which is not there says so, and of which package it is, before anything
// is compiled or measured; the others are measured.
func TestProgramMissing(t *testing.T) {
	kept := rows
	defer func() { rows = kept }()
	needy := row{name: "needy", line: "x", needs: program{"no-such-program", "some-package"}, runs: alone("bytes", 1, "")}
	const why = "it needs no-such-program, which is not there: apt-get install some-package"
	rows = []row{needy}
	var out, log strings.Builder
	t.Setenv("PATH", "") // has no compiler
	all := func() error {
		return measureAll(t.Context(), options{repeats: 1, long: 100 * time.Millisecond}, nil, &out, &log)
	}
	if err := all(); err == nil || err.Error() != "row needy was not measured: "+why || out.String() != "" || log.String() != "left out: needy: "+why+"\n" {
		t.Errorf("%v: %s%s", err, &out, &log)
	}
	rows = append(rows, row{name: "other", line: "x", runs: alone("bytes", 1, "")})
	if err := all(); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "go build") {
		t.Errorf("%v", err)
	}
}

// TestColumn reads what other programs print.
func TestColumn(t *testing.T) {
	const fi = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n64      1k      =1k      125k        2.01s      0.06    1003.72       0.00\n"
	const ucx = "|     Test     | # iterations | 50.0%ile |\n+---+---+\n                        2000      8.381   208.386   507.408        0.29       0.12        4799        1971\n"
	for _, x := range []struct {
		out  string
		n    int
		want float64
	}{{fi, 6, 1003.72}, {ucx, ucxMedian, 8.381}, {ucx, ucxMiB, 0.12}} {
		if got, err := column(x.out, x.n); err != nil || got != x.want {
			t.Errorf("%v, %v, want %v", got, err, x.want)
		}
	}
	for _, out := range []string{"", "no figures", fi[:20]} {
		if got, err := column(out, 6); err == nil {
			t.Errorf("%q has %v", out, got)
		}
	}
}

// TestChoose: an ordinary user gets what needs no namespaces, and is told what is left out; a row that is
// asked for by name is not left out in silence.
func TestChoose(t *testing.T) {
	const missing = "needs root"
	var log strings.Builder
	all, err := choose(nil, missing, &log)
	if err != nil || len(all) == 0 || len(all) == len(rows) || slices.ContainsFunc(all, func(r row) bool { return r.place.namespaces() }) {
		t.Errorf("%d rows, %v", len(all), err)
	}
	if said := log.String(); !strings.Contains(said, missing) || !strings.Contains(said, " udp-tcp ") || strings.Contains(said, " loopback ") {
		t.Error(said)
	}
	if _, err := choose([]string{"loopback", "udp-tcp"}, missing, &log); err == nil || !strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
	if _, err := choose([]string{"loopback", "no-such"}, "", &log); err == nil || !strings.Contains(err.Error(), "no row no-such") {
		t.Error(err)
	}
	if all, err := choose(nil, "", &log); err != nil || len(all) != len(rows) {
		t.Errorf("%d of %d rows, %v", len(all), len(rows), err)
	}
	for _, o := range []options{{repeats: 0, long: time.Second}, {repeats: 1, long: time.Millisecond}, {repeats: 2000, long: time.Second}, {repeats: 1, long: 2 * time.Hour}} {
		if err := measureAll(t.Context(), o, []string{"loopback"}, &log, &log); err == nil {
			t.Errorf("%+v was measured", o)
		}
	}
}
