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
			p := asProcess(t)
			p.Cmd = exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, most), "sh", program(t)}, strings.Fields(args)...)...)
			p.Stdout, p.Stderr = &p.out, &p.err
			p.start().code()
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
