package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestWhoClosesThePipeHasEnough: who closes the pipe, as head does, has enough, and whatever else fails
// fails all the same.
func TestWhoClosesThePipeHasEnough(t *testing.T) {
	const peer = "ocpi-udp-rdma:127.0.0.1;9;4096.2.16"
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"help", exitOK, ""},
		{"send -h", exitOK, ""},
		{"man bench", exitOK, ""},
		{"wireshark", exitOK, ""},
		{"completion bash", exitOK, ""},
		{"version", exitOK, ""},
		{"url udp:7100", exitOK, ""},
		{"url --json udp:7100", exitOK, ""},
		{"demo --size 1", exitOK, ""},
		{"bench --seconds 0.2", exitOK, ""},
		{"decode " + captureFile("udp-many"), exitOK, ""},
		{"decode " + captureFile("udp-many") + " nothing.pcap", exitOK, ""}, // it was not asked for any more
		{"decode nothing.pcap " + captureFile("udp-many"), exitError, "nothing.pcap: no such file"},
		{"decode -w - " + captureFile("udp-many"), exitOK, ""},
		{"report --json " + captureFile("udp-many"), exitOK, ""},
		{"write --to " + peer + "?giveup=1ms --flag-addr 0", exitError, "dgrdmacat write: dgrdma: peer 2 at 127.0.0.1:9: "},
		{"man nonsense", exitUsage, "no command"},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(c.args), &stdio{strings.NewReader(""), w, &stderr})
		w.Close()
		if said := stderr.String(); code != c.code || !strings.Contains(said, c.stderr) || c.stderr == "" && said != "" || strings.Contains(said, "broken pipe") {
			t.Errorf("%s: code %d, %q", c.args, code, said)
		}
	}
}
