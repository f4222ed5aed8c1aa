package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// TestBenchLeavesOutWhatWasNotMeasured: no completion of a short run of many peers is timed,
// and what a peer takes at the server is told only of many.
func TestBenchLeavesOutWhatWasNotMeasured(t *testing.T) {
	noGoroutineLeft(t)
	// On a busy machine so short a run may measure nothing at all, which it says, or so much
	// that it does not tell what this is about.
	short := func(args string, told func(out, stderr string) bool) {
		t.Helper()
		for range 20 {
			code, out, stderr := runFor(t, t.Context(), strings.Fields("bench --peers 1000 --seconds 0.001 --size 1k "+args)...)
			switch {
			case code == exitOK && told(out, stderr):
				return
			case code != exitOK && !strings.Contains(stderr, "no transaction was acknowledged"):
				t.Fatalf("code %d: %s%s", code, out, stderr)
			}
		}
		t.Errorf("%s: never said that completions were not measured", args)
	}
	short("", func(out, _ string) bool { return strings.Contains(out, "\ncompletion   not measured\n") })
	short("--json", func(out, stderr string) bool {
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil || strings.Count(out, "\n") != 1 || stderr != "" {
			t.Errorf("%v: not one JSON object and nothing else: %s%s", err, out, stderr)
		}
		if v, told := got["server_bytes_per_peer"]; told {
			t.Errorf("server_bytes_per_peer is %v, and was not measured", v)
		}
		_, half := got["p50_us"]
		_, most := got["p99_us"]
		if half != most {
			t.Errorf("one of two quantiles: %s", out)
		}
		return !half
	})

	server, url := startServer(t, "bench", "--serve", "udp:127.0.0.1")
	ran := 0
	for peers, weighed := range map[string]bool{"1": false, "99": false, "100": true} {
		client := []string{"bench", "--seconds", "0.2", "--size", "1k", "--peers", peers, "--to", url}
		times, code, out, stderr := runTimes(t.Context(), client...)
		ran += times
		if told := regexp.MustCompile(`(?m)^memory +\d+ bytes per idle peer at the server$`).MatchString(out); code != exitOK || told != weighed {
			t.Errorf("%s peers: code %d: %s%s", peers, code, out, stderr)
		}
		times, code, out, stderr = runTimes(t.Context(), append(client, "--json")...)
		ran += times
		if _, told := (said{code, out, stderr}).object(t)["server_bytes_per_peer"]; told != weighed {
			t.Errorf("%s peers: server_bytes_per_peer is there: %v", peers, told)
		}
	}
	server.Process.Signal(os.Interrupt)
	server.code()
	if said := server.err.String(); len(regexp.MustCompile(`(?m)^peer \d+ at 127\.0\.0\.1:\d+: \d+ transactions? of 1024 bytes`).FindAllString(said, -1)) != ran {
		t.Errorf("the server says\n%s", said)
	}
}

// TestBenchSaysWhatToLookAt: who does not reach a server is asked what may be wrong, whether
// nobody is there, or one with another profile, or one that went.
func TestBenchSaysWhatToLookAt(t *testing.T) {
	t.Parallel()
	noGoroutineOfItsOwnLeft(t)
	_, url := startServer(t, "bench", "--serve", "udp:127.0.0.1")
	const ask = "; does dgrdmacat bench --serve run there, with the same --profile, and is this the URL it printed?\n"
	for _, client := range []string{
		"bench --to ocpi-udp-rdma:127.0.0.1;9;134217728.2.16?giveup=200ms",
		"bench --profile fpga --to " + url + "?giveup=200ms",
	} {
		if code, out, stderr := runFor(t, t.Context(), strings.Fields(client)...); code != exitError || out != "" || !strings.HasSuffix(stderr, ask) {
			t.Errorf("%s: code %d, %q, %q", client, code, out, stderr)
		}
	}
	if got := benchInWords(dgrdma.ErrPeerDown, true).Error(); !strings.HasSuffix(got, ": was the server killed, or is the network down?") {
		t.Error(got)
	}
}
