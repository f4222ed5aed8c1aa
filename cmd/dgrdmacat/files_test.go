package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestNoFilesLeft checks that a command that gets no more file descriptors says so, and what to do, and blames no server, name or network (N16).
func TestNoFilesLeft(t *testing.T) {
	t.Parallel()
	at := free(t)
	told := make(map[string]bool)
	for _, args := range []string{
		"serve --accept any --for 0.1 udp:127.0.0.1",
		"write --text x --addr 0 --to " + localString(at, 4096, 2) + "?giveup=300ms",
		"write --text x --addr 0 --to udp:localhost:7?giveup=300ms",
		"send /dev/null udp:127.0.0.1:7?giveup=300ms",
		"ping --op read --wait 1s --to tcp:localhost:7",
		"rping --wait 1s --to tcp:127.0.0.1:7",
		"top 127.0.0.1:9",
	} {
		for most := 8; most < 12; most++ { // with fewer Go's own sockets fail
			p, _ := withFiles(t, most, args)
			said := p.err.String()
			few := strings.Contains(said, "too many open files")
			told[args] = told[args] || few
			if few && !strings.HasSuffix(said, fmt.Sprintf(": this process may have %d; raise the limit with ulimit -n\n", most)) || few && strings.Contains(said, "?") ||
				strings.Contains(said, "host localhost") && !few {
				t.Errorf("%s, with %d: %s", args, most, said)
			}
		}
	}
	if !told["write --text x --addr 0 --to udp:localhost:7?giveup=300ms"] || len(told) != 7 {
		t.Errorf("none had too few: %v", told)
	}
}

// TestNoFilesLeftForBothEnds checks that bench says so too where both ends are in its process, and one of them has too few (N16).
func TestNoFilesLeftForBothEnds(t *testing.T) {
	t.Parallel()
	for args, all := range map[string][]int{ // with other numbers it would wait longer
		"bench --seconds 0.05 --size 4k --link":                {12, 14},
		"bench --seconds 0.05 --size 4k --compare tcp":         {12, 13, 14},
		"bench --seconds 0.05 --size 4k --compare tls":         {13},
		"bench --seconds 0.05 --size 4k --op write":            {9, 11},
		"bench --seconds 0.05 --size 4k --op write --peers 20": {40},
	} {
		for _, most := range all {
			p, code := withFiles(t, most, args)
			few := strings.HasSuffix(p.err.String(), fmt.Sprintf("too many open files: this process may have %d; raise the limit with ulimit -n\n", most))
			if code != exitOK && !few || few && strings.Contains(p.err.String(), "?") || strings.Count(p.err.String(), "\n") > 1 || strings.Contains(p.out.String(), "MTU 0") {
				t.Errorf("%s, with %d: code %d: %s%s", args, most, code, p.err.String(), p.out.String())
			}
		}
	}
}

// withFiles runs the program, which may have so many file descriptors, until it ends.
func withFiles(t *testing.T, most int, args string) (p *process, code int) {
	p = asProcess(t)
	p.Cmd = exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, most), "sh", program(t)}, strings.Fields(args)...)...)
	p.Stdout, p.Stderr = &p.out, &p.err
	return p, p.start().code()
}
